/* One item: what it is, why it is here, where it is, and what its reader thinks of it. Three answers teach on this device; none of the
two that turn an item down is ever sent.
*/

import { byId, element, fill } from "./elements.js";
import { capital, categoryName, language, number, say, seenWord } from "./language.js";
import { poster } from "./posters.js";
import { titleIn, valuesOf } from "./sentences.js";
import { starsFor } from "./stars.js";

/** @import { OwnItem, ShownItem, View } from "../client/view.js" */
/** @import { Act } from "./ask.js" */

/** An item with the one of the user's own that is the reason for it.
 * @typedef {ShownItem & { reason?: ShownItem | null }} Reasoned */

/** What a reader has answered.
 * @typedef {"love" | "seen" | "no" | "later" | "stars"} Answer */

/** @type {Act} */
let act;
/** @type {View | null} */
let view = null;
/** Told of each answer, and whether it was taken back.
 * @type {(id: string, answer: Answer | null) => void} */
let answered = () => {};

const close = () => byId("item", HTMLDialogElement).close();

/** @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  byId("item").addEventListener("click", ({ target }) => {
    if (target === byId("item")) close();
  });
}

/** The view that items are shown from, and who is told of answers.
 * @type {(given: View, tell: typeof answered) => void} */
export function follow(given, tell) {
  view = given;
  answered = tell;
}

/** "1972 · Crime, Drama".
 * @type {(item: ShownItem) => string} */
const about = ({ year, categories }) =>
  [year, categories.map((name) => capital(categoryName(name))).join(", ")].filter(Boolean).join(" · ");

/** Carry an answer out; one that was given before is taken back first.
 * @type {(item: ShownItem, answer: Answer) => Promise<void>} */
async function answer({ id }, given) {
  answered(id, given);
  if (given === "love") await act("add", { ids: [id], how: "yes" });
  else if (given === "later") await act("later", { id, on: true });
  else await act("dismiss", { ids: [id], how: given === "seen" ? "seen" : "no" });
}

/** Take an answer back.
 * @type {(id: string, given: Answer) => Promise<void>} */
export async function undo(id, given) {
  answered(id, null);
  if (given === "love" || given === "stars") await act("remove", { id });
  else if (given === "later") await act("later", { id, on: false });
  else await act("undismiss", { id });
}

/** The answers to an item, as buttons.
 * @type {(item: Reasoned, then?: () => void) => HTMLElement} */
export function answers(item, then = () => {}) {
  const { scale } = /** @type {View} */ (view).federation;
  const { name: title } = titleIn(item, language);
  /** @type {(given: Answer, words: string, kind: string) => HTMLElement} */
  const button = (given, words, kind) =>
    element(
      "button",
      {
        type: "button",
        class: kind,
        "data-answer": given,
        "aria-label": say("answer-label", { answer: words, title }),
        on: {
          click: () => {
            then();
            return answer(item, given);
          },
        },
      },
      words,
    );
  const rate = async (/** @type {number | null} */ rating) => {
    then();
    answered(item.id, rating === null ? null : "stars");
    await act("rate", { id: item.id, rating, how: "yes" });
  };
  const seen = seenWord(/** @type {View} */ (view).federation);
  return element(
    "div",
    { class: "answers" },
    scale ? starsFor(scale, item, rate) : button("love", say("verb.love"), "yes"),
    scale ? null : button("seen", say("verb.seen", { seen }), ""),
    button("no", say("verb.no"), ""),
    item.later ? null : button("later", say("verb.later"), "bare"),
  );
}

/** Why an item is here, with the small poster of what it goes with; what it would be given where items are rated.
 * @type {(item: Reasoned) => HTMLElement | null} */
export function why({ reason, predicted }) {
  const stars = predicted
    ? element(
        "span",
        { class: "predicted" },
        say(predicted.isMean ? "stars.mean" : "stars.would-give", { stars: number(predicted.rating, 1) }),
      )
    : null;
  if (!reason) return stars && element("p", { class: "why" }, stars);
  const { name, lang } = titleIn(reason, language, view?.federation.language);
  const words = say(view?.federation.scale ? "shelf.because-stars" : "shelf.because", { title: "\u0000" }).split(
    "\u0000",
  );
  return element(
    "p",
    { class: "why" },
    poster(reason, name),
    element("span", {}, words[0], element("b", { lang }, name), words[1], stars && element("br"), stars),
  );
}

/** Where one of the user's own is or may go.
 * @type {(item: OwnItem) => string} */
export function whereabouts({ left, waits, mayLeave }) {
  const values = valuesOf();
  if (left) return say("where.left");
  if (waits) return say("where.waits");
  return mayLeave && view?.taking ? say("where.next") : say("where.stays", values);
}

/** Open an item over the page.
 * @type {(item: Reasoned) => void} */
export function openItem(item) {
  const { name, lang } = titleIn(item, language, view?.federation.language);
  const own = view?.history.find(({ id }) => id === item.id);
  const remove = async () => {
    close();
    await act("remove", { id: item.id });
  };
  const keep = async () => {
    close();
    await act("keepHere", { ids: [item.id] });
  };
  fill(
    byId("item"),
    element(
      "div",
      { class: "detail" },
      poster(item, name),
      element(
        "div",
        {},
        element("h2", { id: "item-title", lang }, name),
        element("p", { class: "quiet" }, about(item)),
        own ? element("p", { class: "where" }, whereabouts(own)) : why(item),
      ),
    ),
    own && !view?.federation.scale ? null : answers({ ...item, rating: own?.rating ?? null }, close),
    own
      ? element(
          "div",
          { class: "answers" },
          own.mayLeave && !own.left && view?.taking
            ? element("button", { type: "button", on: { click: keep } }, say("item.keep"))
            : null,
          element("button", { type: "button", class: "danger", on: { click: remove } }, say("item.remove")),
        )
      : null,
    element("button", { type: "button", class: "bare close", on: { click: close } }, say("item.close")),
  );
  byId("item", HTMLDialogElement).showModal();
}
