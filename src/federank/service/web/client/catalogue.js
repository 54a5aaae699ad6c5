/* The catalogue: items by number, by id, by title, by category and by decade.

Titles come from a server and ids from the user's own files; both are only ever text. Two titles are the same if they differ in nothing
but case, accents, punctuation and spaces, or in where their article stands ("Matrix, The"); where only one title matches without its
year, that is enough. A search never ends in nothing: what no title has is searched with typos, then by the nearest match.
*/

/** Items and their look-up tables; those of titles are made when they are first needed.
 * @typedef {{ digest: string, items: Item[], numberOf: Map<string, number>, membersOf: Map<string, number[]>,
 *   categories: string[], decades: number[], names: string[][] | null, titles: Map<string, number | null> | null,
 *   having: Map<string, number[]> | null }} Catalogue */

/** What is looked for: text, a category, a decade, empty or 0 where it does not matter; and the ids of what stands first where no text
 * is given.
 * @typedef {{ text: string, category?: string, decade?: number, first?: string[] }} Query */

// "matrix the 1999" is "the matrix 1999": catalogues put articles last, to sort by what follows them.
const TRAILING_ARTICLE = /^(.+) (the|a|an|il|lo|la|le|les|gli|i|l|der|die|das|el|los|las)( (?:18|19|20)\d\d)?$/;
const LEADING_ARTICLE = /^(?:the|a|an|il|lo|la|gli|der|die|das) /;
const YEAR = / ((?:18|19|20)\d\d)$/;
/** Roman numerals are compared as digits; a lone I is more often a word.
 * @type {Record<string, string>} */
const NUMERALS = { ii: "2", iii: "3", iv: "4", v: "5", vi: "6", vii: "7", viii: "8", ix: "9" };
const NEAREST = 12; // shown where nothing matches

/** @type {(text: unknown) => string} */
function plainTitle(text) {
  return String(text)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/ß/g, "ss")
    .replace(/&/g, " and ")
    .replace(/['’‘`]/g, "")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim()
    .replace(TRAILING_ARTICLE, (_, name, article, year = "") => `${article} ${name}${year}`)
    .replace(/(?<= )(?:i{2,3}|iv|vi{0,3}|ix)(?= |$)/g, (numeral) => NUMERALS[numeral])
    .replace(/ (?:part|teil|parte|episode|episodio|vol|volume|chapter) (?=\d)/g, " ");
}

/** @type {(plain: string) => string} */
const withoutYear = (plain) => plain.replace(YEAR, "");

/** @type {(year: number) => number} */
const decadeOf = (year) => Math.floor(year / 10) * 10;

/** @type {(catalogue: { digest: string, items: Item[] }) => Catalogue} */
export function indexed({ digest, items }) {
  const numberOf = new Map(items.map((item, number) => [item.id, number]));
  /** @type {Map<string, number[]>} */
  const membersOf = new Map();
  items.forEach((item, number) => {
    for (const category of item.categories) membersOf.set(category, [...(membersOf.get(category) ?? []), number]);
  });
  const categories = [...membersOf.keys()].sort((one, other) => one.localeCompare(other));
  const decades = [...new Set(items.flatMap(({ year }) => (year ? [decadeOf(year)] : [])))].sort((a, b) => b - a);
  return { digest, items, numberOf, membersOf, categories, decades, names: null, titles: null, having: null };
}

/** Every name of every item, as it is compared: its title first, then those of other languages.
 * @type {(catalogue: Catalogue) => string[][]} */
const namesOf = (catalogue) =>
  (catalogue.names ??= catalogue.items.map(({ title, others }) => [title, ...others].map(plainTitle)));

/** The items that match, best first; `nearest` where none matches and these are only the nearest.
 * @type {(catalogue: Catalogue, query: Query, popularity: Float32Array) => { numbers: number[], nearest: boolean }} */
export function find(catalogue, { text, category = "", decade = 0, first = [] }, popularity) {
  const wanted = plainTitle(text);
  const members = category ? (catalogue.membersOf.get(category) ?? []) : Array.from(catalogue.items.keys());
  const all = members.filter((number) => !catalogue.items[number].ended);
  const among = decade ? all.filter((number) => decadeOf(catalogue.items[number].year ?? 0) === decade) : all;
  /** @type {(ranked: { rank: number, number: number }[]) => number[]} */
  const inOrder = (ranked) =>
    ranked
      .sort((a, b) => a.rank - b.rank || popularity[b.number] - popularity[a.number] || a.number - b.number)
      .map(({ number }) => number);
  if (!wanted) {
    const places = new Map(first.map((id, place) => [id, place]));
    const rankOfId = (/** @type {number} */ number) => places.get(catalogue.items[number].id) ?? first.length;
    return { numbers: inOrder(among.map((number) => ({ rank: rankOfId(number), number }))), nearest: false };
  }
  const names = namesOf(catalogue);
  const words = wanted.split(" ");
  const ranked = among.flatMap((number) => {
    const ranks = names[number].flatMap((name) => rankOf(name, wanted, words) ?? []);
    return ranks.length ? [{ rank: Math.min(...ranks), number }] : [];
  });
  if (ranked.length) return { numbers: inOrder(ranked), nearest: false };
  const close = almost(catalogue, words, new Set(among)).map((number) => ({ rank: 0, number }));
  if (close.length) return { numbers: inOrder(close), nearest: false };
  const near = among.map((number) => ({
    rank: -Math.max(...names[number].map((name) => alike(name, wanted))),
    number,
  }));
  return { numbers: inOrder(near).slice(0, NEAREST), nearest: true };
}

/** The full title, its beginning, the beginning of a word, anywhere, all words, joined words, initials; null: not at all.
 * @type {(title: string, wanted: string, words: string[]) => number | null} */
function rankOf(title, wanted, words) {
  const bare = withoutYear(title);
  const index = title.indexOf(wanted);
  if (index >= 0) {
    if (title === wanted) return 0;
    if (bare === wanted) return 0.5; // "Blade Runner 2049" has its year in its name
    if (index === 0 || title.replace(LEADING_ARTICLE, "").startsWith(wanted)) return 1;
    if (title[index - 1] === " ") return 2;
    if (wanted.length > 2) return 3;
  }
  const begins = (/** @type {string} */ word) => title.startsWith(word) || title.includes(` ${word}`);
  if (words.length > 1 && words.every(begins)) return 4;
  const joined = wanted.replaceAll(" ", "");
  if (joined.length > 3 && bare.replaceAll(" ", "").includes(joined)) return 5;
  const initials = bare.split(" ").map((word) => (/^\d/.test(word) ? word : word[0]));
  const short = initials.join("");
  return joined.length > 1 && (short.startsWith(joined) || short.replace(/^t/, "").startsWith(joined)) ? 6 : null;
}

/** The items of whose names each word is one, or the beginning of one, with one typo from four letters, two from seven.
 * @type {(catalogue: Catalogue, words: string[], among: Set<number>) => number[]} */
function almost(catalogue, words, among) {
  catalogue.having ??= wordTable(namesOf(catalogue));
  let left = among;
  for (const word of words) {
    /** @type {Set<number>} */
    const fitting = new Set();
    const most = word.length >= 7 ? 2 : word.length >= 4 ? 1 : 0;
    for (const [own, numbers] of catalogue.having)
      if (own.startsWith(word) || (most && typos(own, word, most) <= most))
        for (const number of numbers) if (left.has(number)) fitting.add(number);
    left = fitting;
  }
  return [...left];
}

/** Every word of a name, and two words joined -> the items that have it.
 * @type {(names: string[][]) => Map<string, number[]>} */
function wordTable(names) {
  /** @type {Map<string, number[]>} */
  const table = new Map();
  names.forEach((own, number) => {
    for (const name of own) {
      const words = withoutYear(name).split(" ");
      for (const word of new Set([...words, ...words.slice(1).map((next, place) => words[place] + next)]))
        table.set(word, [...(table.get(word) ?? []), number]);
    }
  });
  return table;
}

/** How many letters are missing, too many, wrong or swapped between two words (Damerau); more than `most` is `most` + 1.
 * @type {(one: string, other: string, most: number) => number} */
function typos(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let [before, last] = [/** @type {number[]} */ ([]), Array.from({ length: other.length + 1 }, (_, place) => place)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const wrong = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    if (Math.min(...row) > most) return most + 1;
    [before, last] = [last, row];
  }
  return last[other.length];
}

/** How alike two texts are, by the pairs of letters that they share (Dice).
 * @type {(one: string, other: string) => number} */
function alike(one, other) {
  const pairs = (/** @type {string} */ text) =>
    new Set(Array.from({ length: Math.max(1, text.length - 1) }, (_, place) => text.slice(place, place + 2)));
  const [mine, theirs] = [pairs(withoutYear(one)), pairs(other)];
  return (2 * [...mine].filter((pair) => theirs.has(pair)).length) / (mine.size + theirs.size);
}

/** Which items these names mean, by id or by title, and by which name; and the names that mean none, or more than one.
 * @type {(catalogue: Catalogue, names: string[]) => { numbers: number[], unmatched: string[], meant: Map<number, string> }} */
export function matched(catalogue, names) {
  catalogue.titles ??= titleTable(namesOf(catalogue));
  /** @type {Map<number, string>} */
  const meant = new Map();
  const unmatched = [];
  for (const name of names) {
    const number = catalogue.numberOf.get(name) ?? byTitle(catalogue.titles, plainTitle(name));
    if (number === undefined || number === null || catalogue.items[number].ended) unmatched.push(name);
    else if (!meant.has(number)) meant.set(number, name);
  }
  return { numbers: [...meant.keys()], unmatched, meant };
}

/** Title -> number; null where several items share it.
 * @type {(names: string[][]) => Map<string, number | null>} */
function titleTable(names) {
  /** @type {Map<string, number | null>} */
  const table = new Map();
  /** @type {(title: string, number: number) => void} */
  const note = (title, number) => table.set(title, table.has(title) && table.get(title) !== number ? null : number);
  names.forEach((own, number) => own.forEach((title) => note(title, number)));
  const full = new Set(table.keys());
  names.forEach((own, number) => {
    for (const title of own) {
      const short = withoutYear(title);
      for (const other of new Set([short, short.replace(LEADING_ARTICLE, "")]))
        if (!full.has(other)) note(other, number);
    }
  });
  return table;
}

/** @type {(titles: Map<string, number | null>, plain: string) => number | null | undefined} */
function byTitle(titles, plain) {
  return plain ? (titles.get(plain) ?? titles.get(withoutYear(plain))) : undefined;
}
