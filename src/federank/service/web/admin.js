/* The operator's page: rounds, reports, dropouts, rejected uploads and why, bytes, drift, latency; looked up every few seconds.

The token is typed in, stored in this tab's session storage, and sent as a header to the admin address this page came from.
*/

import { Fault, saidOf } from "./faults.js";
import { accuracyOf, chartsOf } from "./operator/over_time.js";
import { byId, element, fill, folded, table } from "./show/elements.js";
import { clock, number, prepareTexts, say, sayWord, short, together, worded } from "./show/language.js";
import { joiningCode } from "./show/pictures.js";

const EVERY = 3000;
const KEY = "federank-operator";
let timer = 0;
let paused = false;
/** @type {Overview | null} */
let latest = null;

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
    throw new Fault(["admin.unreachable"]);
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401 || answer.status === 403) signOut();
  if (!answer.ok) throw new Fault(said.message ?? ["admin.status", { status: answer.status }]);
  return said;
}

async function look() {
  clearTimeout(timer);
  if (!sessionStorage.getItem(KEY)) return;
  try {
    show(await ask("overview"));
    byId("trouble").hidden = true;
  } catch (fault) {
    showTrouble(worded(saidOf(fault)));
  }
  if (sessionStorage.getItem(KEY)) timer = window.setTimeout(look, EVERY);
}

/** @type {(message: string) => void} */
function showTrouble(message) {
  fill(byId("trouble"), element("p", {}, message));
  byId("trouble").hidden = false;
}

/** @type {(overview: Overview) => void} */
function show(overview) {
  latest = overview;
  byId("entrance").hidden = true;
  byId("inside").hidden = false;
  paused = Boolean(overview.paused);
  const open = overview.open ? say("admin.round-open", { round: String(overview.round) }) : say("admin.between");
  byId("doing").textContent = paused ? say("admin.paused") : open;
  showHealth(overview.health);
  byId("pause").textContent = say(paused ? "admin.go-on" : "admin.pause");
  const rounds = [...(overview.rounds ?? [])].sort((one, other) => one.number - other.number);
  const bytes = rounds.reduce((sum, round) => sum + (round.bytes ?? 0), 0);
  /** @type {[string, number | undefined][]} */
  const numbers = [
    [say("federation.version"), overview.version],
    [say("federation.round"), overview.round],
    [say("admin.reports"), overview.reports],
    [say("federation.clients"), overview.clients],
    [say("admin.left"), overview.left],
    [say("admin.waiting"), overview.waiting],
    [say("admin.aggregated"), overview.rounds_aggregated],
    [say("admin.abandoned"), overview.rounds_abandoned],
    [say("admin.rejected-aggregates"), overview.aggregates_rejected ?? 0],
    [say("admin.bytes"), bytes],
  ];
  for (const [metric, value] of Object.entries(overview.accuracy ?? {}))
    if (typeof value === "number") numbers.push([metric, value]);
  fill(
    byId("now"),
    ...numbers.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, short(value)))),
  );
  showJoining(overview);
  fill(byId("accuracy"), overview.trend?.length ? accuracyOf(overview.trend, rounds) : null);
  fill(byId("charts"), ...chartsOf(overview, rounds));
  showMoved(overview);
  showJudged(overview.evaluation ?? []);
  showRejected(overview.rejected ?? {});
  showLatency(overview.latency_ms ?? {});
  showRounds(rounds.reverse());
}

/** One line: healthy, or what needs attention and what to do about it; further reasons below it. Paused rounds are no fault.
 * @type {(health?: Health) => void} */
function showHealth({ state, reasons } = { state: "ok", reasons: [] }) {
  const [why, ...more] = reasons.map(({ code, ...values }) => sayWord("health", code, values));
  const isQuiet = paused && state === "ok";
  byId("standing").dataset.health = isQuiet ? "" : state;
  byId("standing").textContent = isQuiet
    ? say("admin.paused")
    : say(state === "ok" ? "health.ok" : "health.attention", { why: why ?? state });
  fill(byId("health"), ...more.map((words) => element("li", {}, words)));
  byId("health").hidden = !more.length;
}

/** @type {(overview: Overview) => void} */
function showJoining({ name, description, run_by: runBy, joining }) {
  const about = together(description ?? "", runBy ? say("run-by", { who: runBy }) : "");
  byId("federation-name").textContent = name ?? say("admin.unnamed");
  fill(
    byId("joining"),
    element("p", { class: "quiet" }, about || say("admin.unsaid")),
    joining ? joiningCode(joining, say("admin.join")) : null,
  );
}

/** @type {(caption: string, columns: string[], rows: string[][]) => HTMLElement} */
const numbersTable = (caption, [first, ...others], rows) =>
  table(caption, [[first], ...others.map((title) => /** @type {[string, string]} */ ([title, "number"]))], rows);

/** Show what there is, or a sentence where there is nothing.
 * @type {(id: string, count: number, none: Key, shown: () => HTMLElement) => void} */
const put = (id, count, none, shown) => fill(byId(id), count ? shown() : element("p", { class: "quiet" }, say(none)));

/** The same, folded until it is asked for: a page of tables is not read.
 * @type {(id: string, title: string, ...shown: Parameters<typeof numbersTable>) => HTMLElement} */
const foldedTable = (id, title, ...shown) => folded(id, title, numbersTable(...shown));

/** An estimate of a share may be below 0 or above 1, and is cut there.
 * @type {(share: number) => string} */
const asShare = (share) => number(Math.min(1, Math.max(0, share)), 2);

/** What the newest version did to single items: a push shows here first.
 * @type {(overview: Overview) => void} */
function showMoved({ moved_most, held_rows = 0, capped_rows = 0, capped_items = 0, busiest_range_reports = 0 }) {
  const held = say("admin.held", { held: held_rows, capped: capped_rows, items: capped_items });
  const ranges = say("admin.ranges", { count: busiest_range_reports });
  fill(
    byId("moved"),
    moved_most?.length
      ? numbersTable(
          say("admin.moved-caption"),
          [say("admin.moved-item"), say("admin.moved-by")],
          moved_most.map(({ item, move }) => [item, short(move)]),
        )
      : element("p", { class: "quiet" }, say("admin.moved-none")),
    element("p", { class: "quiet" }, together(held, ranges)),
  );
}

/** What devices that evaluate have said, deniably: the share who would have been shown the item that they hold back; or how far
off the rating is predicted that they hold back.
 * @type {(judged: Judged[]) => void} */
function showJudged(judged) {
  if (!judged.length) return fill(byId("judged"), element("p", { class: "quiet" }, say("admin.judged-none")));
  const interval = say("admin.judged-interval");
  /** @type {(shown: (value: number) => string, value?: number, low?: number, high?: number) => string[]} */
  const cells = (shown, value, low, high) =>
    value === undefined || low === undefined || high === undefined
      ? ["–", "–"]
      : [shown(value), say("admin.from-to", { low: shown(low), high: shown(high) })];
  const asError = (/** @type {number} */ error) => number(error, 2);
  const isRated = judged.some(({ mae, rmse }) => mae !== undefined || rmse !== undefined);
  const measures = isRated ? ["MAE", interval, "RMSE", interval] : [say("admin.judged-share"), interval];
  const rows = judged.map(
    ({ version, answers, share, low, high, mae, mae_low, mae_high, rmse, rmse_low, rmse_high }) => {
      const errors = () => [...cells(asError, mae, mae_low, mae_high), ...cells(asError, rmse, rmse_low, rmse_high)];
      return [`${version}`, short(answers), ...(isRated ? errors() : cells(asShare, share, low, high))];
    },
  );
  const columns = [say("admin.judged-version"), say("admin.judged-answers"), ...measures];
  const caption = say(isRated ? "admin.judged-ratings" : "admin.judged-caption");
  const title = say("admin.judged-count", { count: rows.length });
  return fill(byId("judged"), foldedTable("judged-table", title, caption, columns, rows));
}

/** @type {(rejected: Record<string, number>) => void} */
function showRejected(rejected) {
  const rows = Object.entries(rejected).map(([reason, count]) => [
    say("admin.reason-words", { slug: reason, words: sayWord("reason", reason) }),
    short(count),
  ]);
  put("rejected", rows.length, "admin.rejected-none", () =>
    numbersTable(say("admin.rejected-caption"), [say("admin.reason"), say("admin.uploads")], rows),
  );
}

/** @type {(latency: NonNullable<Overview["latency_ms"]>) => void} */
function showLatency(latency) {
  const rows = Object.entries(latency).map(([route, { requests, p50, p99 }]) => [
    route,
    ...[requests, p50, p99].map(short),
  ]);
  const title = say("admin.latency-count", { count: rows.length });
  const columns = [say("admin.route"), say("admin.requests"), say("admin.half"), say("admin.nearly-all")];
  fill(
    byId("latency"),
    element("p", { class: "quiet" }, say(rows.length ? "admin.latency-words" : "admin.latency-none")),
    rows.length ? foldedTable("latency-table", title, say("admin.latency-caption"), columns, rows) : null,
  );
}

/** @type {(rejected?: Record<string, number>) => string} */
const reasonsOf = (rejected = {}) =>
  Object.entries(rejected)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(", ") || "–";

/** @type {[title: Key, cell: (round: Round) => string][]} */
const ROUND_COLUMNS = [
  ["admin.round", ({ number: round, state }) => `${round}: ${sayWord("state", state)}`],
  ["admin.ended", ({ ended }) => (ended ? clock(ended, "day") : "–")],
  ["admin.tasks", ({ granted }) => short(granted)],
  ["admin.reports-column", ({ reports }) => short(reports)],
  ["admin.dropouts", ({ dropouts }) => short(dropouts)],
  ["admin.rejected-column", ({ rejected }) => reasonsOf(rejected)],
  ["admin.bytes-column", ({ bytes }) => short(bytes)],
  ["admin.clipped", ({ clipped }) => short(clipped)],
  ["admin.drift", ({ drift }) => short(drift)],
  ["admin.seconds", ({ seconds }) => short(seconds)],
];

/** @type {(rounds: Round[]) => void} */
function showRounds(rounds) {
  const rows = rounds.map((round) => ROUND_COLUMNS.map(([, cell]) => cell(round)));
  const columns = ROUND_COLUMNS.map(([title]) => say(title));
  const title = say("admin.rounds-count", { count: rows.length });
  put("rounds", rows.length, "admin.rounds-none", () =>
    foldedTable("rounds-table", title, say("admin.rounds-caption"), columns, rows),
  );
}

function signOut() {
  sessionStorage.removeItem(KEY);
  clearTimeout(timer);
  byId("entrance").hidden = false;
  byId("inside").hidden = true;
  byId("standing").textContent = say("admin.signed-out");
  byId("standing").dataset.health = "";
  byId("health").hidden = true;
}

/** @type {(path: string, body?: object) => Promise<void>} */
async function act(path, body) {
  try {
    await ask(path, body);
  } catch (fault) {
    showTrouble(worded(saidOf(fault)));
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
prepareTexts(() => (sessionStorage.getItem(KEY) && latest ? show(latest) : undefined));
look();
