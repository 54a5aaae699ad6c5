/* Recommendations: the best of the catalogue by the home vector, each with yes, no, been there. */

import { ask } from "./ask.js";
import { byId, capital, element, fill } from "./elements.js";

/** @import { ShownItem, View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const HOW_MANY = 10;
/** @type {Act} */
let act;
let shown = "";

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
}

/** Show a view of the device: asks for new recommendations only if something they depend on has changed.
 * @type {(view: View) => Promise<void>} */
export async function show(view) {
  const depends = JSON.stringify([view.version, view.history.map(({ id }) => id), view.dismissed]);
  if (depends === shown) return;
  shown = depends;
  const { noun } = view.federation;
  if (!view.history.length) {
    byId("recommendations-lead").textContent = `Pick ${noun.many} you like, and others appear here at once.`;
    fill(byId("recommended"));
    return;
  }
  const items = await ask("recommend", { n: HOW_MANY });
  if (depends !== shown) return;
  byId("recommendations-lead").textContent = items.length
    ? "Worked out on this device, from your whole list. Your answers stay here too."
    : `You have been through all ${noun.many} there are.`;
  fill(byId("recommended"), ...items.map(card));
}

/** @type {(item: ShownItem) => HTMLElement} */
function card(item) {
  /** @type {(words: string, label: string, choose: () => Promise<void>) => HTMLElement} */
  const answer = (words, label, choose) =>
    element(
      "button",
      {
        type: "button",
        class: "small",
        "data-key": `${words} ${item.id}`,
        "aria-label": `${label}: ${item.title}`,
        on: { click: choose },
      },
      words,
    );
  return element(
    "li",
    { "data-item": item.id },
    element(
      "span",
      { class: "what" },
      element("span", { class: "title" }, item.title),
      element("span", { class: "quiet" }, item.categories.map(capital).join(", ")),
    ),
    element(
      "span",
      { class: "choices" },
      answer("Yes", "Yes, I like this", () => act("add", { ids: [item.id], how: "yes" })),
      answer("No", "No, do not show this again", () => act("dismiss", { id: item.id })),
      answer("Been there", "I know this already and like it", () => act("add", { ids: [item.id], how: "been there" })),
    ),
  );
}
