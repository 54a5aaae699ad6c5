/* The catalogue: items by number, by id, by title and by category.

Titles come from a server and ids from files of the person's own; both are only ever text. Two titles are the same if they
differ in nothing but case, accents, punctuation and spaces, or in where their article stands ("Matrix, The"); where only one
title fits without its year, that will do. A search looks for the text, then for all its words, then for words with one slip.
*/

/** @import { Item } from "./requests/federation.js" */

/** Items and their look-up tables; those of titles are made when they are first needed.
 * @typedef {{ digest: string, items: Item[], numberOf: Map<string, number>, membersOf: Map<string, number[]>,
 *   categories: string[], plain: string[] | null, titles: Map<string, number | null> | null,
 *   having: Map<string, number[]> | null }} Catalogue */

// "matrix the 1999" is "the matrix 1999": catalogues put articles last, to sort by what follows them.
const TRAILING_ARTICLE = /^(.+) (the|a|an|il|lo|la|le|les|gli|i|l|der|die|das|el|los|las)( (?:18|19|20)\d\d)?$/;
const LEADING_ARTICLE = /^(?:the|a|an) /;

/** A title as it is compared.
 * @type {(text: unknown) => string} */
function plainTitle(text) {
  return String(text)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/['’‘`]/g, "")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim()
    .replace(TRAILING_ARTICLE, (_, name, article, year = "") => `${article} ${name}${year}`);
}

/** @type {(plain: string) => string} */
const withoutYear = (plain) => plain.replace(/ (18|19|20)\d\d$/, "");

/** A list of items with its look-up tables.
 * @type {(catalogue: { digest: string, items: Item[] }) => Catalogue} */
export function indexed({ digest, items }) {
  const numberOf = new Map(items.map((item, number) => [item.id, number]));
  /** @type {Map<string, number[]>} */
  const membersOf = new Map();
  items.forEach((item, number) => {
    for (const category of item.categories) {
      const members = membersOf.get(category);
      if (members) members.push(number);
      else membersOf.set(category, [number]);
    }
  });
  const categories = [...membersOf.keys()].sort((one, other) => one.localeCompare(other));
  return { digest, items, numberOf, membersOf, categories, plain: null, titles: null, having: null };
}

/** @type {(catalogue: Catalogue) => string[]} */
const plainOf = (catalogue) => (catalogue.plain ??= catalogue.items.map((item) => plainTitle(item.title)));

/** Up to `most` items whose title has this text, the better matches first, within a category if one is given.
 * @type {(catalogue: Catalogue, text: string, category: string, most: number, popularity: Float32Array) => { total: number, numbers: number[] }} */
export function find(catalogue, text, category, most, popularity) {
  const wanted = plainTitle(text);
  const among = category ? (catalogue.membersOf.get(category) ?? []) : Array.from(catalogue.items.keys());
  if (!wanted) return { total: among.length, numbers: mostPopular(among, most, popularity) };
  const plain = plainOf(catalogue);
  const words = wanted.split(" ");
  let found = [];
  for (const number of among) {
    const rank = rankOf(plain[number], wanted, words);
    if (rank !== null) found.push({ rank, number });
  }
  if (!found.length) found = almost(catalogue, words, new Set(among)).map((number) => ({ rank: 5, number }));
  found.sort(
    (one, other) =>
      one.rank - other.rank || popularity[other.number] - popularity[one.number] || one.number - other.number,
  );
  return { total: found.length, numbers: found.slice(0, most).map(({ number }) => number) };
}

/** The whole title, its beginning (with or without the article), the beginning of a word, anywhere, all words; null: not at all.
 * @type {(title: string, wanted: string, words: string[]) => number | null} */
function rankOf(title, wanted, words) {
  const index = title.indexOf(wanted);
  if (index >= 0) {
    if (title === wanted) return 0;
    if (index === 0 || title.replace(LEADING_ARTICLE, "").startsWith(wanted)) return 1;
    return title[index - 1] === " " ? 2 : 3;
  }
  const begins = (/** @type {string} */ word) => title.startsWith(word) || title.includes(` ${word}`);
  return words.length > 1 && words.every(begins) ? 4 : null;
}

/** The items of whose title each word is one, or the beginning of one, with at most one slip where it has four letters or more.
 * @type {(catalogue: Catalogue, words: string[], among: Set<number>) => number[]} */
function almost(catalogue, words, among) {
  catalogue.having ??= wordTable(plainOf(catalogue));
  let left = among;
  for (const word of words) {
    /** @type {Set<number>} */
    const fitting = new Set();
    for (const [own, numbers] of catalogue.having)
      if (own.startsWith(word) || (word.length >= 4 && isAlmost(own, word)))
        for (const number of numbers) if (left.has(number)) fitting.add(number);
    left = fitting;
  }
  return [...left];
}

/** Every word of a title -> the items that have it.
 * @type {(plain: string[]) => Map<string, number[]>} */
function wordTable(plain) {
  /** @type {Map<string, number[]>} */
  const table = new Map();
  plain.forEach((title, number) => {
    for (const word of title.split(" ")) {
      const having = table.get(word);
      if (having) having.push(number);
      else table.set(word, [number]);
    }
  });
  return table;
}

/** Whether two words differ in one letter that is missing, too many, another, or changed places with the next.
 * @type {(one: string, other: string) => boolean} */
function isAlmost(one, other) {
  if (Math.abs(one.length - other.length) > 1) return false;
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  /** @type {(skipOne: number, skipOther: number) => boolean} */
  const restFits = (skipOne, skipOther) => one.slice(start + skipOne) === other.slice(start + skipOther);
  const swapped = one[start] === other[start + 1] && one[start + 1] === other[start];
  return restFits(1, 1) || restFits(1, 0) || restFits(0, 1) || (swapped && restFits(2, 2));
}

/** @type {(among: number[], most: number, popularity: Float32Array) => number[]} */
function mostPopular(among, most, popularity) {
  /** @type {number[]} */
  const best = [];
  for (const number of among) {
    if (best.length === most && popularity[number] <= popularity[best[most - 1]]) continue;
    const index = best.findIndex((other) => popularity[other] < popularity[number]);
    best.splice(index < 0 ? best.length : index, 0, number);
    if (best.length > most) best.pop();
  }
  return best;
}

/** Which items these names mean, by id or by title, and by which name; and the names that mean none, or more than one.
 * @type {(catalogue: Catalogue, names: string[]) => { numbers: number[], unmatched: string[], meant: Map<number, string> }} */
export function matched(catalogue, names) {
  catalogue.titles ??= titleTable(plainOf(catalogue));
  /** @type {Map<number, string>} */
  const meant = new Map();
  const unmatched = [];
  for (const name of names) {
    const number = catalogue.numberOf.get(name) ?? byTitle(catalogue.titles, plainTitle(name));
    if (number === undefined || number === null) unmatched.push(name);
    else if (!meant.has(number)) meant.set(number, name);
  }
  return { numbers: [...meant.keys()], unmatched, meant };
}

/** Title -> number; null where several items share it.
 * @type {(plain: string[]) => Map<string, number | null>} */
function titleTable(plain) {
  /** @type {Map<string, number | null>} */
  const table = new Map();
  /** @type {(title: string, number: number) => void} */
  const note = (title, number) => table.set(title, table.has(title) && table.get(title) !== number ? null : number);
  plain.forEach((title, number) => note(title, number));
  const whole = new Set(table.keys());
  plain.forEach((title, number) => {
    const short = withoutYear(title);
    for (const other of new Set([short, short.replace(LEADING_ARTICLE, "")]))
      if (!whole.has(other)) note(other, number);
  });
  return table;
}

/** @type {(titles: Map<string, number | null>, plain: string) => number | null | undefined} */
function byTitle(titles, plain) {
  return plain ? (titles.get(plain) ?? titles.get(withoutYear(plain))) : undefined;
}
