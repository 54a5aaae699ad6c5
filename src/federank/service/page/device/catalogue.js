/* The catalogue: items by number, by id, by title and by category.

Titles come from a server and ids from files of the person's own; both are only ever text. Two titles are the same if they
differ in nothing but case, accents, punctuation and spaces; where only one title fits without its year, that will do.
*/

/** @import { Item } from "./federation.js" */

/** Items and their look-up tables; those of titles are made when they are first needed.
 * @typedef {{ digest: string, items: Item[], numberOf: Map<string, number>, membersOf: Map<string, number[]>,
 *   categories: string[], plain: string[] | null, titles: Map<string, number | null> | null }} Catalogue */

/** A title as it is compared.
 * @type {(text: unknown) => string} */
export function plainTitle(text) {
  return String(text)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
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
  return { digest, items, numberOf, membersOf, categories, plain: null, titles: null };
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
  const found = [];
  for (const number of among) {
    const title = plain[number];
    const index = title.indexOf(wanted);
    if (index < 0) continue;
    // The whole title, then its beginning, then the beginning of a word, then anywhere.
    const rank = title === wanted ? 0 : index === 0 ? 1 : title[index - 1] === " " ? 2 : 3;
    found.push({ rank, number });
  }
  found.sort(
    (one, other) =>
      one.rank - other.rank || popularity[other.number] - popularity[one.number] || one.number - other.number,
  );
  return { total: found.length, numbers: found.slice(0, most).map(({ number }) => number) };
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

/** Which items these names mean, by id or by title; and the names that mean none, or more than one.
 * @type {(catalogue: Catalogue, names: string[]) => { numbers: number[], unmatched: string[] }} */
export function matched(catalogue, names) {
  catalogue.titles ??= titleTable(plainOf(catalogue));
  /** @type {Set<number>} */
  const numbers = new Set();
  const unmatched = [];
  for (const name of names) {
    const number = catalogue.numberOf.get(name) ?? byTitle(catalogue.titles, plainTitle(name));
    if (number === undefined || number === null) unmatched.push(name);
    else numbers.add(number);
  }
  return { numbers: [...numbers], unmatched };
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
    if (!whole.has(withoutYear(title))) note(withoutYear(title), number);
  });
  return table;
}

/** @type {(titles: Map<string, number | null>, plain: string) => number | null | undefined} */
function byTitle(titles, plain) {
  return plain ? (titles.get(plain) ?? titles.get(withoutYear(plain))) : undefined;
}
