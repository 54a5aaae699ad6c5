/* What leaves: before anything does, a sheet with what would go out and what stays, as posters that can be moved; afterwards a report of
what was sent and what became of it, with dates. Whatever goes out for the first time waits half a minute, with a way to stop it.
*/

import { ask } from "./ask.js";
import { byId, element, fill, isOpen } from "./elements.js";
import { openItem } from "./item.js";
import { counted, dated, language, number, say } from "./language.js";
import { save, saved } from "./mine.js";
import { crossing, icon, pips, ring } from "./pictures.js";
import { poster } from "./posters.js";
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
  titleIn,
  whatHasLeft,
  whoReads,
} from "./sentences.js";

/** @import { Status } from "../client/federation.js" */
/** @import { KeptRound } from "../client/store.js" */
/** @import { OwnItem, View } from "../client/view.js" */
/** @import { Key } from "../faults.js" */
/** @import { Act, Answer } from "./ask.js" */

const WAIT = 30; // seconds before something goes out for the first time
const SHOWN_BYTES = 256;
const SMALL = 3; // posters of an upload that its line shows
const FEW = 0.3;
/** How much of a list may leave, and what that is called.
 * @type {[name: string, key: Key][]} */
const LEVELS = [
  ["none", "level.none"],
  ["few", "level.few"],
  ["half", "level.half"],
  ["all", "level.all"],
];
/** @type {View} */
let view;
/** @type {Act} */
let act;
/** Whether the sheet is open though something has been agreed to. */
let isEditing = false;
let [drawn, guessed] = ["", ""];
/** Whether the sheet was shown last; null before anything was.
 * @type {boolean | null} */
let wasSheet = null;
/** @type {Answer<"guesses"> | null} */
let guesses = null;
/** @type {Status["simulated"]} */
let simulated = null;

/** @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  setInterval(tick, 500);
}

/** Show a view of the client.
 * @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  const isSheet = !view.sealed && (isEditing || (!view.taking && !view.rounds.length));
  byId("leaves-title").textContent = isSheet ? say("sheet.title") : say("report.title", { here: here() });
  byId("leaves-lead").textContent = isSheet ? say("sheet.lead") : whatHasLeft(view);
  const { history, choice, taking, hold, rounds, hurdle, progress, promised, version, messages } = view;
  const depends = JSON.stringify([
    language,
    isSheet,
    history,
    choice,
    taking,
    hold,
    rounds,
    hurdle,
    progress,
    promised,
    messages,
    guesses,
    simulated,
    view.helperAway,
    view.pending,
  ]);
  if (depends !== drawn) {
    drawn = depends;
    if (wasSheet !== null && wasSheet !== isSheet && document.body.dataset.screen === "leaves") top();
    wasSheet = isSheet;
    fill(byId("leaves"), ...(isSheet ? sheet() : report()));
    showFolded();
    tick();
  }
  const asked = JSON.stringify([rounds.map(({ ticket }) => ticket), version, history.map(({ id }) => id)]);
  if (asked === guessed || !rounds.length) return;
  guessed = asked;
  guesses = await ask("guesses");
  await show(view);
}

/** Another page in the place of the last: begin at its top. */
function top() {
  scrollTo(0, 0);
  byId("leaves-title").focus({ preventScroll: true });
}

/** What the federation says of itself: where its clients are simulated, how they are; null where it does not answer.
 * @type {(status: Status | null) => Promise<void>} */
export async function showStatus(status) {
  simulated = status?.simulated ?? null;
  if (view) await show(view);
}

/** @type {(words: string, press: () => unknown, kind?: string, key?: string) => HTMLElement} */
const button = (words, press, kind = "", key = words) =>
  element("button", { type: "button", class: kind, "data-key": key, on: { click: press } }, words);

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

/** @type {() => (HTMLElement | null)[]} */
function sheet() {
  const { history, choice, federation, taking } = view;
  if (!history.length)
    return [
      element("p", {}, say("sheet.pick-first")),
      element("p", {}, element("a", { class: "button", href: "#wall" }, say("for-you.pick"))),
    ];
  const { out, stays } = sides(view);
  const isAll = (/** @type {string} */ level) => !choice.byHand && Math.abs(choice.pi - shareOf(level)) < 1e-9;
  const levels = LEVELS.map(([level, key]) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(isAll(level)),
        "data-level": level,
        "data-key": level,
        on: { click: () => act("setPolicy", { change: { pi: mostOf(shareOf(level)), byHand: null, neverIds: [] } }) },
      },
      say(key),
    ),
  );
  const all = { count: out.length, counted: counted(out.length, federation.noun) };
  const go = async () => {
    isEditing = false;
    if (taking) return show(view);
    if (!out.length) return (location.hash = "#for-you");
    navigator.storage?.persist?.(); // so that the browser does not clear the record to make room
    return act("takePart");
  };
  const words = taking ? say("sheet.done") : out.length ? say("sheet.go", all) : say("sheet.go-none");
  return [
    element("div", { class: "seg", role: "group", "aria-label": say("sheet.level") }, ...levels),
    side("stays", "lock", say("sheet.stays", { on: on() }), stays, say("sheet.stays-words")),
    side(
      "out",
      "plane",
      say(view.plain ? "sheet.out-plain" : "sheet.out"),
      out,
      out.length ? howOften(view) : say("sheet.out-none"),
    ),
    who(),
    element("p", { class: "go-row" }, button(words, go, "yes wide", "go")),
    taking
      ? null
      : element(
          "p",
          { class: "go-row" },
          element("a", { class: "button bare", href: "#for-you" }, say("sheet.not-now")),
        ),
    taking || !out.length ? null : element("p", { class: "quiet center" }, say("sheet.fine", { count: WAIT })),
  ];
}

/** What stays, or what goes out: a tap moves a poster to the other side.
 * @type {(name: "stays" | "out", drawing: "lock" | "plane", title: string, items: OwnItem[], words: string) => HTMLElement} */
function side(name, drawing, title, items, words) {
  const all = view.history.length;
  return element(
    "section",
    { class: `panel side ${name}`, "aria-label": title },
    element(
      "h2",
      {},
      icon(drawing),
      element("span", {}, title),
      element("small", {}, say("sheet.of", { count: items.length, of: all })),
    ),
    items.length ? element("ul", { class: "moving" }, ...items.map((item) => moving(item, name))) : null,
    element(
      "p",
      { class: "quiet" },
      words,
      " ",
      items.length && view.history.some(({ left }) => !left) ? say(name === "out" ? "sheet.tap-out" : "sheet.tap") : "",
    ),
  );
}

/** @type {(item: OwnItem, name: "stays" | "out") => HTMLElement} */
function moving(item, name) {
  const { name: title, lang } = titleIn(item, language, view.federation.language);
  const isDrawn = view.choice.sharing === "randomized-response"; // by chance, once per client: only what goes out can be kept
  const isFixed = item.left || (isDrawn && name === "stays");
  const move = () => {
    if (isFixed) return openItem(item);
    if (isDrawn) return act("keepHere", { ids: [item.id] });
    const ids = sides(view).out.map(({ id }) => id);
    const byHand = name === "out" ? ids.filter((id) => id !== item.id) : [...ids, item.id];
    return act("setPolicy", { change: { byHand } });
  };
  const label = isFixed ? say("where.left") : say(name === "out" ? "move.keep" : "move.share");
  return element(
    "li",
    {},
    element(
      "button",
      {
        type: "button",
        class: "tile",
        lang,
        "aria-label": `${title}: ${label}`,
        "data-key": `move ${item.id}`,
        "data-item": item.id,
        on: { click: move },
      },
      poster(item, title),
      item.left ? element("span", { class: "badge" }, say("where.left")) : null,
    ),
  );
}

/** Who can read what goes out: two sentences and a drawing. */
function who() {
  const { words, warning } = whoReads(view, location.hostname, language);
  return element(
    "section",
    { class: "panel who", "data-readers": readers(view) },
    crossing(readers(view)),
    element("div", {}, element("h2", {}, say("who.title")), element("p", {}, words)),
    warning ? element("p", { class: view.promised?.together === null ? "quiet" : "warned" }, warning) : null,
  );
}

// The report.

/** @type {() => (HTMLElement | null)[]} */
function report() {
  const { rounds, messages, taking, hold, sealed } = view;
  const doing = nowDoing(view);
  const busy = taking && ["starting", "stopped"].includes(simulated?.state ?? "") ? say("simulated.away") : "";
  return [
    hold ? held() : null,
    element(
      "section",
      { class: "panel" },
      messages
        ? pips(messages.made, messages.most, say("report.pips", { count: messages.made, most: messages.most }))
        : null,
      doing || busy ? element("p", { id: "doing", class: "quiet" }, [doing, busy].filter(Boolean).join(" ")) : null,
      rounds.length ? element("ul", { class: "timeline" }, ...rounds.slice(0, 60).map(entry)) : null,
    ),
    rounds.length && guesses ? guess(guesses) : null,
    element(
      "div",
      { class: "actions" },
      sealed ? null : button(say("report.change"), () => ((isEditing = true), show(view)), "", "change"),
      sealed
        ? null
        : button(
            say(taking ? "report.pause" : "report.resume"),
            () => act(taking ? "pause" : "takePart"),
            taking ? "" : "yes",
            "pause",
          ),
      button(say("mine.save"), save, "", "save-record"),
    ),
  ];
}

/** What goes out in a moment, and how to stop it. */
function held() {
  const items = view.history.filter((item) => item.waits);
  const isFirst = !view.rounds.length;
  const stop = () => (isFirst ? act("pause") : act("keepHere", { ids: items.map(({ id }) => id) }));
  return element(
    "section",
    { class: "panel hold" },
    element("span", { id: "ring" }),
    element(
      "div",
      { class: "small-posters" },
      ...items.slice(0, 2 * SMALL).map((item) => poster(item, titleIn(item, language).name)),
    ),
    element("p", { id: "hold-words", role: "timer" }),
    button(say("hold.stop"), stop, "", "stop"),
  );
}

/** The countdown, drawn again every half second; it is not read out each time. */
function tick() {
  const place = document.getElementById("ring");
  if (!view?.hold || !place) return;
  const left = Math.max(0, Math.min(WAIT, Math.ceil((view.hold - Date.now()) / 1000)));
  if (place.dataset.left === String(left)) return;
  place.dataset.left = String(left);
  fill(place, ring(left, WAIT));
  byId("hold-words").textContent = say("hold.in", { count: left });
}

/** @type {(round: KeptRound) => HTMLElement} */
function entry(round) {
  const { text, good } = outcome(round, view);
  const own = round.liked.flatMap((id) => view.history.find((item) => item.id === id) ?? []);
  const titles = round.liked.map((id) => view.ledger.find((kept) => kept.id === id)?.title ?? id);
  return element(
    "li",
    { "data-outcome": round.outcome, "data-ticket": round.ticket },
    element("time", { datetime: new Date(round.at).toISOString() }, dated(round.at)),
    element("span", { class: good === null ? "" : good ? "good" : "bad" }, text),
    element(
      "span",
      { class: "small-posters", role: "img", "aria-label": titles.join(", ") },
      ...own.slice(0, SMALL).map((item) => poster(item, titleIn(item, language).name)),
      own.length > SMALL ? element("small", {}, `+${own.length - SMALL}`) : null,
    ),
  );
}

/** What an attacker could guess of what stays: the page has tried.
 * @type {(found: Answer<"guesses">) => HTMLElement | null} */
function guess(found) {
  if (!found.tried || !found.hidden) return null;
  const { hidden: count, named, namedByPopularity: popular } = found;
  return element(
    "section",
    { class: "panel side stays", id: "guess" },
    element("h2", {}, icon("eye"), element("span", {}, say("guess.title", { count }))),
    element(
      "p",
      {},
      `${say(view.plain ? "guess.tried" : "guess.joined")} ${say("guess.named", { count, named, popular })}`,
    ),
  );
}

// What is folded: the last message as it is, and how this works.

function showFolded() {
  const isSent = view.rounds.length > 0;
  const terms = inFull(view, location.origin).flatMap(([title, words]) => [
    element("dt", {}, title),
    element("dd", {}, words),
  ]);
  const curious = element(
    "details",
    { id: "curious", open: isOpen("curious") },
    element("summary", { "data-key": "curious" }, say("curious.title")),
    element("div", { id: "raw" }),
  );
  curious.addEventListener("toggle", showRaw);
  fill(
    byId("folded"),
    isSent ? curious : null,
    element(
      "details",
      { id: "how", open: isOpen("how") },
      element("summary", { "data-key": "how" }, say("how.title")),
      terms.length ? element("dl", { class: "meaning" }, ...terms) : element("p", {}, say("how.read-words")),
      element("p", {}, element("a", { href: "how.html" }, say("how.more"))),
    ),
  );
  if (isSent && isOpen("curious")) showRaw();
}

/** The last message: its bytes, and where it was split, its numbers before that. */
async function showRaw() {
  const box = document.getElementById("curious");
  if (!(box instanceof HTMLDetailsElement) || !box.open) return;
  const message = await ask("lastMessage");
  const place = document.getElementById("raw");
  if (!place) return;
  if (!message) return fill(place, element("p", { class: "quiet" }, say("curious.gone")));
  const { body, at, rows, columns } = message;
  const hex = Array.from(body.subarray(0, SHOWN_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const compared = view.ledger.filter((kept) => kept.times_compared > 0).length;
  const keep = () => saved(new Blob([body], { type: "application/octet-stream" }), "message.bin");
  return fill(
    place,
    ...seasonLines(view).map((line) => element("p", {}, line)),
    compared ? element("p", {}, say("curious.compared", { counted: counted(compared, view.federation.noun) })) : null,
    rows.length
      ? element(
          "div",
          {},
          element(
            "p",
            {},
            say("curious.before", { counted: counted(view.federation.items, view.federation.noun), columns }),
          ),
          element(
            "ul",
            { class: "rows" },
            ...rows.map(({ title, numbers }) =>
              element(
                "li",
                {},
                element("span", { class: "what" }, title),
                element(
                  "code",
                  {},
                  `${numbers
                    .slice(0, 4)
                    .map((value) => number(value, 3))
                    .join("  ")} …`,
                ),
              ),
            ),
          ),
        )
      : null,
    element("p", {}, say("curious.bytes", { when: dated(at), bytes: body.length })),
    element("pre", { class: "raw", tabindex: "0", "aria-label": say("curious.hex") }, hex),
    button(say("curious.save"), keep, "small", "raw-save"),
  );
}
