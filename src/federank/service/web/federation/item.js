/* An item of the catalogue, from what the server says of it. */

/** An item: its title without the year, the year where it has one, its titles in other languages by their codes, and
 * all other names that it is found by; whether it has `ended`, and is neither sent nor recommended.
 * @typedef {{ id: string, title: string, year: number | null, local: Record<string, string>, others: string[],
 *   categories: string[], ended: boolean }} Item */

/** @type {(raw: any) => Item} */
export function itemFrom(raw) {
  const given = String(raw.title || raw.id);
  const [, title = given, year = ""] = /^(.+) \(((?:18|19|20)\d\d)\)$/.exec(given) ?? [];
  const local = Object.fromEntries(Object.entries(Object(raw.titles)).map(([code, name]) => [code, String(name)]));
  return {
    id: String(raw.id),
    title,
    year: Number(year) || null,
    local,
    others: [...(year ? [given] : []), ...Object.values(local)],
    categories: Array.isArray(raw.categories) ? raw.categories.map(String) : [],
    ended: raw.ended === true,
  };
}
