/* What leaves: before anything does, a sheet with what would go out and what stays, as posters that can be moved; afterwards a report of
what was sent and what became of it, with dates. Whatever goes out for the first time waits half a minute, with a way to stop it.
*/

import { ask } from "./ask.js";
import { button, byId, element, fill, folded } from "./elements.js";
import { openItem } from "./item.js";
import { counted, dated, language, say, sayWord, short, worded } from "./language.js";
import { download, save } from "./mine.js";
import { picture, pips } from "./pictures.js";
import { smallPosters, tile } from "./posters.js";
import {
  here,
  howOften,
  inFull,
  nowDoing,
  on,
  outcome,
  readers,
  seasonLines,
  sides,
  titleOf,
  whatHasLeft,
  whoReads,
} from "./sentences.js";

/** @import { Answer } from "./ask.js" */

const WAIT = 30; // seconds before something goes out for the first time
const SHOWN_BYTES = 256;
const SHOWN_NUMBERS = 4;
const SMALL = 3; // posters of an upload that its line shows
const MOST_UPLOADS = 60;
const FEW = 0.3;
const SHARES = ["none", "few", "half", "all"]; // how much of a list may leave
/** @type {View} */
let view;
/** @type {Act} */
let act;
/** Whether the sheet is open though something has been agreed to. */
let isEditing = false;
let [drawn, guessed] = ["", ""];
/** @type {boolean | null} */
let wasSheet = null;
/** @type {Answer<"guesses">} */
let guesses = null;
/** @type {Status["simulated"]} */
let simulated = null;

/** @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  setInterval(tick, 500);
}

/** @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  const isSheet = !view.sealed && (isEditing || (!view.taking && !view.rounds.length));
  byId("leaves-title").textContent = isSheet ? say("sheet.title") : say("report.title", { here: here() });
  byId("leaves-lead").textContent = isSheet ? say("sheet.lead") : whatHasLeft(view);
  const { history, rounds, version } = view;
  // The time of the next upload is no reason to draw again.
  const depends = JSON.stringify([language, isSheet, { ...view, next: 0 }, guesses, simulated]);
  if (depends !== drawn) {
    drawn = depends;
    if (wasSheet !== null && wasSheet !== isSheet && document.body.dataset.screen === "leaves") {
      scrollTo(0, 0); // another page in the place of the last: begin at its top
      byId("leaves-title").focus({ preventScroll: true });
    }
    wasSheet = isSheet;
    fill(byId("leaves"), ...(isSheet ? sheet() : report()));
    showFolded();
    tick();
  }
  const current = JSON.stringify([rounds.map(({ ticket }) => ticket), version, history.map(({ id }) => id)]);
  if (current === guessed || !rounds.length) return;
  guessed = current;
  guesses = await ask("guesses");
  await show(view);
}

/** What the federation says of itself: where its clients are simulated, how they are; null where it does not answer.
 * @type {(status: Status | null) => Promise<void>} */
export async function showStatus(status) {
  simulated = status?.simulated ?? null;
  if (view) await show(view);
}

// The sheet.

/** The share of a list that a level stands for; "a few" is what the federation suggests, where that is few.
 * @type {(level: string) => number} */
function shareOf(level) {
  const { pi } = view.federation;
  return { none: 0, few: pi > 0 && pi < 0.5 ? pi : FEW, half: 0.5, all: 1 }[level] ?? 0;
}

/** Sharing of everything among decoys would deny nothing.
 * @type {(pi: number) => number} */
const mostOf = (pi) => (view.choice.sharing === "randomized-response" ? Math.min(pi, 0.95) : pi);

/** @type {() => Child[]} */
function sheet() {
  const { history, choice, federation, taking, blocked } = view;
  const isOver = blocked?.[0] === "blocked.season-over";
  if (!history.length)
    return [
      element("p", {}, say("sheet.pick-first")),
      element("p", {}, element("a", { class: "button", href: "#wall" }, say("for-you.pick"))),
    ];
  if (readers(view) === "none") return [who()];
  const { out, stays } = sides(view);
  const levels = SHARES.map((level) => {
    const pi = shareOf(level);
    const isOn = !choice.byHand && Math.abs(choice.pi - pi) < 1e-9;
    const choose = () => act("setPolicy", { change: { pi: mostOf(pi), byHand: null, neverIds: [] } });
    return button(sayWord("level", level), choose, {
      "aria-pressed": String(isOn),
      "data-level": level,
      "data-key": level,
    });
  });
  const go = async () => {
    isEditing = false;
    if (taking) return show(view);
    if (!out.length) return (location.hash = "#for-you");
    navigator.storage?.persist?.(); // so that the browser does not clear the record to make room
    return act("takePart");
  };
  const all = { count: out.length, counted: counted(out.length, federation.noun) };
  const words = taking ? say("sheet.done") : out.length ? say("sheet.go", all) : say("sheet.go-none");
  const notNow = element("a", { class: "button bare", href: "#for-you" }, say("sheet.not-now"));
  const outWords = out.length ? howOften(view) : say("sheet.out-none");
  return [
    element("div", { class: "seg", role: "group", "aria-label": say("sheet.level") }, ...levels),
    side("stays", say("sheet.stays", { on: on() }), stays, say("sheet.stays-words")),
    side("out", say(view.plain ? "sheet.out-plain" : "sheet.out"), out, outWords),
    who(),
    isOver ? element("p", { class: "warned" }, worded(blocked)) : null,
    element("p", { class: "go-row" }, button(words, go, { class: "yes wide", "data-key": "go" })),
    taking || !out.length ? null : element("p", { class: "go-row" }, notNow),
    taking || !out.length ? null : element("p", { class: "quiet center" }, say("sheet.fine", { count: WAIT })),
  ];
}

/** What stays, or what goes out: a press moves a poster to the other side.
 * @type {(name: "stays" | "out", title: string, items: OwnItem[], words: string) => HTMLElement} */
function side(name, title, items, words) {
  const { history } = view;
  const count = element("small", {}, say("sheet.of", { count: items.length, of: history.length }));
  const canMove = items.length && history.some(({ left }) => !left);
  return element(
    "section",
    { class: `panel side ${name}`, "aria-label": title },
    element("h2", {}, picture(name === "stays" ? "lock" : "plane"), element("span", {}, title), count),
    items.length ? element("ul", { class: "moving" }, ...items.map((item) => moving(item, name))) : null,
    element("p", { class: "quiet" }, words, canMove ? ` ${say(name === "out" ? "sheet.tap-out" : "sheet.tap")}` : ""),
  );
}

/** @type {(item: OwnItem, name: "stays" | "out") => HTMLElement} */
function moving(item, name) {
  const { name: title } = titleOf(item);
  const isDrawn = view.choice.sharing === "randomized-response"; // by chance, once per client: only what goes out can be stored
  const isFixed = item.left || (isDrawn && name === "stays");
  const move = () => {
    if (isFixed) return openItem(item);
    if (isDrawn) return act("keepHere", { ids: [item.id] });
    const ids = sides(view).out.map(({ id }) => id);
    const byHand = name === "out" ? ids.filter((id) => id !== item.id) : [...ids, item.id];
    return act("setPolicy", { change: { byHand } });
  };
  const label = isFixed ? say("where.left") : say(name === "out" ? "move.keep" : "move.share");
  const attributes = { "aria-label": `${title}: ${label}`, "data-key": `move ${item.id}`, "data-item": item.id };
  const badge = item.left ? element("span", { class: "badge" }, say("where.left")) : null;
  return element("li", {}, tile(item, move, attributes, badge));
}

function who() {
  const { words, warning } = whoReads(view, location.hostname, language);
  const kind = readers(view);
  return element(
    "section",
    { class: "panel who", "data-readers": kind },
    picture(kind, 72),
    element("div", {}, element("h2", {}, say("who.title")), element("p", {}, words)),
    warning ? element("p", { class: kind === "together" ? "warned" : "quiet" }, warning) : null,
  );
}

// The report.

/** @type {() => Child[]} */
function report() {
  const { rounds, messages, taking, hold, sealed } = view;
  const isAway = taking && ["starting", "stopped"].includes(simulated?.state ?? "");
  const doing = [nowDoing(view), isAway ? say("simulated.away") : ""].filter(Boolean).join(" ");
  const edit = () => ((isEditing = true), show(view));
  const resume = () => act(taking ? "pause" : "takePart");
  const sent = messages && { count: messages.made, most: messages.most };
  const uploads = element(
    "section",
    { class: "panel" },
    sent && pips(sent.count, sent.most, say("report.pips", sent)),
    doing ? element("p", { id: "doing", class: "quiet" }, doing) : null,
    rounds.length ? element("ul", { class: "timeline" }, ...rounds.slice(0, MOST_UPLOADS).map(entry)) : null,
  );
  const choices = [
    button(say("report.change"), edit, { "data-key": "change" }),
    button(say(taking ? "report.pause" : "report.resume"), resume, { class: taking ? "" : "yes", "data-key": "pause" }),
  ];
  return [
    hold ? held() : null,
    rounds.length || doing ? uploads : null,
    rounds.length && guesses ? guess(guesses) : null,
    element(
      "div",
      { class: "actions even" },
      ...(sealed ? [] : choices),
      button(say("mine.save"), save, { "data-key": "save-record" }),
    ),
  ];
}

function held() {
  const items = view.history.filter((item) => item.waits);
  const ids = items.map(({ id }) => id);
  const stop = () => (view.rounds.length ? act("keepHere", { ids }) : act("pause"));
  return element(
    "section",
    { class: "panel hold" },
    element("span", { id: "ring", class: "ring", "aria-hidden": "true" }),
    element("p", { id: "hold-words", role: "timer" }),
    button(say("hold.stop"), stop, { "data-key": "stop" }),
    smallPosters(items, 2 * SMALL),
  );
}

/** The countdown, drawn again every half second; it is not read out each time. */
function tick() {
  const place = document.getElementById("ring");
  if (!view?.hold || !place) return;
  const left = Math.max(0, Math.min(WAIT, Math.ceil((view.hold - Date.now()) / 1000)));
  if (place.dataset.left === String(left)) return;
  place.dataset.left = String(left);
  place.style.setProperty("--share", String(left / WAIT));
  place.textContent = String(left);
  byId("hold-words").textContent = say("hold.in", { count: left });
}

/** @type {(round: StoredRound) => HTMLElement} */
function entry(round) {
  const { text, good } = outcome(round, view);
  const own = round.liked.flatMap((id) => view.history.find((item) => item.id === id) ?? []);
  const titles = round.liked.map((id) => view.ledger.find((stored) => stored.id === id)?.title ?? id);
  return element(
    "li",
    { "data-outcome": round.outcome, "data-ticket": round.ticket },
    element("time", { datetime: new Date(round.at).toISOString() }, dated(round.at)),
    element("span", { class: good === null ? "" : good ? "good" : "bad" }, text),
    smallPosters(own, SMALL, { role: "img", "aria-label": titles.join(", ") }),
  );
}

/** What an attacker could guess of what stays: the page has tried.
 * @type {(result: NonNullable<Answer<"guesses">>) => HTMLElement | null} */
function guess({ hidden: count, named, namedByPopularity: popular }) {
  if (!count) return null;
  const words = say("guess.named", { count, named, popular });
  return element(
    "section",
    { class: "panel side stays", id: "guess" },
    element("h2", {}, picture("eye"), element("span", {}, say("guess.title", { count }))),
    element("p", {}, `${say(view.plain ? "guess.tried" : "guess.joined")} ${words}`),
  );
}

// What is folded: the last message as it is, and how this works.

function showFolded() {
  const terms = inFull(view, location.origin).flatMap(([title, words]) => [
    element("dt", {}, title),
    element("dd", {}, words),
  ]);
  const curious = folded("curious", say("curious.title"), element("div", { id: "raw" }));
  curious.addEventListener("toggle", () => curious.open && showRaw());
  const how = folded(
    "how",
    say("how.title"),
    terms.length ? element("dl", { class: "meaning" }, ...terms) : element("p", {}, say("how.read-words")),
    element("p", {}, element("a", { href: "how.html" }, say("how.more"))),
  );
  fill(byId("folded"), view.rounds.length ? curious : null, how);
}

/** The last message: its bytes, and where it was split, its numbers before that. */
async function showRaw() {
  const message = await ask("lastMessage");
  const place = document.getElementById("raw");
  if (!place) return;
  if (!message) return fill(place, element("p", { class: "quiet" }, say("curious.gone")));
  const { body, at, rows, columns, covered } = message;
  const { noun } = view.federation;
  const hex = Array.from(body.subarray(0, SHOWN_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const compared = view.ledger.filter((stored) => stored.times_compared > 0).length;
  const keep = () => download(new Blob([body], { type: "application/octet-stream" }), "message.bin");
  const lines = rows.map(({ item, numbers }) => {
    const first = numbers.slice(0, SHOWN_NUMBERS).map(short);
    const more = numbers.length > SHOWN_NUMBERS ? "  …" : "";
    return element(
      "li",
      {},
      element("span", { class: "what" }, titleOf(item).name),
      element("code", {}, first.join("  ") + more),
    );
  });
  const before = say("curious.before", { counted: counted(covered, noun), count: columns });
  return fill(
    place,
    ...seasonLines(view).map((line) => element("p", {}, line)),
    compared ? element("p", {}, say("curious.compared", { counted: counted(compared, noun) })) : null,
    rows.length ? element("p", {}, before) : null,
    rows.length ? element("ul", { class: "rows" }, ...lines) : null,
    element("p", {}, say("curious.bytes", { when: dated(at), bytes: body.length })),
    element("pre", { class: "raw", tabindex: "0", "aria-label": say("curious.hex") }, hex),
    button(say("curious.save"), keep, { class: "small", "data-key": "raw-save" }),
  );
}
