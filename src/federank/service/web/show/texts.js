/* Texts: the words that stand in a page's HTML, by the keys that it names, and the switch between languages.

    data-words="KEY"            the element's text
    data-words-label="KEY"      what it is called where it is not seen (aria-label)
*/

import { byId, element, fill } from "./elements.js";
import { LANGUAGES, language, remember, say, speak } from "./language.js";

/** @import { Key } from "../faults.js" */

/** Put every text of the page in its place, in the language that is spoken now. */
function showTexts() {
  document.documentElement.lang = language;
  for (const made of document.querySelectorAll("[data-words]"))
    made.textContent = say(/** @type {Key} */ (made.getAttribute("data-words")));
  for (const made of document.querySelectorAll("[data-words-label]"))
    made.setAttribute("aria-label", say(/** @type {Key} */ (made.getAttribute("data-words-label"))));
}

/** Show the texts and the switch; `showAnew` shows whatever else has words when another language is chosen.
 * @type {(showAnew?: () => unknown) => void} */
export function prepareTexts(showAnew = () => {}) {
  const choice = byId("language", HTMLSelectElement);
  const options = Object.entries(LANGUAGES).map(([code, name]) =>
    element("option", { value: code, lang: code, selected: code === language }, name),
  );
  fill(choice, ...options);
  choice.addEventListener("change", async () => {
    remember("language", choice.value);
    await speak(choice.value);
    showTexts();
    await showAnew();
  });
  showTexts();
}
