/* Stars: a row of buttons, one for each rating that there is; the pressed one is the user's own, and a second press takes it back. */

import { button, element } from "./elements.js";
import { number, say } from "./language.js";

/** What ratings there are; a step of 0 is any number.
 * @typedef {{ lowest: number, highest: number, step: number }} Scale */

const MOST_STARS = 20; // more are not stars any more, and every integer will do

/** Every rating that can be given here.
 * @type {(scale: Scale) => number[]} */
function ratingsOf({ lowest, highest, step }) {
  const apart = step && (highest - lowest) / step < MOST_STARS ? step : Math.max(1, (highest - lowest) / 10);
  const count = Math.floor((highest - lowest) / apart + 1e-6) + 1;
  return Array.from({ length: count }, (_, index) => lowest + index * apart);
}

/** The buttons for one item.
 * @type {(scale: Scale, item: { id: string, title: string, rating: number | null }, rate: (rating: number | null) => unknown) => HTMLElement} */
export function starsFor(scale, { id, title, rating }, rate) {
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
