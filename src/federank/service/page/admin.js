/* The operator's page: rounds, reports, dropouts, rejected uploads and why, bytes, drift, latency; looked up every few seconds.

The token is typed in, kept in this tab's session storage, and sent as a header to the admin address this page came from.
*/

import { byId, element, fill } from "./show/elements.js";
import { chart, short } from "./show/pictures.js";

const EVERY = 3000;
const KEY = "federank-operator";
const REASONS = {
  late: "came after its round had ended",
  repeated: "a second, different Update for the same ticket",
  reported: "a second Update of a device for the same fold of a buffer",
  foreign: "with somebody else's ticket, or one that does not exist",
};
let timer = null;
let paused = false;

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
    showTrouble(fault.message);
  }
  if (sessionStorage.getItem(KEY)) timer = setTimeout(look, EVERY);
}

function showTrouble(message) {
  fill(byId("trouble"), element("p", {}, message));
  byId("trouble").hidden = false;
}

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
  const total = (name) => rounds.reduce((sum, round) => sum + (round[name] ?? 0), 0);
  const numbers = [
    ["Model version", told.version],
    ["Round", told.round],
    ["Reports in it", told.reports],
    ["Devices", told.devices],
    ["Waiting for work", told.waiting],
    ["Rounds folded", told.rounds_folded],
    ["Rounds abandoned", told.rounds_abandoned],
    ["Bytes in the latest rounds", total("bytes")],
    ...Object.entries(told.accuracy ?? {}).filter(([, value]) => typeof value === "number"),
  ];
  fill(
    byId("now"),
    ...numbers.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, short(value)))),
  );
  showCharts(rounds.filter(({ state }) => state === "folded" || state === "abandoned"));
  showRejected(told.rejected ?? {});
  showLatency(told.latency_ms ?? {});
  showRounds(rounds.reverse());
}

function showCharts(rounds) {
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

function table(caption, columns, rows) {
  const cell = (kind) => (text, place) =>
    element(kind, { class: place ? "number" : "", scope: kind === "th" ? "col" : null }, text);
  const body = rows.map((row) => element("tr", {}, ...row.map(cell("td"))));
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": caption },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...columns.map(cell("th")))),
      element("tbody", {}, ...body),
    ),
  );
}

function showRejected(rejected) {
  const rows = Object.entries(rejected).map(([reason, count]) => [
    REASONS[reason] ? `${reason}: ${REASONS[reason]}` : reason,
    short(count),
  ]);
  fill(
    byId("rejected"),
    rows.length
      ? table("Rejected uploads", ["Reason", "Uploads"], rows)
      : element("p", { class: "quiet" }, "None so far."),
  );
}

function showLatency(latency) {
  const rows = Object.entries(latency).map(([route, told]) => [
    route,
    short(told.requests),
    short(told.p50),
    short(told.p99),
  ]);
  const words = element("p", { class: "quiet" }, "Of the latest requests of the process that answered.");
  if (rows.length)
    fill(byId("latency"), words, table("Latency", ["Route", "requests", "half within, ms", "99 % within, ms"], rows));
  else fill(byId("latency"), element("p", { class: "quiet" }, "Nothing was asked yet."));
}

function showRounds(rounds) {
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
  fill(
    byId("rounds"),
    rows.length
      ? table(
          "Round by round",
          ["Round", "tasks given", "reports", "dropouts", "rejected", "bytes", "rows clipped", "drift", "seconds"],
          rows,
        )
      : element("p", { class: "quiet" }, "No round yet: it begins with the first device."),
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

async function act(path, body) {
  try {
    await ask(path, body);
  } catch (fault) {
    showTrouble(fault.message);
    return;
  }
  look();
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("token").value.trim());
  byId("token").value = "";
  look();
});
byId("pause").addEventListener("click", () => act("rounds", { paused: !paused }));
byId("close").addEventListener("click", () => act("close"));
byId("sign-out").addEventListener("click", signOut);
look();
