/* A history file from the user's own disk: read here, in this page, and sent nowhere.

JSON: a list of ids or titles, or of tables that have one; or a table with such a list. CSV (or tabs, or semicolons): a column
called item, id, title, name, place, film, ... with a header, or else the first column. So the exports of Letterboxd, IMDb,
Netflix, Goodreads and Google (saved places) are understood. A year beside a title goes with it. Where things are liked, a rating in
the lower part of its scale is not a like; where they are rated, it becomes as many stars of the federation's own scale, and what has
no rating says nothing. A file without ratings (what was watched) says nothing of likes: the user is asked. Text may be UTF-8 or
Windows-1252.
*/

import { Fault, saidOf } from "../faults.js";

export class BadFile extends Fault {}

const LARGEST = 10 * 2 ** 20;
const MOST_NAMES = 50_000;
const TITLES = ["title", "name", "place", "venue", "movie", "film"];
// The first that a file has is taken: an id says more than a title.
const IDS = ["item", "item_id", "itemid", "id", "movie_id", "movieid", "venue_id", "venueid", "place_id", "asin"];
const COLUMNS = [...IDS, ...TITLES];
const RATINGS = ["rating", "your rating", "my rating", "stars", "star rating"];
const LEAST_LIKED = 0.6; // of the best rating there is: three stars of five, six points of ten

/** A line of a file: what it names, how it was rated (0: not at all), and of how much where a column's name says it; by an id (and
 * not by a title) it is of the federation's own making, and so is its scale.
 * @typedef {{ name: string, rating: number, best?: number, byId?: boolean }} Line */

/** The best rating of a file's scale: five stars or ten points.
 * @type {(lines: Line[]) => number} */
const bestOf = (lines) => (lines.some(({ rating, best = 5 }) => rating > 5 || best > 5) ? 10 : 5);

/** The ids or titles that a file holds, each once, in its order; and how many were left out because they were rated low.
 * @type {(text: string) => { names: string[], low: number, rated: boolean }} */
export function namesInFile(text) {
  const lines = linesIn(text);
  const least = LEAST_LIKED * bestOf(lines);
  const isLow = (/** @type {Line} */ { rating }) => rating > 0 && rating < least;
  const once = [...new Set(lines.filter((line) => !isLow(line)).map(({ name }) => name))];
  const low = new Set(lines.filter(isLow).map(({ name }) => name)).size;
  if (!once.length && low) throw new BadFile(["file.all-low"]);
  return { names: fewEnough(once), low, rated: lines.some(({ rating }) => rating > 0) };
}

/** What a file gives the ids or titles that it rates, in stars of a federation's scale, the last line of each; and how many it names
 * without a rating.
 * @type {(text: string, scale: { lowest: number, highest: number, step: number }) =>
 *   { stars: [name: string, rating: number][], unrated: number }} */
export function starsInFile(text, { lowest, highest, step }) {
  const lines = linesIn(text);
  const best = bestOf(lines);
  /** @type {(line: Line) => number} */
  const onScale = ({ rating, byId }) => {
    const wanted = byId ? rating : (rating * highest) / best;
    const near = step ? lowest + Math.round((wanted - lowest) / step) * step : wanted;
    return Math.min(highest, Math.max(lowest, near));
  };
  const stars = new Map(lines.filter(({ rating }) => rating > 0).map((line) => [line.name, onScale(line)]));
  const names = new Set(lines.map(({ name }) => name));
  if (names.size && !stars.size) throw new BadFile(["file.unrated"]);
  fewEnough([...stars.keys()]);
  return { stars: [...stars], unrated: names.size - stars.size };
}

/** @type {(names: string[]) => string[]} */
function fewEnough(names) {
  if (!names.length) throw new BadFile(["file.no-items"]);
  if (names.length > MOST_NAMES) throw new BadFile(["file.too-many", { count: names.length, most: MOST_NAMES }]);
  return names;
}

/** @type {(file: File) => Promise<string>} */
export async function textOf(file) {
  if (file.size > LARGEST)
    throw new BadFile(["file.too-large", { size: Math.round(file.size / 2 ** 20), most: LARGEST / 2 ** 20 }]);
  if (file.size === 0) throw new BadFile(["file.empty"]);
  const content = await file.arrayBuffer();
  if (new Uint8Array(content).includes(0)) throw new BadFile(["file.not-text"]);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return new TextDecoder("windows-1252").decode(content);
  }
}

/** @type {(text: string) => Line[]} */
function linesIn(text) {
  const lines = /^\s*[[{]/.test(text) ? linesInJson(text) : linesInTable(text);
  return lines.map((line) => ({ ...line, name: line.name.trim() })).filter(({ name }) => name);
}

/** @type {(text: string) => Line[]} */
function linesInJson(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (fault) {
    throw new BadFile(["file.not-json", { reason: saidOf(fault) }]);
  }
  const list = Array.isArray(content) ? content : Object.values(content).find(Array.isArray);
  if (!list) throw new BadFile(["file.no-list"]);
  return list.map((entry) => (isName(entry) ? { name: String(entry), rating: 0 } : lineOf(entry)));
}

/** @type {(value: unknown) => boolean} */
function isName(value) {
  return typeof value === "string" || typeof value === "number";
}

/** @type {(entry: any) => Line} */
function lineOf(entry) {
  // Saved places of a map are points with properties, and these have a location.
  const { properties = {} } = Object(entry);
  const fields = { ...entry, ...properties, ...properties?.location };
  const low = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key.toLowerCase(), value]));
  return lineFrom((column) => (isName(low[column]) ? String(low[column]) : ""));
}

/** @type {(text: (column: string) => string) => Line} */
function lineFrom(text) {
  const column = COLUMNS.find((name) => text(name));
  const rated = RATINGS.find(text);
  const rating = rated ? Number(text(rated)) : 0;
  if (!column) return { name: "", rating: 0 };
  const isTitle = TITLES.includes(column);
  const year = isTitle && /^(18|19|20)\d\d$/.test(text("year")) ? ` (${text("year")})` : "";
  // A series that was watched is one thing, however many of its episodes were.
  const name = isTitle
    ? text(column).replace(/: (Season|Series|Part|Limited Series|Stagione|Staffel)\b.*$/, "")
    : text(column);
  return {
    name: `${name}${year && !name.endsWith(year) ? year : ""}`,
    rating: Number.isFinite(rating) ? rating : 0,
    best: rated === "your rating" ? 10 : 5,
    byId: !isTitle,
  };
}

/** @type {(text: string) => Line[]} */
function linesInTable(text) {
  const firstLine = text.replace(/^\uFEFF/, "").split(/\r?\n/, 1)[0];
  const separator = ["\t", ";", ","].reduce(
    (best, mark) => (firstLine.split(mark).length > firstLine.split(best).length ? mark : best),
    ",",
  );
  const rows = cells(text.replace(/^\uFEFF/, ""), separator);
  const header = (rows[0] ?? []).map((cell) => cell.trim().toLowerCase());
  if (!COLUMNS.some((name) => header.includes(name))) return rows.map((row) => ({ name: row[0] ?? "", rating: 0 }));
  return rows.slice(1).map((row) => lineFrom((column) => (row[header.indexOf(column)] ?? "").trim()));
}

/** The cells of a CSV: quotes may hold separators, line ends and doubled quotes.
 * @type {(text: string, separator: string) => string[][]} */
function cells(text, separator) {
  /** @type {string[]} */
  let row = [];
  const rows = [row];
  let cell = "";
  let quoted = false;
  for (let index = 0; index < text.length; index++) {
    const mark = text[index];
    if (quoted) {
      if (mark !== '"') cell += mark;
      else if (text[index + 1] === '"') cell += text[++index];
      else quoted = false;
    } else if (mark === '"' && !cell) quoted = true;
    else if (mark === separator) (row.push(cell), (cell = ""));
    else if (mark === "\n") (row.push(cell.replace(/\r$/, "")), rows.push((row = [])), (cell = ""));
    else cell += mark;
  }
  if (quoted) throw new BadFile(["file.open-quote"]);
  row.push(cell.replace(/\r$/, ""));
  return rows;
}
