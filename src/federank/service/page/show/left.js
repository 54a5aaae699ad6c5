/* What has left this device: a picture, a sentence, the ledger by item and by round, and what could still be guessed. */

import { ask } from "./ask.js";
import { byId, element, fill, isOpen, table } from "./elements.js";
import { disclosedPicture, legend } from "./pictures.js";
import { counted } from "./words.js";

/** @import { Guesses } from "../device/guesses.js" */
/** @import { Choice, KeptEntry } from "../device/store.js" */
/** @import { OwnItem, View } from "../device/view.js" */

const MOST_ROWS = 200;
const MESSAGES = { one: "message", many: "messages" };
let known = "";

/** Show a view of the device.
 * @type {(view: View) => Promise<void>} */
export async function show(view) {
  const { history, rounds, federation } = view;
  const { noun } = federation;
  const left = history.filter((item) => item.left).length;
  /** @type {(item: OwnItem) => boolean} */
  const isDecoy = (item) => !item.left && !item.mayLeave && (item.asDecoy || item.leftAsDecoy);
  const decoys = history.filter(isDecoy).length;
  const mayLeave = history.filter((item) => item.mayLeave && !item.left).length + decoys;
  const stays = history.length - left - mayLeave;
  const sentence = !rounds.length
    ? `Nothing has left this device.${lifetime(view)}`
    : `${left} of your ${counted(history.length, noun)} ${left === 1 ? "has" : "have"} left, in ${counted(rounds.length, MESSAGES)}.${lifetime(view)}`;
  byId("left-sentence").textContent = sentence;
  if (history.length)
    fill(
      byId("left-picture"),
      disclosedPicture({ left, mayLeave, stays }, `${sentence} ${mayLeave} more may leave, ${stays} stay.`),
      legend([
        ["cell-left", `has left: ${left}`],
        ["cell-may", `may leave: ${mayLeave}${decoys ? `, ${decoys} of them as decoys` : ""}`],
        ["cell-stays", `stays: ${stays}`],
      ]),
    );
  else fill(byId("left-picture"));
  showTables(view);
  await showGuesses(view);
}

/** How many messages there will ever be, where they are counted.
 * @type {(view: View) => string} */
function lifetime({ messages }) {
  return messages ? ` At most ${counted(messages.most, MESSAGES)}, ever; ${messages.made} made.` : "";
}

/** @type {(id: string, title: string, content: HTMLElement) => HTMLElement} */
function openable(id, title, content) {
  return element("details", { id, open: isOpen(id) }, element("summary", { "data-key": id }, title), content);
}

/** @type {(view: View) => void} */
function showTables({ ledger, rounds, federation, messages }) {
  const { noun } = federation;
  if (!rounds.length)
    return fill(
      byId("left-tables"),
      element("p", { class: "quiet" }, "When you take part, every message is listed here before it is sent."),
    );
  const sent = ledger.filter((entry) => entry.times_liked > 0);
  const compared = ledger.filter((entry) => entry.times_compared > 0);
  /** @type {(entry: KeptEntry) => string} */
  const span = ({ first_round: first, last_round: last }) => (first === last ? String(first) : `${first} – ${last}`);
  const titleOf = new Map(ledger.map((entry) => [entry.id, entry.title]));
  return fill(
    byId("left-tables"),
    openable(
      "left-items",
      `Sent as yours: ${counted(sent.length, noun)}`,
      table(
        "Sent as yours",
        [[noun.one], ["times", "number"], ["rounds", "number"], ["really yours"]],
        sent
          .slice(0, MOST_ROWS)
          .map((entry) => [entry.title, String(entry.times_liked), span(entry), entry.real ? "yes" : "decoy"]),
      ),
    ),
    compared.length || !messages
      ? openable(
          "left-compared",
          `Sent for comparison: ${counted(compared.length, noun)}`,
          element(
            "div",
            {},
            element(
              "p",
              { class: "quiet" },
              `Drawn by chance from what is outside your outward profile; they say little, but they are in the messages.${compared.length > MOST_ROWS ? ` The ${MOST_ROWS} most frequent:` : ""}`,
            ),
            table(
              "Sent for comparison",
              [[noun.one], ["times", "number"], ["rounds", "number"]],
              compared.slice(0, MOST_ROWS).map((entry) => [entry.title, String(entry.times_compared), span(entry)]),
            ),
          ),
        )
      : null,
    openable(
      "left-rounds",
      `Round by round: ${counted(rounds.length, MESSAGES)}`,
      table(
        "Round by round",
        [
          ["round", "number"],
          ["sent as yours"],
          [messages ? "message" : "compared", "number"],
          ["bytes", "number"],
          ["what became of it"],
        ],
        rounds
          .slice(0, MOST_ROWS)
          .map((round) => [
            String(round.round),
            round.liked.map((id) => titleOf.get(id) ?? id).join(", ") || "nothing",
            !messages ? String(round.compared) : round.number ? `${round.number} of ${round.of}` : "–",
            round.bytes.toLocaleString("en"),
            round.outcome,
          ]),
      ),
    ),
    element(
      "button",
      { type: "button", class: "small", "data-key": "ledger-export", on: { click: () => saveLedger(ledger) } },
      "Save as a CSV file",
    ),
  );
}

/** The ledger as a file on the person's own disk.
 * @type {(ledger: View["ledger"]) => void} */
function saveLedger(ledger) {
  /** @type {(keyof KeptEntry)[]} */
  const names = ["id", "title", "first_round", "last_round", "times_liked", "times_compared", "real"];
  /** @type {(value: unknown) => string} */
  const cell = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const text = [names.join(), ...ledger.map((entry) => names.map((name) => cell(entry[name])).join())].join("\r\n");
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: "what-has-left.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** One sentence instead of many: what the messages told beyond what is popular.
 * @type {(view: View) => Promise<void>} */
async function showGuesses(view) {
  const depends = JSON.stringify([view.rounds.length, view.version, view.history.map(({ id }) => id), view.choice]);
  if (depends === known) return;
  known = depends;
  const found = await ask("guesses");
  if (depends !== known) return;
  const more = element("a", { href: "privacy.html" }, "What was measured");
  fill(
    byId("guesses"),
    element("p", { id: "guess-sentence", class: "sentence" }, beyondPopularity(found, view.federation.noun)),
    element("p", { class: "quiet" }, inGeneral(view.choice), " Cleverer attacks may do better. ", more),
  );
}

/** @type {(found: Guesses, noun: { one: string, many: string }) => string} */
function beyondPopularity(found, noun) {
  if (!found.tried && found.made)
    return "This page cannot try it: the messages went to a federation that has been begun anew.";
  if (!found.tried)
    return "Nothing: no message was made. Once there is one, this page plays the curious server against you.";
  if (!found.hidden) return "Everything: all that you have has left.";
  const { hidden, named, namedByPopularity: popular } = found;
  const tried = `of the ${counted(hidden, noun)} you kept back, the server's best ${hidden === 1 ? "guess" : `${hidden} guesses`} would name ${named}`;
  return named > popular
    ? `More than popularity tells: ${tried} instead of ${popular}.`
    : `No more than popularity tells: ${tried}${named < popular ? `; from what is popular, ${popular}` : ""}.`;
}

/** What was measured of this way of sharing (docs/privacy.md), in a sentence.
 * @type {(choice: Choice) => string} */
function inGeneral({ sharing, basis }) {
  if (sharing === "as-published") return "With a new coin every time, what is kept back today is sent some other day.";
  if (sharing === "deniable")
    return "With decoys, no single item that is seen is surely yours, as long as your list and your choices stay as they were when you joined. Your taste still shows roughly.";
  if (basis === "history")
    return "Messages that follow from your whole list never compare with what is yours: what they never name gives the rest away.";
  return "What you share is known for certain to whoever runs the server, and it shows a taste, from which others can be guessed.";
}
