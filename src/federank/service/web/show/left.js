/* What has left this device: a picture, a sentence, the ledger by item and by round, and what could still be guessed. */

import { ask } from "./ask.js";
import { byId, element, fill, isOpen, table } from "./elements.js";
import { counted, language, named, number, say, together } from "./language.js";
import { disclosedPicture, legend } from "./pictures.js";
import { bound, whatHasLeft } from "./sentences.js";

/** @import { Guesses } from "../device/owner/guesses.js" */
/** @import { KeptEntry, KeptRound } from "../device/store.js" */
/** @import { OwnItem, View } from "../device/view.js" */
/** @import { Key } from "../faults.js" */

const MOST_ROWS = 200;
const SHOWN_BYTES = 512;
/** @type {Record<string, Key>} */
const OUTCOMES = {
  "on its way": "outcome.on-its-way",
  received: "outcome.received",
  aggregated: "outcome.aggregated",
  unknown: "outcome.unknown",
  "held back": "outcome.held-back",
};
/** What a file calls these columns where items are rated (protocol/ledger.py).
 * @type {Record<string, string>} */
const RATING_NAMES = { times_liked: "times_rated", times_compared: "times_sampled" };
let known = "";

/** Show a view of the device.
 * @type {(view: View) => Promise<void>} */
export async function show(view) {
  const { history } = view;
  const left = history.filter((item) => item.left).length;
  /** @type {(item: OwnItem) => boolean} */
  const isDecoy = (item) => !item.left && !item.mayLeave && (item.asDecoy || item.leftAsDecoy);
  const decoys = history.filter(isDecoy).length;
  const mayLeave = history.filter((item) => item.mayLeave && !item.left).length + decoys;
  const stays = history.length - left - mayLeave;
  const sentence = whatHasLeft(view);
  byId("left-sentence").textContent = sentence;
  if (history.length)
    fill(
      byId("left-picture"),
      disclosedPicture({ left, mayLeave, stays }, say("left.picture", { sentence, may: mayLeave, stays })),
      legend([
        ["cell-left", say("left.legend-left", { count: left })],
        ["cell-may", say(decoys ? "left.legend-decoys" : "left.legend-may", { count: mayLeave, decoys })],
        ["cell-stays", say("left.legend-stays", { count: stays })],
      ]),
    );
  else fill(byId("left-picture"));
  showTables(view);
  await showRaw(view);
  await showGuesses(view);
}

/** What became of a message. Earlier pages wrote it down in English, and so it stays.
 * @type {(round: KeptRound) => string} */
function outcomeOf({ outcome, why }) {
  if (why) return say(outcome === "discarded" ? "outcome.discarded" : "outcome.not-used", { why });
  return Object.hasOwn(OUTCOMES, outcome) ? say(OUTCOMES[outcome]) : outcome;
}

/** @type {(id: string, title: string, content: HTMLElement) => HTMLElement} */
function openable(id, title, content) {
  return element("details", { id, open: isOpen(id) }, element("summary", { "data-key": id }, title), content);
}

/** @type {(view: View) => void} */
function showTables({ ledger, rounds, federation, messages, plain }) {
  const { noun } = federation;
  const { item } = named(noun);
  if (!rounds.length) return fill(byId("left-tables"), element("p", { class: "quiet" }, say("left.listed-here")));
  const sent = ledger.filter((entry) => entry.times_liked > 0);
  const compared = ledger.filter((entry) => entry.times_compared > 0);
  /** @type {(entry: KeptEntry) => string} */
  const span = ({ first_round: first, last_round: last }) => (first === last ? String(first) : `${first} – ${last}`);
  const isRated = federation.scale !== null;
  const titleOf = new Map(ledger.map((entry) => [entry.id, entry.title]));
  return fill(
    byId("left-tables"),
    openable(
      "left-items",
      say(!plain ? "left.in-messages-count" : isRated ? "left.rated-count" : "left.sent-count", {
        counted: counted(sent.length, noun),
      }),
      table(
        say(!plain ? "left.in-messages" : isRated ? "left.rated" : "left.sent"),
        [[item], [say("column.times"), "number"], [say("column.rounds"), "number"], [say("column.yours")]],
        sent
          .slice(0, MOST_ROWS)
          .map((entry) => [
            entry.title,
            String(entry.times_liked),
            span(entry),
            say(entry.real ? "cell.yes" : "cell.decoy"),
          ]),
      ),
    ),
    compared.length || !messages
      ? openable(
          "left-compared",
          say(isRated ? "left.sampled-count" : "left.compared-count", { counted: counted(compared.length, noun) }),
          element(
            "div",
            {},
            element(
              "p",
              { class: "quiet" },
              together(
                say(isRated ? "left.sampled-words" : "left.compared-words"),
                compared.length > MOST_ROWS ? say("left.most-frequent", { count: MOST_ROWS }) : "",
              ),
            ),
            table(
              say(isRated ? "left.sampled" : "left.compared"),
              [[item], [say("column.times"), "number"], [say("column.rounds"), "number"]],
              compared.slice(0, MOST_ROWS).map((entry) => [entry.title, String(entry.times_compared), span(entry)]),
            ),
          ),
        )
      : null,
    openable(
      "left-rounds",
      say("left.rounds-count", { messages: say("messages", { count: rounds.length }) }),
      table(
        say("left.rounds"),
        [
          [say("column.round"), "number"],
          [say(!plain ? "column.made-from" : isRated ? "column.rated" : "column.sent")],
          [say(messages ? "column.message" : isRated ? "column.sampled" : "column.compared"), "number"],
          [say("column.bytes"), "number"],
          [say("column.outcome")],
        ],
        rounds
          .slice(0, MOST_ROWS)
          .map((round) => [
            String(round.round),
            round.liked.map((id) => titleOf.get(id) ?? id).join(", ") || say("cell.nothing"),
            !messages
              ? String(round.compared)
              : round.number
                ? say("cell.of", { number: round.number, of: round.of })
                : "–",
            number(round.bytes),
            outcomeOf(round),
          ]),
      ),
    ),
    openable("left-raw", say("left.raw"), element("div", { id: "raw" })),
    element(
      "button",
      { type: "button", class: "small", "data-key": "ledger-export", on: { click: () => saveLedger(ledger, isRated) } },
      say("left.save"),
    ),
  );
}

/** @type {(body: Uint8Array) => string} */
const inHex = (body) =>
  Array.from(body.subarray(0, SHOWN_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join(" ");

/** The last message byte by byte, where its box is open; nothing is asked for before.
 * @type {(view: View) => Promise<void>} */
async function showRaw({ plain }) {
  const box = document.getElementById("left-raw");
  if (!(box instanceof HTMLDetailsElement)) return;
  const told = async () => {
    if (!box.open) return;
    const message = await ask("lastMessage");
    const place = document.getElementById("raw");
    if (!place) return;
    if (!message) return fill(place, element("p", { class: "quiet" }, say("raw.gone")));
    const { round, body } = message;
    const more = body.length > SHOWN_BYTES ? say("raw.first", { count: SHOWN_BYTES }) : "";
    const save = () => saved(new Blob([body], { type: "application/octet-stream" }), `message-of-round-${round}.bin`);
    return fill(
      place,
      element(
        "p",
        { class: "quiet" },
        together(
          say("raw.made", { round: String(round), bytes: body.length }),
          say(plain ? "raw.read" : "raw.half"),
          more,
        ),
      ),
      element("pre", { class: "raw", tabindex: "0", "aria-label": say("raw.label") }, inHex(body)),
      element(
        "button",
        { type: "button", class: "small", "data-key": "raw-save", on: { click: save } },
        say("raw.save"),
      ),
    );
  };
  box.addEventListener("toggle", told);
  await told();
}

/** Put something on the person's own disk.
 * @type {(content: Blob, name: string) => void} */
function saved(content, name) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The ledger as a file on the person's own disk.
 * @type {(ledger: View["ledger"], isRated: boolean) => void} */
function saveLedger(ledger, isRated) {
  /** @type {(keyof KeptEntry)[]} */
  const names = ["id", "title", "first_round", "last_round", "times_liked", "times_compared", "real"];
  /** @type {(value: unknown) => string} */
  const cell = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const columns = isRated ? names.map((name) => RATING_NAMES[name] ?? name) : names;
  const text = [columns.join(), ...ledger.map((entry) => names.map((name) => cell(entry[name])).join())].join("\r\n");
  saved(new Blob([text], { type: "text/csv" }), "what-has-left.csv");
}

/** One sentence instead of many: what the messages told beyond what is popular.
 * @type {(view: View) => Promise<void>} */
async function showGuesses(view) {
  const depends = JSON.stringify([
    language,
    view.rounds.length,
    view.version,
    view.history.map(({ id }) => id),
    view.choice,
  ]);
  if (depends === known) return;
  known = depends;
  const found = await ask("guesses");
  if (depends !== known) return;
  const more = element("a", { href: "privacy.html" }, say("told.measured"));
  fill(
    byId("guesses"),
    element("p", { id: "guess-sentence", class: "sentence" }, guessed(view, found)),
    element("p", { class: "quiet" }, `${together(...inGeneral(view, found))} `, more),
  );
}

/** @type {(found: Guesses, noun: { one: string, many: string }) => string} */
function beyondPopularity(found, noun) {
  if (!found.tried) return say(found.made ? "told.untried" : "told.no-message");
  if (!found.hidden) return say("told.everything");
  const { hidden, named: right, namedByPopularity: popular } = found;
  const key = right > popular ? "told.more" : right < popular ? "told.less" : "told.same";
  return say(key, { count: hidden, counted: counted(hidden, noun), named: right, popular });
}

/** The same where no server reads a message: what one server or an outsider can tell, and what both together could.
 * @type {(view: View, found: Guesses) => string} */
function guessed({ plain, promised, federation, history }, found) {
  if (!history.length && found.tried) return say("told.empty");
  const played = beyondPopularity(found, federation.noun);
  if (plain || !found.tried) return played;
  const alone =
    !promised || promised.epsilon === null
      ? say("told.unbounded")
      : say("told.bounded", { epsilon: bound(promised.epsilon) });
  return together(alone, say("told.both", { played }));
}

/** What was measured of this way of sharing (docs/privacy.md), in a sentence. Before there is a message, who could read one stands
beside the slider, and is not said again.
 * @type {(view: View, found: Guesses) => string[]} */
function inGeneral({ choice: { sharing, basis }, plain, federation }, found) {
  const isSaid = !found.tried && !found.made;
  const cleverer = isSaid ? "" : say("told.cleverer");
  if (federation.scale && plain) return [say("general.ratings"), cleverer];
  if (sharing === "all") return [say("general.all"), cleverer];
  if (sharing === "randomized-response") return [say("general.randomized-response"), cleverer];
  if (basis === "history") return [say("general.history"), cleverer];
  if (plain) return [isSaid ? "" : say("general.plain"), cleverer];
  return [say("general.sums"), cleverer];
}
