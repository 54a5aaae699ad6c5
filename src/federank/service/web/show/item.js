/* One item: what it is, why it is here, where it is, and what the user thinks of it. Answers teach on this device; those that turn an
item down are never sent.
*/

import { button, byId, element, fill } from "./elements.js";
import { capital, number, say, sayWord, seenWord } from "./language.js";
import { poster } from "./posters.js";
import { titleOf, valuesOf } from "./sentences.js";

/** An item with the one of the user's own that is the reason for it.
 * @typedef {ShownItem & { reason?: ShownItem | null }} Reasoned */

/** @typedef {"love" | "seen" | "no" | "later" | "stars"} Answer */

/** @type {Act} */
let act;
/** @type {View} */
let view;
/** Called with each answer, and with null where one was taken back.
 * @type {(id: string, answer: Answer | null) => void} */
let onAnswer = () => {};

const close = () => byId("item", HTMLDialogElement).close();

/** @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  byId("item").addEventListener("click", ({ target }) => {
    if (target === byId("item")) close();
  });
}

/** @type {(current: View, listener: typeof onAnswer) => void} */
export function follow(current, listener) {
  view = current;
  onAnswer = listener;
}

/** "1972 · Crime, Drama".
 * @type {(item: ShownItem) => string} */
export const about = ({ year, categories }) =>
  [year, categories.map((name) => capital(sayWord("category", name))).join(", ")].filter(Boolean).join(" · ");

/** "Because you love Alien", with the title as an element of its own.
 * @type {(own: ShownItem, tag: "b" | "span") => Child[]} */
export function because(own, tag) {
  const { name, lang } = titleOf(own);
  const words = say(view.federation.scale ? "shelf.because-stars" : "shelf.because", { title: "\u0000" });
  const [before, after] = words.split("\u0000");
  return [before, element(tag, { lang }, name), after];
}

/** @type {(item: ShownItem, answer: Answer) => Promise<void>} */
async function answer({ id }, given) {
  onAnswer(id, given);
  if (given === "love") await act("add", { ids: [id], how: "yes" });
  else if (given === "later") await act("later", { id, on: true });
  else await act("dismiss", { ids: [id], how: given === "seen" ? "seen" : "no" });
}

/** @type {(id: string, given: Answer) => Promise<void>} */
export async function undo(id, given) {
  onAnswer(id, null);
  if (given === "love" || given === "stars") await act("remove", { id });
  else if (given === "later") await act("later", { id, on: false });
  else await act("undismiss", { id });
}

/** @type {(item: Reasoned, then?: () => void) => HTMLElement} */
export function answers(item, then = () => {}) {
  const { federation } = view;
  const { name: title } = titleOf(item);
  /** @type {(kind: Answer, words: string, style?: string) => HTMLElement} */
  const choice = (kind, words, style = "") => {
    const press = () => (then(), answer(item, kind));
    const label = say("answer-label", { answer: words, title });
    return button(words, press, { class: style, "data-answer": kind, "aria-label": label });
  };
  const rate = async (/** @type {number | null} */ rating) => {
    then();
    onAnswer(item.id, rating === null ? null : "stars");
    await act("rate", { id: item.id, rating, how: "yes" });
  };
  return element(
    "div",
    { class: "answers" },
    federation.scale ? starsFor(federation.scale, item, rate) : choice("love", say("verb.love"), "yes"),
    federation.scale ? null : choice("seen", say("verb.seen", { seen: seenWord(federation) })),
    choice("no", say("verb.no")),
    item.later ? null : choice("later", say("verb.later"), "bare"),
  );
}

/** Why an item is here, with the small poster of what it goes with; what it would be given where items are rated.
 * @type {(item: Reasoned) => HTMLElement | null} */
export function why({ reason, predicted }) {
  const key = predicted?.isMean ? "stars.mean" : "stars.would-give";
  const stars = predicted && element("span", { class: "predicted" }, say(key, { stars: number(predicted.rating, 1) }));
  if (!reason) return stars ? element("p", { class: "why" }, stars) : null;
  const words = element("span", {}, ...because(reason, "b"), stars && element("br"), stars);
  return element("p", { class: "why" }, poster(reason), words);
}

/** @type {(item: OwnItem) => string} */
function whereabouts({ left, waits, mayLeave }) {
  if (left) return say("where.left");
  if (waits) return say("where.waits");
  return mayLeave && view.taking ? say("where.next") : say("where.stays", valuesOf());
}

/** @type {(item: Reasoned) => void} */
export function openItem(item) {
  const { name, lang } = titleOf(item);
  const own = view.history.find(({ id }) => id === item.id);
  const remove = () => (close(), act("remove", { id: item.id }));
  const keep = () => (close(), act("keepHere", { ids: [item.id] }));
  const canKeep = own?.mayLeave && !own.left && view.taking;
  fill(
    byId("item"),
    element(
      "div",
      { class: "detail" },
      poster(item),
      element(
        "div",
        {},
        element("h2", { id: "item-title", lang }, name),
        element("p", { class: "quiet" }, about(item)),
        own ? element("p", { class: "where" }, whereabouts(own)) : why(item),
      ),
    ),
    own && !view.federation.scale ? null : answers({ ...item, rating: own?.rating ?? null }, close),
    own &&
      element(
        "div",
        { class: "answers" },
        canKeep ? button(say("item.keep"), keep) : null,
        button(say("item.remove"), remove, { class: "danger" }),
      ),
    button(say("item.close"), close, { class: "bare close" }),
  );
  byId("item", HTMLDialogElement).showModal();
}

/** What ratings there are; a step of 0 is any number.
 * @typedef {{ lowest: number, highest: number, step: number }} Scale */

const MOST_STARS = 20; // more are not stars any more, and every integer will do

/** @type {(scale: Scale) => number[]} */
function ratingsOf({ lowest, highest, step }) {
  const apart = step && (highest - lowest) / step < MOST_STARS ? step : Math.max(1, (highest - lowest) / 10);
  const count = Math.floor((highest - lowest) / apart + 1e-6) + 1;
  return Array.from({ length: count }, (_, index) => lowest + index * apart);
}

/** A row of buttons, one for each rating that there is; the pressed one is the user's own, and a second press takes it back.
 * @type {(scale: Scale, item: { id: string, title: string, rating: number | null }, rate: (rating: number | null) => unknown) => HTMLElement} */
function starsFor(scale, { id, title, rating }, rate) {
  const digits = scale.step && scale.step < 1 ? 1 : 0;
  const buttons = ratingsOf(scale).map((value) => {
    const isOwn = rating !== null && Math.abs(rating - value) < 1e-6;
    const words = number(value, digits);
    const isLit = rating !== null && value <= rating + 1e-6;
    return button(!Number.isInteger(value) ? "½" : isLit ? "★" : "☆", () => rate(isOwn ? null : value), {
      class: isLit ? "star lit" : "star",
      "aria-pressed": String(isOwn),
      "aria-label": say("stars.give", { stars: words, title }),
      title: words,
      "data-key": `star ${value} ${id}`,
    });
  });
  return element("span", { class: "stars", role: "group", "aria-label": say("stars.label", { title }) }, ...buttons);
}
