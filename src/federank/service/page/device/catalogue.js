/* The catalogue: items by number, by id, by title and by category.

Titles come from a server and ids from files of the person's own; both are only ever text. Two titles are the same if they
differ in nothing but case, accents, punctuation and spaces; where only one title fits without its year, that will do.
*/

/** A title as it is compared. */
export function plainTitle(text) {
  return String(text)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

const withoutYear = (plain) => plain.replace(/ (18|19|20)\d\d$/, "");

/** The look-up tables of a list of items; those of titles are made when they are first needed. */
export function indexed({ digest, items }) {
  const numberOf = new Map(items.map((item, number) => [item.id, number]));
  const membersOf = new Map();
  items.forEach((item, number) => {
    for (const category of item.categories) {
      if (!membersOf.has(category)) membersOf.set(category, []);
      membersOf.get(category).push(number);
    }
  });
  const categories = [...membersOf.keys()].sort((one, other) => one.localeCompare(other));
  return { digest, items, numberOf, membersOf, categories, plain: null, titles: null };
}

const plainOf = (catalogue) => (catalogue.plain ??= catalogue.items.map((item) => plainTitle(item.title)));

/** Up to `most` items whose title has this text, the better matches first, within a category if one is given. */
export function find(catalogue, text, category, most, popularity) {
  const wanted = plainTitle(text);
  const among = category ? (catalogue.membersOf.get(category) ?? []) : Array.from(catalogue.items.keys());
  if (!wanted) return { total: among.length, numbers: mostPopular(among, most, popularity) };
  const plain = plainOf(catalogue);
  const found = [];
  for (const number of among) {
    const title = plain[number];
    const place = title.indexOf(wanted);
    if (place < 0) continue;
    // The whole title, then its beginning, then the beginning of a word, then anywhere.
    const rank = title === wanted ? 0 : place === 0 ? 1 : title[place - 1] === " " ? 2 : 3;
    found.push({ rank, number });
  }
  found.sort(
    (one, other) =>
      one.rank - other.rank || popularity[other.number] - popularity[one.number] || one.number - other.number,
  );
  return { total: found.length, numbers: found.slice(0, most).map(({ number }) => number) };
}

function mostPopular(among, most, popularity) {
  const best = [];
  for (const number of among) {
    if (best.length === most && popularity[number] <= popularity[best.at(-1)]) continue;
    const place = best.findIndex((other) => popularity[other] < popularity[number]);
    best.splice(place < 0 ? best.length : place, 0, number);
    if (best.length > most) best.pop();
  }
  return best;
}

/** Which items these names mean, by id or by title; and the names that mean none, or more than one. */
export function matched(catalogue, names) {
  catalogue.titles ??= titleTable(plainOf(catalogue));
  const numbers = new Set();
  const unmatched = [];
  for (const name of names) {
    const number = catalogue.numberOf.get(name) ?? byTitle(catalogue.titles, plainTitle(name));
    if (number === undefined || number === null) unmatched.push(name);
    else numbers.add(number);
  }
  return { numbers: [...numbers], unmatched };
}

/** Title -> number; null where several items share it. */
function titleTable(plain) {
  const table = new Map();
  const note = (title, number) => table.set(title, table.has(title) && table.get(title) !== number ? null : number);
  plain.forEach((title, number) => note(title, number));
  const whole = new Set(table.keys());
  plain.forEach((title, number) => {
    if (!whole.has(withoutYear(title))) note(withoutYear(title), number);
  });
  return table;
}

function byTitle(titles, plain) {
  return plain ? (titles.get(plain) ?? titles.get(withoutYear(plain))) : undefined;
}
