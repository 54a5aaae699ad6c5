/* Language: the page's words as its visitor reads them, and numbers and nouns as the language writes them.

The words are in words/, one file for each language, and nowhere else. Of these the browser's own language is taken, or the one that
was chosen here, which is remembered until its owner leaves. A federation's own nouns stay as its operator wrote them, unless they are
ordinary English ones (film/films) that every language has a word for.
*/

import { byId, element, fill } from "./elements.js";

/** A sentence with places for values, or its forms by the number in it.
 * @typedef {string | { one: string, other: string }} Form */

/** What a catalogue's items are called, one and many.
 * @typedef {{ one: string, many: string }} Noun */

/** Every language, by its code, as its own people call it.
 * @type {Record<string, string>} */
export const LANGUAGES = { en: "English", it: "Italiano", de: "Deutsch" };
/** What is remembered beside the client's own store: the language that was chosen, and the screen that a visit begins with.
 * @typedef {"language" | "screen"} Remembered */
/** What users say of something that they know already; of other things, "Know it".
 * @type {Record<string, Key>} */
const SEEN = {
  place: "seen.been-there",
  venue: "seen.been-there",
  film: "seen.seen-it",
  movie: "seen.seen-it",
  book: "seen.read-it",
  song: "seen.heard-it",
};

/** The code of the language that is spoken now. */
export let language = "en";
/** @type {Record<string, Form>} */
let words;
/** @type {Intl.PluralRules} */
let rules;
/** @type {Intl.NumberFormat} */
let numbers;

/** The language that was chosen here, or else the first of the browser's that there is. */
function preferred() {
  const codes = [remembered("language"), ...(globalThis.navigator?.languages ?? [])];
  return codes.map((code) => code?.slice(0, 2).toLowerCase()).find((code) => code && code in LANGUAGES) ?? "en";
}

/** Storage may be forbidden; then nothing is remembered.
 * @type {(what: Remembered) => string | null} */
export function remembered(what) {
  try {
    return globalThis.localStorage?.getItem(`federank-${what}`) ?? null;
  } catch {
    return null;
  }
}

/** @type {(what: Remembered, value: string | null) => void} */
export function remember(what, value) {
  try {
    if (value) localStorage.setItem(`federank-${what}`, value);
    else localStorage.removeItem(`federank-${what}`);
  } catch {
    // It holds for as long as the page is open.
  }
}

/** Speak a language from now on; what is shown already is for its owner to show again.
 * @type {(code: string) => Promise<void>} */
export async function speak(code) {
  ({ default: words } = await import(`../words/${code}.json`, { with: { type: "json" } }));
  language = code;
  rules = new Intl.PluralRules(code);
  numbers = new Intl.NumberFormat(code);
}

/** A sentence, with its values in their places.
 * @type {(key: Key, values?: Record<string, unknown>) => string} */
export function say(key, values = {}) {
  const form = words[key];
  if (form === undefined) return say("fault.technical", { code: [key, ...Object.values(values)].join(" ") });
  const text = typeof form === "string" ? form : form[rules.select(Number(values.count)) === "one" ? "one" : "other"];
  return text.replace(/\{(\w+)\}/g, (place, name) => (name in values ? written(values[name]) : place));
}

/** What stands in a sentence: numbers as the language writes them, other sentences, lists of them, and text as it is.
 * @type {(value: any) => string} */
function written(value) {
  if (typeof value === "number") return numbers.format(value);
  if (!Array.isArray(value)) return String(value);
  if (typeof value[0] === "string") return say(/** @type {Key} */ (value[0]), value[1]);
  return new Intl.ListFormat(language, { type: "conjunction" }).format(value.map(written));
}

/** @type {(said: Said) => string} */
export const worded = (said) => (typeof said === "string" ? said : written(said));

/** @type {(...sentences: string[]) => string} */
export const together = (...sentences) => sentences.filter(Boolean).join(" ");

/** A number as the language writes it, with this many decimals, or as a duration in a unit.
 * @type {(value: number, decimals?: number, unit?: string) => string} */
export const number = (value, decimals = 0, unit) =>
  new Intl.NumberFormat(language, {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    ...(unit ? { style: "unit", unit, unitDisplay: "long" } : {}),
  }).format(value);

/** A day and a time, in milliseconds since 1970.
 * @type {(time: number) => string} */
export const dated = (time) =>
  new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" }).format(
    time,
  );

/** @type {(value: number | null | undefined) => string} */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e4) return String(value);
  const notation = Math.abs(value) >= 1e4 ? "compact" : "standard";
  return new Intl.NumberFormat(language, { notation, maximumSignificantDigits: 3 }).format(value);
}

/** A moment, in seconds since 1970, as a clock on the wall shows it; with the day, or with its second, where that is needed.
 * @type {(time: number, detail?: "day" | "second") => string} */
export const clock = (time, detail) =>
  new Intl.DateTimeFormat(language, {
    ...(detail === "day" ? { day: "numeric", month: "short" } : {}),
    ...(detail === "second" ? { second: "2-digit" } : {}),
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(time * 1000);

/** @type {(count: number, noun: Noun) => string} */
function nounFor(count, { one, many }) {
  const isOne = rules.select(count) === "one";
  const form = words[`noun.${one}/${many}`.toLowerCase()];
  if (!form || typeof form === "string") return isOne ? one : many;
  return isOne ? form.one : form.other;
}

/** "1 place", "3 places".
 * @type {(count: number, noun: Noun) => string} */
export const counted = (count, noun) => `${numbers.format(count)} ${nounFor(count, noun)}`;

/** @type {(noun: Noun) => { item: string, items: string }} */
export const named = (noun) => ({ item: nounFor(1, noun), items: nounFor(2, noun) });

/** What a user says of an item that they know already: the federation's own words, or those that go with its noun.
 * @type {(federation: { seen: string | null, noun: Noun }) => string} */
export const seenWord = ({ seen, noun }) => seen ?? say(SEEN[noun.one.toLowerCase()] ?? "seen.know-it");

/** A word of the server's or the client's (a category, a state, a reason) as the language says it; itself where it has no words for it.
 * @type {(kind: "answered" | "category" | "health" | "level" | "outcome" | "reason" | "state", word: string, values?: Record<string, unknown>) => string} */
export const sayWord = (kind, word, values) => {
  const key = `${kind}.${word}`;
  return Object.hasOwn(words, key) ? say(/** @type {Key} */ (key), values) : word;
};

/** @type {(text: string) => string} */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The words that stand in a page's HTML, by the keys that it names: data-words for an element's text, data-words-label for what it is
// called where it is not seen (aria-label); and the switch between languages.

/** Put every text of the page in its place, in the language that is spoken now. */
function showTexts() {
  document.documentElement.lang = language;
  for (const made of document.querySelectorAll("[data-words]"))
    made.textContent = say(/** @type {Key} */ (made.getAttribute("data-words")));
  for (const made of document.querySelectorAll("[data-words-label]"))
    made.setAttribute("aria-label", say(/** @type {Key} */ (made.getAttribute("data-words-label"))));
}

/** Show the texts and the switch; `showAgain` shows whatever else has words when another language is chosen.
 * @type {(showAgain?: () => unknown) => void} */
export function prepareTexts(showAgain = () => {}) {
  const choice = byId("language", HTMLSelectElement);
  const options = Object.entries(LANGUAGES).map(([code, name]) =>
    element("option", { value: code, lang: code, selected: code === language }, name),
  );
  fill(choice, ...options);
  choice.addEventListener("change", async () => {
    remember("language", choice.value);
    await speak(choice.value);
    showTexts();
    await showAgain();
  });
  showTexts();
}

await speak(preferred());
