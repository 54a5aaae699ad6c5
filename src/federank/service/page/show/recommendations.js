/* Recommendations: the best of the catalogue by the home vector, each with its reason and three answers; the last answer can be
taken back. */

import { ask } from "./ask.js";
import { byId, element, fill } from "./elements.js";
import { answered, leadOfRecommendations } from "./sentences.js";
import { capital } from "./words.js";

/** @import { ShownItem, View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const HOW_MANY = 10;
/** What somebody says of something they know already; of other things, "Know it".
 * @type {Record<string, string>} */
const KNOWN = { place: "Been there", venue: "Been there", film: "Seen it", movie: "Seen it", book: "Read it" };

/** @type {Act} */
let act;
/** @type {View} */
let view;
let shown = "";
/** The last answer, until the next.
 * @type {{ id: string, title: string, added: boolean } | null} */
let last = null;

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
}

/** @type {() => string} */
const knownWord = () => KNOWN[view.federation.noun.one.toLowerCase()] ?? "Know it";

/** Show a view of the device: asks for new recommendations only if something they depend on has changed.
 * @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  showAnswered();
  const { noun } = view.federation;
  const lead = leadOfRecommendations(view, `Yes and ${knownWord()}`);
  const depends = JSON.stringify([view.version, view.history.map(({ id }) => id), view.dismissed]);
  if (depends === shown) {
    if (byId("recommended").childElementCount) byId("recommendations-lead").textContent = lead;
    return;
  }
  shown = depends;
  if (!view.history.length) {
    byId("recommendations-lead").textContent = `Pick ${noun.many} you like, and others appear here at once.`;
    fill(byId("recommended"));
    return;
  }
  const items = await ask("recommend", { n: HOW_MANY });
  if (depends !== shown) return;
  byId("recommendations-lead").textContent = items.length ? lead : `You have been through all ${noun.many} there are.`;
  fill(byId("recommended"), ...items.map(card));
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
      { type: "button", class: "small", "data-key": words, "aria-label": `${label}: ${title}`, on: { click: choose } },
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
    choice("Undo", "Undo", undo),
    added && view.history.some((item) => item.id === id && item.mayLeave)
      ? choice("Never share", "Keep on the list, never share", never)
      : null,
  );
}

/** @type {(item: ShownItem & { near: string | null }) => HTMLElement} */
function card(item) {
  /** @type {(words: string, label: string, how: string | null) => HTMLElement} */
  const answer = (words, label, how) =>
    element(
      "button",
      {
        type: "button",
        class: "small",
        "data-key": `${words} ${item.id}`,
        "aria-label": `${label}: ${item.title}`,
        on: {
          click: () => {
            last = { id: item.id, title: item.title, added: how !== null };
            return how === null ? act("dismiss", { id: item.id }) : act("add", { ids: [item.id], how });
          },
        },
      },
      words,
    );
  const about = [item.categories.map(capital).join(", "), item.near && `goes with ${item.near} on your list`];
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
      answer("Yes", "Yes, I like this", "yes"),
      answer("No", "No, do not show this again", null),
      answer(knownWord(), "I know this already and like it", "been there"),
    ),
  );
}
