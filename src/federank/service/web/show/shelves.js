/* For you: the best recommendations as cards with their answers, and shelves of posters below, each with its reason.

What is shown stays as it is while it is answered: an answered card says so in its own place, with a way back. New picks come when they are
asked for, or when the page is opened again.
*/

import { ask } from "./ask.js";
import { button, byId, element, fill } from "./elements.js";
import { about, answers, because, follow, openItem, undo, why } from "./item.js";
import { counted, language, number, say, sayWord } from "./language.js";
import { poster, tile } from "./posters.js";
import { on, titleOf, valuesOf } from "./sentences.js";

/** @import { Answer as Response } from "./ask.js" */
/** @import { Answer, Reasoned } from "./item.js" */

/** @typedef {Response<"recommend">[number]} Shelf */

/** @type {View} */
let view;
/** @type {Map<string, Answer>} */
const given = new Map();
let [shown, drawn] = ["", ""];
/** @type {Shelf[]} */
let rows = [];

/** What the shelves depend on; what was answered here since they were made changes nothing.
 * @type {() => string} */
function dependencies() {
  const own = view.history.filter(({ id }) => !given.has(id)).map(({ id, rating }) => [id, rating]);
  const down = view.down.filter(({ id }) => !given.has(id)).map(({ id }) => id);
  return JSON.stringify([view.federation.items, own, down]);
}

/** Show a view of the client; new picks only where the list has changed elsewhere, or where they are asked for.
 * @type {(next: View, arrived?: boolean) => Promise<void>} */
export async function show(next, arrived = false) {
  view = next;
  follow(view, note);
  byId("for-you-lead").textContent = lead();
  if (document.body.dataset.screen !== "for-you") return undefined;
  if (arrived && given.size) given.clear();
  const depends = dependencies();
  if (depends !== shown) return again(depends);
  return drawn === language ? undefined : draw();
}

/** @type {() => string} */
function lead() {
  const { history, fresh, federation } = view;
  if (!history.length) return say("for-you.empty", valuesOf(view));
  if (fresh) return say("for-you.fresh");
  return say("for-you.lead", { on: on(), counted: counted(history.length, federation.noun) });
}

/** @type {(depends?: string) => Promise<void>} */
async function again(depends) {
  if (!depends) given.clear();
  const mine = (shown = depends ?? dependencies());
  const result = await ask("recommend");
  if (mine !== shown) return;
  rows = result.filter(({ items }) => items.length);
  draw();
}

function draw() {
  drawn = language;
  const isInvited = !view.taking && !view.rounds.length && rows.length;
  const invitation = () =>
    element(
      "aside",
      { class: "panel invite" },
      element("h2", {}, say("sheet.title")),
      element("p", {}, say("sheet.lead")),
      element("a", { class: "button", href: "#leaves" }, say("invite.look")),
    );
  const empty = () => element("p", {}, element("a", { class: "button", href: "#wall" }, say("for-you.pick")));
  fill(byId("shelves"), ...(rows.length ? rows.map(shelf) : [empty()]), isInvited ? invitation() : null);
}

/** Note an answer and show it in the item's own place.
 * @type {(id: string, answer: Answer | null) => void} */
function note(id, answer) {
  if (answer) given.set(id, answer);
  else given.delete(id);
  const item = rows.flatMap(({ items }) => items).find((other) => other.id === id);
  for (const place of document.querySelectorAll("#shelves [data-item]")) {
    if (!item || !(place instanceof HTMLElement) || place.dataset.item !== id) continue;
    const fresh = place.classList.contains("card") ? card(item) : mini(item);
    place.replaceChildren(...fresh.childNodes);
    place.className = fresh.className;
    const focus = answer ? place.querySelector(".undo") : place.querySelector("button");
    if (focus instanceof HTMLElement) focus.focus({ preventScroll: true });
  }
}

/** @type {(row: Shelf) => HTMLElement} */
function shelf({ kind, own, items }) {
  if (kind === "best") {
    const more = button(say("for-you.again"), () => again(), { "data-key": "again" });
    const cards = element("ul", { class: "cards" }, ...items.map(card), element("li", { class: "card again" }, more));
    return element("section", { "aria-labelledby": "for-you-title" }, cards);
  }
  return element(
    "section",
    { class: "shelf", "data-kind": kind },
    element("h2", {}, ...(own ? because(own, "span") : [say(kind === "different" ? "shelf.different" : "shelf.many")])),
    element("ul", { class: "rail" }, ...items.map(mini)),
  );
}

/** What was answered, with a way back; the second half of a double tap is no way back.
 * @type {(item: Reasoned, answer: Answer) => HTMLElement} */
function done(item, answer) {
  const label = say("undo-label", { title: titleOf(item).name });
  return element(
    "div",
    { class: "done", role: "status" },
    element("span", {}, sayWord("answered", answer)),
    button(say("undo"), ({ detail }) => detail < 2 && undo(item.id, answer), { class: "undo", "aria-label": label }),
  );
}

/** @type {(item: Reasoned) => HTMLElement} */
function card(item) {
  const { name, lang } = titleOf(item);
  const answer = given.get(item.id);
  return element(
    "li",
    { class: answer ? "card answered" : "card", "data-item": item.id },
    poster(item),
    element(
      "div",
      { class: "text" },
      element("h2", { lang }, name),
      element("p", { class: "quiet" }, about(item)),
      answer ? null : why(item),
    ),
    answer ? done(item, answer) : answers(item),
  );
}

/** @type {(item: Reasoned) => HTMLElement} */
function mini(item) {
  const answer = given.get(item.id);
  const { predicted } = item;
  const stars =
    predicted && !predicted.isMean
      ? element("span", { class: "stars-badge" }, `★ ${number(predicted.rating, 1)}`)
      : null;
  return element(
    "li",
    { class: answer ? "mini answered" : "mini", "data-item": item.id },
    tile(item, () => openItem(item), { disabled: Boolean(answer) }, stars),
    answer ? done(item, answer) : null,
  );
}
