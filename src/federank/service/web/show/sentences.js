/* Sentences: what may be said in every state of a list, of a choice and of what was sent.

Functions of the view alone, so that tests can hold each sentence to what is true in each state.
*/

import { counted, language, named, number, say, sayWord, worded } from "./language.js";

/** Whether this is a phone, as far as a page can know. */
const isPhone = () => Boolean(globalThis.matchMedia?.("(pointer: coarse) and (max-width: 900px)").matches);
/** "this phone", as the object of a sentence. */
export const here = () => say(isPhone() ? "here.phone" : "here.computer");
/** "on this phone". */
export const on = () => say(isPhone() ? "on.phone" : "on.computer");

/** @type {(view?: View) => Record<string, string>} */
export const valuesOf = (view) => ({ here: here(), on: on(), ...(view ? named(view.federation.noun) : {}) });

/** A federation's own texts in a language, or else as its operator wrote them, with the language that they are in.
 * @type {(view: View, code: string) => { name: string, description: string, runBy: string, lang: string }} */
export function federationIn({ federation }, code) {
  const own = Object(federation.translations[code]);
  const isTranslated = typeof own.name === "string" && federation.language !== code;
  return {
    name: isTranslated ? own.name : federation.name,
    description: isTranslated ? String(own.description ?? "") : federation.description,
    runBy: federation.runBy,
    lang: isTranslated ? code : federation.language || code,
  };
}

/** An item's title in the page's language, and the language that it is in where that is another.
 * @type {(item: Pick<ShownItem, "title" | "local" | "lang">) => { name: string, lang: string | null }} */
export function titleOf({ title, local, lang }) {
  if (local[language]) return { name: local[language], lang: null };
  return { name: title, lang: lang && lang !== language ? lang : null };
}

/** How many of the user's own have left, and how many of them are no longer on the list.
 * @type {(view: View) => { left: number, removed: number }} */
export function leftOf({ history, ledger }) {
  const left = history.filter((item) => item.left).length;
  return { left, removed: ledger.filter(({ real }) => real === true).length - left };
}

/** What can go out of a list as things stand: what may leave, and what has left.
 * @type {(view: View) => { out: View["history"], stays: View["history"] }} */
export function sides({ history }) {
  const isOut = (/** @type {View["history"][number]} */ item) => item.mayLeave || item.left;
  return { out: history.filter(isOut), stays: history.filter((item) => !isOut(item)) };
}

/** The chip at the top: the state of things in a few words.
 * @type {(view: View, now: number) => { text: string, kind: "closed" | "hold" | "open" }} */
export function lock(view, now) {
  const { left, removed } = leftOf(view);
  if (view.hold && view.hold > now && Number.isFinite(view.hold)) return { text: say("lock.hold"), kind: "hold" };
  if (left + removed > 0)
    return { text: say("lock.left", { counted: counted(left + removed, view.federation.noun) }), kind: "open" };
  return {
    text: say(view.rounds.length ? "lock.sent" : "lock.nothing", { here: here() }),
    kind: view.rounds.length ? "open" : "closed",
  };
}

/** @type {(seconds: number) => string} */
export function duration(seconds) {
  /** @type {[number, "day" | "hour" | "minute" | "second"][]} */
  const units = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]]; // prettier-ignore
  const [size, unit] = units.find(([length]) => seconds >= length) ?? units[3];
  return number(Math.ceil(seconds / size), 0, unit);
}

/** @type {(view: View) => string} */
export function howOften({ messages, period }) {
  const apart = period ? say("often.apart", { period: duration(period) }) : "";
  if (messages) return say(apart ? "often.most" : "often.most-any", { count: messages.most, apart });
  return say(apart ? "often.open" : "often.open-any", { apart });
}

/** @type {(view: View) => "reads" | "apart" | "together" | "none"} */
export function readers({ plain, guarantee }) {
  if (plain) return "reads";
  return guarantee ? (guarantee.together === null ? "apart" : "together") : "none";
}

/** @type {(view: View, leader: string, code: string) => { words: string, warning: string }} */
export function whoReads(view, leader, code) {
  const { guarantee, decoys } = view;
  const name = federationIn(view, code).name || leader;
  const kind = readers(view);
  if (kind === "reads") {
    const more = decoys >= 1 ? say("who.decoys", { count: Math.round(decoys) }) : say("who.nobody-else");
    return { words: say("who.plain", { name }), warning: more };
  }
  if (!guarantee) return { words: say("who.unchecked"), warning: "" };
  const helper = new URL(guarantee.helper).hostname;
  const first = kind === "apart" ? say("who.apart", { leader: name, helper }) : say("who.torn");
  const total =
    guarantee.epsilon === null
      ? say("who.total", { count: guarantee.leastCohort })
      : say("who.noise", { count: guarantee.leastCohort });
  const warning =
    kind === "apart"
      ? ""
      : guarantee.together === "machine"
        ? say("who.one-machine")
        : say("who.one-host", { host: helper });
  return { words: `${first} ${total}`, warning };
}

/** @type {(round: StoredRound, view: View) => { text: string, good: boolean | null }} */
export function outcome({ outcome: word, uploads, number: spent }, { messages }) {
  if (word === "aggregated") {
    const count = (uploads ?? 1) - 1;
    return { text: count > 0 ? say("outcome.counted", { count }) : say("outcome.counted-alone"), good: true };
  }
  const isFree = word === "discarded" && messages && !spent;
  const good = ["on its way", "received", "unknown"].includes(word) ? null : false;
  return { text: isFree ? say("outcome.discarded-free") : sayWord("outcome", word.replaceAll(" ", "-")), good };
}

/** What has left, in one sentence: the same counts as the client's ledger.
 * @type {(view: View) => string} */
export function whatHasLeft(view) {
  const { history, rounds, messages, federation } = view;
  if (!rounds.length) return say(view.taking ? "report.soon" : "report.nothing");
  const { left, removed } = leftOf(view);
  const all = counted(history.length + removed, federation.noun);
  const values = { count: left + removed, counted: all };
  // Messages of earlier seasons, and those of discarded rounds that are not charged, are none of this season's.
  const sent = rounds.filter(({ outcome: word }) => word !== "held back").length;
  if (sent === messages?.made) return say("report.of-most", { ...values, ...messages });
  return say("report.in", { ...values, messages: say("messages", { count: sent }) });
}

/** What a client that takes part is doing; nothing where the report says it already.
 * @type {(view: View) => string} */
export function nowDoing(view) {
  const { taking, blocked, progress, pending, helperAway, next, hold } = view;
  if (!taking) return say(pending ? "doing.late" : "doing.paused");
  if (hold) return "";
  if (blocked) return worded(blocked);
  if (helperAway && progress.state === "waiting") return say("fault.helper-away");
  if (next > Date.now()) return say("doing.next", { period: duration((next - Date.now()) / 1000) });
  return worded(progress.says);
}

/** A bound is rounded up, so that it still is one.
 * @type {(epsilon: number) => string} */
export function bound(epsilon) {
  const digits = epsilon >= 10 ? 0 : epsilon >= 1 ? 1 : 2;
  return number(Math.ceil(epsilon * 10 ** digits) / 10 ** digits, digits);
}

/** What went out in each season and in all of them, and what they guaranteed.
 * @type {(view: View) => string[]} */
export function seasonLines({ seasons: shown }) {
  if (!shown) return [];
  /** @type {(line: SeasonLine) => Record<string, unknown>} */
  const values = ({ number: count, epsilon, ...line }) => ({
    ...line,
    number: count,
    count,
    epsilon: epsilon === null ? "–" : bound(epsilon),
  });
  return [...shown.seasons.map((line) => say("full.season", values(line))), say("full.seasons", values(shown.total))];
}

/** How messages are protected, in full: a sentence or two for each question; nothing where the server reads messages.
 * @type {(view: View, leader: string) => [title: string, words: string][]} */
export function inFull({ guarantee, messages }, leader) {
  if (!guarantee) return [];
  const { helper, fingerprint, leastCohort, epsilon, delta } = guarantee;
  const apart = say(guarantee.together === null ? "full.apart" : "full.together");
  const many = say("messages", { count: messages?.most ?? 0 });
  return [
    [say("full.split"), say("full.split-words")],
    [say("full.who"), say("full.who-words", { leader, helper, apart, fingerprint })],
    [say("full.sums"), say("full.sums-words", { messages: say("messages", { count: leastCohort }) })],
    epsilon === null
      ? [say("full.no-epsilon"), say("full.no-epsilon-words")]
      : [
          say("full.epsilon", { epsilon: bound(epsilon) }),
          say("full.epsilon-words", {
            likely: Math.ceil(Math.exp(epsilon)),
            chances: Math.round(1 / delta),
            messages: many,
          }),
        ],
    [say("full.uncovered"), say("full.uncovered-words")],
    [say("full.unreachable"), say("full.unreachable-words", { helper })],
  ];
}
