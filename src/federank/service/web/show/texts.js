/* Texts: the words that stand in a page's HTML, by the keys that it names, and the switch between languages.

    data-words="KEY"            the element's text
    data-words-label="KEY"      what it is called where it is not seen (aria-label)
    data-words-content="KEY"    what a <meta> says
*/

import { byId, element, fill } from "./elements.js";
import { LANGUAGES, keepChoice, language, say, speak } from "./language.js";

/** @import { Key } from "../faults.js" */

/** Put every text of the page in its place, in the language that is spoken now. */
function showTexts() {
  document.documentElement.lang = language;
  /** @type {(kind: string, put: (made: Element, words: string) => void) => void} */
  const each = (kind, put) => {
    for (const made of document.querySelectorAll(`[${kind}]`))
      put(made, say(/** @type {Key} */ (made.getAttribute(kind))));
  };
  each("data-words", (made, words) => (made.textContent = words));
  each("data-words-label", (made, words) => made.setAttribute("aria-label", words));
  each("data-words-content", (made, words) => made.setAttribute("content", words));
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
    keepChoice(choice.value);
    await speak(choice.value);
    showTexts();
    await showAnew();
  });
  showTexts();
}
