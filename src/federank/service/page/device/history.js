/* A history file from the person's own disk: read here, in this page, and sent nowhere.

JSON: a list of ids or titles, or of tables that have one; or a table with such a list. CSV (or tabs, or semicolons): a column
called item, id, title, name, place, film, ... with a header, or else the first column. What is not such a file gets a sentence.
*/

import { sentenceOf } from "../faults.js";

export class BadFile extends Error {}

const LARGEST = 10 * 2 ** 20;
const MOST_NAMES = 50_000;
// The first that a file has is taken: an id says more than a title.
const COLUMNS = [
  "item",
  "item_id",
  "itemid",
  "id",
  "movie_id",
  "movieid",
  "venue_id",
  "venueid",
  "place_id",
  "asin",
  "title",
  "name",
  "place",
  "venue",
  "movie",
  "film",
];

/** The ids or titles that a file holds, each once, in its order.
 * @type {(file: File) => Promise<string[]>} */
export async function namesInFile(file) {
  if (file.size > LARGEST)
    throw new BadFile(
      `This file has ${(file.size / 2 ** 20).toFixed(0)} MB; a history of up to ${LARGEST / 2 ** 20} MB can be read. Keep only the column with your items and try again.`,
    );
  if (file.size === 0) throw new BadFile("This file is empty; a list of items is needed.");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new BadFile("This file is not text in UTF-8; a CSV or JSON file with a list of items is needed.");
  }
  if (text.includes("\0"))
    throw new BadFile("This file is not text; a CSV or JSON file with a list of items is needed.");
  const names = /^\s*[[{]/.test(text) ? namesInJson(text) : namesInTable(text);
  const once = [...new Set(names.map((name) => name.trim()).filter(Boolean))];
  if (!once.length)
    throw new BadFile("No items were found in this file; a column called item or title, or a JSON list, is needed.");
  if (once.length > MOST_NAMES)
    throw new BadFile(
      `This file names ${once.length.toLocaleString("en")} items; up to ${MOST_NAMES.toLocaleString("en")} can be read.`,
    );
  return once;
}

/** @type {(text: string) => string[]} */
function namesInJson(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (fault) {
    throw new BadFile(`This file begins like JSON and then is not (${sentenceOf(fault)}).`);
  }
  const list = Array.isArray(content) ? content : Object.values(content).find(Array.isArray);
  if (!list) throw new BadFile("This JSON file holds no list; a list of ids or titles is needed.");
  return list.map((entry) => (isName(entry) ? String(entry) : nameOf(entry)));
}

/** @type {(value: unknown) => boolean} */
function isName(value) {
  return typeof value === "string" || typeof value === "number";
}

/** @type {(entry: unknown) => string} */
function nameOf(entry) {
  const fields = Object.entries(entry ?? {}).filter(([, value]) => isName(value));
  const [found] = COLUMNS.flatMap((column) => fields.filter(([key]) => key.toLowerCase() === column));
  return found ? String(found[1]) : "";
}

/** @type {(text: string) => string[]} */
function namesInTable(text) {
  const firstLine = text.replace(/^\uFEFF/, "").split(/\r?\n/, 1)[0];
  const separator = ["\t", ";", ","].reduce(
    (best, mark) => (firstLine.split(mark).length > firstLine.split(best).length ? mark : best),
    ",",
  );
  const rows = cells(text.replace(/^\uFEFF/, ""), separator);
  const header = (rows[0] ?? []).map((cell) => cell.trim().toLowerCase());
  const column = COLUMNS.map((name) => header.indexOf(name)).find((index) => index >= 0);
  return column === undefined ? rows.map((row) => row[0] ?? "") : rows.slice(1).map((row) => row[column] ?? "");
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
  if (quoted) throw new BadFile("A quoted cell of this file never ends; a closing quote is missing.");
  row.push(cell.replace(/\r$/, ""));
  return rows;
}
