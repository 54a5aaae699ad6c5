/* The operator's page: rounds, reports, dropouts, rejected uploads and why, bytes, drift, latency; looked up every few seconds.

The token is typed in, kept in this tab's session storage, and sent as a header to the admin address this page came from.
*/

import { sentenceOf } from "./faults.js";
import { byId, element, fill, isOpen, table } from "./show/elements.js";
import { chart, short } from "./show/pictures.js";

/** @import { Point } from "./show/pictures.js" */

/** A round as the operator sees it; what has not been counted is not there.
 * @typedef {{ number: number, state: string, granted?: number, reports?: number, dropouts?: number, bytes?: number,
 *   clipped?: number, drift?: number, seconds?: number, rejected?: Record<string, number> }} Round */

/** How the federation is doing, for its operator.
 * @typedef {{ version: number, round: number, open: boolean, paused: boolean, reports: number, devices: number,
 *   waiting: number, rounds_folded: number, rounds_abandoned: number, accuracy?: Record<string, unknown>,
 *   rounds?: Round[], rejected?: Record<string, number>,
 *   latency_ms?: Record<string, { requests: number, p50: number, p99: number }> }} Overview */

const EVERY = 3000;
const LATEST_ROUNDS = 10; // shown without being asked for
const KEY = "federank-operator";
/** @type {Record<string, string>} */
const REASONS = {
  late: "came after its round had ended",
  repeated: "a second, different Update for the same ticket",
  reported: "a second Update of a device for the same fold of a buffer",
  foreign: "with somebody else's ticket, or one that does not exist",
};
let timer = 0;
let paused = false;

/** @type {(path: string, body?: object) => Promise<any>} */
async function ask(path, body) {
  const headers = {
    Authorization: `Bearer ${sessionStorage.getItem(KEY)}`,
    ...(body ? { "Content-Type": "application/json" } : {}),
  };
  const method = path === "overview" ? "GET" : "POST";
  let answer;
  try {
    answer = await fetch(new URL(`/admin/api/v1/${path}`, location.origin), {
      method,
      headers,
      body: body && JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Error("The server cannot be reached just now; trying again.");
  }
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401 || answer.status === 403) signOut();
  if (!answer.ok) throw new Error(told.message ?? `The server answered with status ${answer.status}.`);
  return told;
}

/** Look once, show it, and look again later. */
async function look() {
  clearTimeout(timer);
  if (!sessionStorage.getItem(KEY)) return;
  try {
    show(await ask("overview"));
    byId("trouble").hidden = true;
  } catch (fault) {
    showTrouble(sentenceOf(fault));
  }
  if (sessionStorage.getItem(KEY)) timer = window.setTimeout(look, EVERY);
}

/** @type {(message: string) => void} */
function showTrouble(message) {
  fill(byId("trouble"), element("p", {}, message));
  byId("trouble").hidden = false;
}

/** @type {(told: Overview) => void} */
function show(told) {
  byId("entrance").hidden = true;
  byId("inside").hidden = false;
  paused = Boolean(told.paused);
  byId("standing").textContent = paused
    ? "Rounds are paused"
    : told.open
      ? `Round ${told.round} is open`
      : "Between rounds";
  byId("standing").classList.toggle("on", !paused);
  byId("pause").textContent = paused ? "Go on with rounds" : "Pause rounds";
  const rounds = [...(told.rounds ?? [])].sort((one, other) => one.number - other.number);
  const bytes = rounds.reduce((sum, round) => sum + (round.bytes ?? 0), 0);
  /** @type {[string, number][]} */
  const numbers = [
    ["Model version", told.version],
    ["Round", told.round],
    ["Reports in it", told.reports],
    ["Devices", told.devices],
    ["Waiting for work", told.waiting],
    ["Rounds folded", told.rounds_folded],
    ["Rounds abandoned", told.rounds_abandoned],
    ["Bytes in the latest rounds", bytes],
  ];
  for (const [metric, value] of Object.entries(told.accuracy ?? {}))
    if (typeof value === "number") numbers.push([metric, value]);
  fill(
    byId("now"),
    ...numbers.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, short(value)))),
  );
  showCharts(rounds.filter(({ state }) => state === "folded" || state === "abandoned"));
  showRejected(told.rejected ?? {});
  showLatency(told.latency_ms ?? {});
  showRounds(rounds.reverse());
}

/** @type {(rounds: Round[]) => void} */
function showCharts(rounds) {
  /** @type {(name: "reports" | "bytes" | "drift" | "seconds", bad?: "dropouts") => Point[]} */
  const over = (name, bad) =>
    rounds.map((round) => ({
      label: round.number,
      value: Number(round[name] ?? 0),
      bad: bad ? Number(round[bad] ?? 0) : 0,
    }));
  const rejected = rounds.map((round) => ({
    label: round.number,
    value: 0,
    bad: Object.values(round.rejected ?? {}).reduce((sum, count) => sum + count, 0),
  }));
  fill(
    byId("charts"),
    chart("Reports, and dropouts above them", over("reports", "dropouts")),
    chart("Rejected uploads", rejected),
    chart("Bytes received", over("bytes")),
    chart("Model drift", over("drift"), { line: true }),
    chart("Seconds a round took", over("seconds"), { line: true, unit: " s" }),
  );
}

/** A table whose first column is text and whose others are numbers.
 * @type {(caption: string, columns: string[], rows: string[][]) => HTMLElement} */
const numbersTable = (caption, [first, ...others], rows) =>
  table(caption, [[first], ...others.map((title) => /** @type {[string, string]} */ ([title, "number"]))], rows);

/** @type {(rejected: Record<string, number>) => void} */
function showRejected(rejected) {
  const rows = Object.entries(rejected).map(([reason, count]) => [
    REASONS[reason] ? `${reason}: ${REASONS[reason]}` : reason,
    short(count),
  ]);
  fill(
    byId("rejected"),
    rows.length
      ? numbersTable("Rejected uploads", ["Reason", "Uploads"], rows)
      : element("p", { class: "quiet" }, "None so far."),
  );
}

/** @type {(latency: Record<string, { requests: number, p50: number, p99: number }>) => void} */
function showLatency(latency) {
  const rows = Object.entries(latency).map(([route, told]) => [
    route,
    short(told.requests),
    short(told.p50),
    short(told.p99),
  ]);
  const words = element("p", { class: "quiet" }, "Of the latest requests of the process that answered.");
  if (rows.length)
    fill(
      byId("latency"),
      words,
      numbersTable("Latency", ["Route", "requests", "half within, ms", "99 % within, ms"], rows),
    );
  else fill(byId("latency"), element("p", { class: "quiet" }, "Nothing was asked yet."));
}

/** @type {(rounds: Round[]) => void} */
function showRounds(rounds) {
  /** @type {(rejected: Record<string, number> | undefined) => string} */
  const why = (rejected) =>
    Object.entries(rejected ?? {})
      .map(([reason, count]) => `${count} ${reason}`)
      .join(", ") || "–";
  const rows = rounds.map((round) => [
    `${round.number}: ${round.state}`,
    short(round.granted),
    short(round.reports),
    short(round.dropouts),
    why(round.rejected),
    short(round.bytes),
    short(round.clipped),
    short(round.drift),
    short(round.seconds),
  ]);
  const columns = [
    "Round",
    "tasks given",
    "reports",
    "dropouts",
    "rejected",
    "bytes",
    "rows clipped",
    "drift",
    "seconds",
  ];
  const earlier = rows.slice(LATEST_ROUNDS);
  fill(
    byId("rounds"),
    rows.length
      ? numbersTable("Round by round", columns, rows.slice(0, LATEST_ROUNDS))
      : element("p", { class: "quiet" }, "No round yet: it begins with the first device."),
    earlier.length
      ? element(
          "details",
          { id: "earlier-rounds", open: isOpen("earlier-rounds") },
          element("summary", { "data-key": "earlier-rounds" }, `${earlier.length} earlier`),
          numbersTable("Earlier rounds", columns, earlier),
        )
      : null,
  );
}

function signOut() {
  sessionStorage.removeItem(KEY);
  clearTimeout(timer);
  byId("entrance").hidden = false;
  byId("inside").hidden = true;
  byId("standing").textContent = "Not signed in";
  byId("standing").classList.remove("on");
}

/** @type {(path: string, body?: object) => Promise<void>} */
async function act(path, body) {
  try {
    await ask(path, body);
  } catch (fault) {
    showTrouble(sentenceOf(fault));
    return;
  }
  look();
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token", HTMLInputElement);
  sessionStorage.setItem(KEY, token.value.trim());
  token.value = "";
  look();
});
byId("pause").addEventListener("click", () => act("rounds", { paused: !paused }));
byId("close").addEventListener("click", () => act("close"));
byId("sign-out").addEventListener("click", signOut);
look();
