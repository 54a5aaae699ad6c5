/* For you: the best recommendations as cards with their answers, and shelves of posters below, each with its reason.

What is shown stays as it is while it is answered: an answered card says so in its own place, with a way back, and new picks come when
they are asked for or when the page is opened again.
*/

import { ask } from "./ask.js";
import { byId, element, fill } from "./elements.js";
import { answers, follow, openItem, undo, why } from "./item.js";
import { capital, categoryName, counted, language, number, say } from "./language.js";
import { poster } from "./posters.js";
import { on, titleIn, valuesOf } from "./sentences.js";

/** @import { View } from "../client/view.js" */
/** @import { Answer as Asked } from "./ask.js" */
/** @import { Answer, Reasoned } from "./item.js" */

/** @typedef {Asked<"recommend">[number]} Shelf */

/** @type {View} */
let view;
/** @type {Map<string, Answer>} */
const given = new Map();
let [shown, drawn] = ["", ""];
/** @type {Shelf[]} */
let rows = [];

export function prepare() {}

/** What the picks depend on; what was answered here since they were made changes nothing.
 * @type {() => string} */
function dependencies() {
  const own = view.history.filter(({ id }) => !given.has(id)).map(({ id, rating }) => [id, rating]);
  const down = view.down.filter(({ id }) => !given.has(id)).map(({ id }) => id);
  return JSON.stringify([view.federation.items, own, down]);
}

/** Show a view of the client; new picks only where the list has changed elsewhere, or where they are asked for.
 * @type {(given: View, screen: string, arrived?: boolean) => Promise<void>} */
export async function show(next, screen, arrived = false) {
  view = next;
  follow(view, note);
  byId("for-you-lead").textContent = lead();
  if (screen !== "for-you") return undefined;
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
  const found = await ask("recommend");
  if (mine !== shown) return;
  rows = found;
  draw();
}

function draw() {
  drawn = language;
  const empty = element("p", {}, element("a", { class: "button", href: "#wall" }, say("for-you.pick")));
  const invite =
    view.taking || view.rounds.length || !rows.length
      ? null
      : element(
          "aside",
          { class: "panel invite" },
          element("h2", {}, say("sheet.title")),
          element("p", {}, say("sheet.lead")),
          element("a", { class: "button", href: "#leaves" }, say("invite.look")),
        );
  fill(byId("shelves"), ...(rows.length ? rows.map(shelf) : [empty]), invite);
}

/** Note an answer and show it in the item's own place.
 * @type {(id: string, answer: Answer | null) => void} */
function note(id, answer) {
  if (answer) given.set(id, answer);
  else given.delete(id);
  for (const place of document.querySelectorAll("#shelves [data-item]")) {
    if (!(place instanceof HTMLElement) || place.dataset.item !== id) continue;
    const item = rows.flatMap(({ items }) => items).find((other) => other.id === id);
    if (!item) continue;
    const fresh = place.classList.contains("card") ? card(item) : mini(item);
    place.replaceChildren(...fresh.childNodes);
    place.className = fresh.className;
    const focus = answer ? place.querySelector(".undo") : place.querySelector("button");
    if (focus instanceof HTMLElement) focus.focus({ preventScroll: true });
  }
}

/** @type {(row: Shelf) => HTMLElement} */
function shelf({ kind, own, items }) {
  if (kind === "best")
    return element(
      "section",
      { "aria-labelledby": "for-you-title" },
      element(
        "ul",
        { class: "cards" },
        ...items.map(card),
        element(
          "li",
          { class: "card again" },
          element(
            "button",
            { type: "button", "data-key": "again", on: { click: () => again() } },
            say("for-you.again"),
          ),
        ),
      ),
    );
  return element(
    "section",
    { class: "shelf", "data-kind": kind },
    element("h2", {}, ...heading(kind, own)),
    element("ul", { class: "rail" }, ...items.map(mini)),
  );
}

/** @type {(kind: string, own: Shelf["own"]) => (Node | string)[]} */
function heading(kind, own) {
  if (!own) return [say(kind === "different" ? "shelf.different" : "shelf.many")];
  const { name, lang } = titleIn(own, language, view.federation.language);
  const words = say(view.federation.scale ? "shelf.because-stars" : "shelf.because", { title: "\u0000" }).split(
    "\u0000",
  );
  return [words[0], element("span", { lang }, name), words[1]];
}

/** What an answered item says in its place.
 * @type {(item: Reasoned, answer: Answer) => HTMLElement} */
function done(item, answer) {
  const { name: title } = titleIn(item, language);
  /** @type {Record<Answer, () => string>} */
  const words = {
    love: () => say("answered.love"),
    seen: () => say("answered.seen"),
    no: () => say("answered.no"),
    later: () => say("answered.later"),
    stars: () => say("answered.stars"),
  };
  return element(
    "div",
    { class: "done", role: "status" },
    element("span", {}, words[answer]()),
    element(
      "button",
      {
        type: "button",
        class: "undo",
        "aria-label": say("undo-label", { title }),
        on: { click: () => undo(item.id, answer) },
      },
      say("undo"),
    ),
  );
}

/** @type {(item: Reasoned) => HTMLElement} */
function card(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  const answer = given.get(item.id);
  return element(
    "li",
    { class: answer ? "card answered" : "card", "data-item": item.id },
    poster(item, name),
    element(
      "div",
      { class: "text" },
      element("h2", { lang }, name),
      element(
        "p",
        { class: "quiet" },
        [item.year, item.categories.map((category) => capital(categoryName(category))).join(", ")]
          .filter(Boolean)
          .join(" · "),
      ),
      answer ? null : why(item),
    ),
    answer ? done(item, answer) : answers(item),
  );
}

/** @type {(item: Reasoned) => HTMLElement} */
function mini(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  const answer = given.get(item.id);
  const label = item.year ? say("title-year", { title: name, year: String(item.year) }) : name;
  const stars = item.predicted && !item.predicted.isMean ? `★ ${number(item.predicted.rating, 1)}` : "";
  return element(
    "li",
    { class: answer ? "mini answered" : "mini", "data-item": item.id },
    element(
      "button",
      {
        type: "button",
        class: "tile",
        lang,
        "aria-label": label,
        disabled: Boolean(answer),
        on: { click: () => openItem(item) },
      },
      poster(item, name),
      stars ? element("span", { class: "stars-badge" }, stars) : null,
    ),
    answer ? done(item, answer) : null,
  );
}
