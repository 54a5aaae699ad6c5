/* Recommendations: the best of the catalogue by the home vector, each with its reason and three answers. "I like it" adds an item to
the list; the other two hide it and say nothing about liking it. The last answer can be taken back. */

import { ask } from "./ask.js";
import { byId, element, fill } from "./elements.js";
import { capital, language, named, say, seenWord } from "./language.js";
import { answered, leadOfRecommendations, wouldGive } from "./sentences.js";
import { starsFor } from "./stars.js";

/** @import { ShownItem, View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const HOW_MANY = 10;

/** @type {Act} */
let act;
/** @type {View} */
let view;
let shown = "";
/** The list that was read out last. */
let heard = "";
/** The last answer, until the next.
 * @type {{ id: string, title: string, added: boolean } | null} */
let last = null;

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  const wish = byId("variety", HTMLSelectElement);
  wish.addEventListener("change", () => act("setVariety", { variety: Number(wish.value) }));
}

/** Show a view of the device: asks for new recommendations only if something they depend on has changed.
 * @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  showAnswered();
  const lead = leadOfRecommendations(view);
  byId("variety", HTMLSelectElement).value = String(view.variety);
  byId("variety-wish").hidden = !view.history.length || view.fresh;
  const depends = JSON.stringify([
    language,
    view.variety,
    view.version,
    view.history.map(({ id, rating }) => [id, rating]),
    view.dismissed,
  ]);
  if (depends === shown) {
    if (byId("recommended").childElementCount) byId("recommendations-lead").textContent = lead;
    return;
  }
  shown = depends;
  if (!view.history.length) {
    byId("recommendations-lead").textContent = say(
      view.federation.scale ? "for-you.empty-stars" : "for-you.empty",
      named(view.federation.noun),
    );
    fill(byId("recommended"));
    byId("recommended-news").textContent = "";
    return;
  }
  const items = await ask("recommend", { n: HOW_MANY });
  if (depends !== shown) return;
  byId("recommendations-lead").textContent = items.length ? lead : whyNone();
  fill(byId("recommended"), ...items.map(card));
  announce(items);
}

/** Tell who does not see it that the list is another, where it is.
 * @type {(items: ShownItem[]) => void} */
function announce(items) {
  const listed = items.map(({ id }) => id).join("\n");
  if (listed === heard) return;
  heard = listed;
  byId("recommended-news").textContent = items.length
    ? say("for-you.news", { count: items.length, first: items[0].title })
    : "";
}

/** Why there is nothing to recommend. */
function whyNone() {
  const { scale, noun } = view.federation;
  return say(scale && view.fresh ? "for-you.unlearnt" : "for-you.through", named(noun));
}

/** What came of the last answer, and how to take it back. */
function showAnswered() {
  const still = last && (!last.added || view.history.some(({ id }) => id === last?.id));
  if (!last || !still) return fill(byId("answered"));
  const { id, title, added } = last;
  /** @type {(words: string, label: string, choose: () => Promise<void>) => HTMLElement} */
  const choice = (words, label, choose) =>
    element(
      "button",
      { type: "button", class: "small", "data-key": words, "aria-label": label, on: { click: choose } },
      words,
    );
  const undo = async () => {
    last = null;
    await act(added ? "remove" : "undismiss", { id });
  };
  const never = async () => {
    last = null;
    await act("never", { id, on: true });
  };
  return fill(
    byId("answered"),
    element("span", {}, answered(view, id, title)),
    choice(say("undo"), say("undo-label", { title }), undo),
    added && view.history.some((item) => item.id === id && item.mayLeave)
      ? choice(say("never"), say("never-kept-label", { title }), never)
      : null,
  );
}

/** @type {(item: ShownItem & { near: string | null }) => HTMLElement} */
function card(item) {
  const { title } = item;
  const seen = seenWord(view.federation);
  /** @type {(words: string, label: string, how: string | null) => HTMLElement} */
  const answer = (words, label, how) =>
    element(
      "button",
      {
        type: "button",
        class: "small",
        "data-key": `${words} ${item.id}`,
        "aria-label": label,
        on: {
          click: () => {
            last = { id: item.id, title: item.title, added: how !== null };
            return how === null ? act("dismiss", { id: item.id }) : act("add", { ids: [item.id], how });
          },
        },
      },
      words,
    );
  const { scale } = view.federation;
  const near = item.near && say("for-you.near", { title: item.near });
  const about = [wouldGive(item).replace(/\.$/, ""), item.categories.map(capital).join(", "), near];
  const rate = (/** @type {number | null} */ rating) => {
    last = { id: item.id, title, added: true };
    return act("rate", { id: item.id, rating, how: "yes" });
  };
  return element(
    "li",
    { "data-item": item.id },
    element(
      "span",
      { class: "what" },
      element("span", { class: "title" }, item.title),
      element("span", { class: "quiet" }, about.filter(Boolean).join(" · ")),
    ),
    element(
      "span",
      { class: "choices" },
      scale ? starsFor(scale, item, rate) : answer(say("answer.yes"), say("answer.yes-label", { title }), "yes"),
      answer(say("answer.no"), say("answer.no-label", { title }), null),
      scale ? null : answer(seen, say("answer.seen-label", { seen, title }), null),
    ),
  );
}
