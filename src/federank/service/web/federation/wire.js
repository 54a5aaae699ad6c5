/* The one wire format: arrays by name, and integers beside them, as safetensors (federation/wire.py).

A message is eight bytes with the length of a header, the header in JSON, and the arrays one after the other. Whatever comes
from a server is checked before it is used: a bounded header, the parts that were expected and no other, their types, no gap
and no overlap. What is right about a family's parts (shapes, items, finite numbers) it checks itself with the functions below.
Anything else is a BadMessage, and changes nothing.
*/

import { Fault } from "../faults.js";

const LONGEST_HEADER = 10_000;

/** The types of numbers, in the order in which arrays of them are written. */
const KINDS = { F64: Float64Array, F32: Float32Array, I32: Int32Array, I8: Int8Array };

/** @typedef {keyof typeof KINDS} Kind */
/** @typedef {Float64Array | Float32Array | Int32Array | Int8Array} Numbers */

/** What a message holds: its arrays with their shapes, and the text of its metadata.
 * @typedef {{ arrays: Record<string, { values: Numbers, shape: number[] }>, about: Record<string, unknown> }} Parts */

export class BadMessage extends Fault {}

/** @type {(shape: number[]) => number} */
const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

/** The bytes of a message without numbers, from arrays and their shapes: the same bytes that Python writes.
 * @type {(arrays: Record<string, { values: Numbers, shape: number[] }>) => Uint8Array<ArrayBuffer>} */
export function encodeParts(arrays) {
  const kinds = Object.entries(KINDS);
  const parts = Object.entries(arrays)
    .map(([name, { values, shape }]) => ({
      name,
      values,
      shape,
      kind: kinds.findIndex(([, K]) => values instanceof K),
    }))
    .sort((one, other) => one.kind - other.kind || (one.name < other.name ? -1 : 1));
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: [number, number] }>} */
  const header = {};
  let end = 0;
  for (const { name, values, shape, kind } of parts)
    header[name] = { dtype: kinds[kind][0], shape, data_offsets: [end, (end += values.byteLength)] };
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const body = new Uint8Array(8 + text.length + end);
  new DataView(body.buffer).setBigUint64(0, BigInt(text.length), true);
  body.set(new TextEncoder().encode(text), 8);
  for (const { name, values } of parts) {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    body.set(bytes, 8 + text.length + header[name].data_offsets[0]);
  }
  return body;
}

/** The parts of a message, if they are those that are needed, with these types, and no others than the optional ones.
 * @type {(buffer: ArrayBuffer, needed: Record<string, Kind>, optional?: Record<string, Kind>) => Parts} */
export function decodeParts(buffer, needed, optional = {}) {
  const { header, first } = readHeader(buffer);
  const { __metadata__: about, ...parts } = header;
  const names = Object.keys(parts).sort();
  const kinds = { ...needed, ...optional };
  if (
    !Object.keys(needed).every((name) => Object.hasOwn(parts, name)) ||
    !names.every((name) => Object.hasOwn(kinds, name))
  )
    throw new BadMessage([
      "wire.parts",
      { actual: names.join(", ").slice(0, 200), needed: Object.keys(needed).join(", ") },
    ]);
  /** @type {Parts["arrays"]} */
  const arrays = {};
  /** @type {[number, number][]} */
  const spans = [];
  for (const name of names) {
    const { dtype, shape, data_offsets: offsets } = Object(parts[name]);
    const kind = kinds[name];
    if (dtype !== kind) throw new BadMessage(["wire.type", { name, actual: String(dtype), needed: kind }]);
    const isShape = Array.isArray(shape) && shape.every((length) => Number.isInteger(length) && length >= 0);
    const [start, end] = Array.isArray(offsets) ? offsets : [];
    const bytes = isShape ? sizeOf(shape) * KINDS[kind].BYTES_PER_ELEMENT : -1;
    const isWithin = Number.isInteger(start) && Number.isInteger(end) && start >= 0 && first + end <= buffer.byteLength;
    if (!isWithin || end - start !== bytes) throw new BadMessage(["wire.outside", { name }]);
    spans.push([start, end]);
    arrays[name] = { values: new KINDS[kind](buffer.slice(first + start, first + end)), shape };
  }
  spans.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const gapless = spans.every(([start], index) => start === (index ? spans[index - 1][1] : 0));
  if (!gapless || first + (spans.at(-1)?.[1] ?? 0) !== buffer.byteLength) throw new BadMessage(["wire.overlap"]);
  return { arrays, about: Object(about) };
}

/** @type {(buffer: ArrayBuffer) => { header: Record<string, any>, first: number }} */
function readHeader(buffer) {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength < 8) throw new BadMessage(["wire.short"]);
  const length = new DataView(buffer).getBigUint64(0, true);
  if (length > LONGEST_HEADER || 8n + length > BigInt(buffer.byteLength))
    throw new BadMessage(["wire.header", { length: Number(length), most: LONGEST_HEADER }]);
  const first = 8 + Number(length);
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, Number(length))));
  } catch {
    throw new BadMessage(["wire.header-json"]);
  }
  if (typeof header !== "object" || header === null || Array.isArray(header))
    throw new BadMessage(["wire.header-table"]);
  return { header, first };
}

/** An array of a record: its type, what its axes are, and the bounds of its numbers; an `index` names items, ascending.
 * @typedef {{ kind: Kind, axes: (string | number)[], index?: boolean, minimum?: number, maximum?: number }} Part */

/** The arrays of a record by their names (schemas.js).
 * @typedef {Record<string, Part>} Schema */

/** @type {(axes: (string | number)[], sizes: Record<string, number>) => number[]} */
const shapeOf = (axes, sizes) => axes.map((axis) => (typeof axis === "number" ? axis : sizes[axis]));

/** The bytes of a record; an array without numbers is not sent.
 * @type {(schema: Schema, record: Record<string, any>, sizes: Record<string, number>) => Uint8Array<ArrayBuffer>} */
export const encodeRecord = (schema, record, sizes) =>
  encodeParts(
    Object.fromEntries(
      Object.entries(schema)
        .filter(([name]) => record[name].length)
        .map(([name, { axes }]) => [name, { values: record[name], shape: shapeOf(axes, sizes) }]),
    ),
  );

/** Rows of a broadcast from the wire, once they are sure to be some; a full broadcast names no items.
 * @type {(schema: Schema, buffer: ArrayBuffer, sizes: Record<string, number>) => any} */
export function decodeRows(schema, buffer, sizes) {
  const kinds = Object.fromEntries(Object.entries(schema).map(([name, { kind }]) => [name, kind]));
  const parts = decodeParts(buffer, {}, { ...kinds, items: "I32" });
  const rows = parts.arrays.items ? parts.arrays.items.values.length : sizes.items;
  /** @type {Int32Array} */
  const items = parts.arrays.items ? shaped(parts, "items", [rows]) : Int32Array.from({ length: rows }, (_, n) => n);
  checkItems(items, sizes.items);
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  for (const [name, { kind, axes }] of Object.entries(schema)) {
    const shape = shapeOf(axes, { ...sizes, items: rows });
    arrays[name] = sizeOf(shape) || parts.arrays[name] ? shaped(parts, name, shape) : new KINDS[kind](0);
  }
  checkRecord(schema, arrays, sizes.items);
  return { roundNumber: numberOf(parts, "round"), version: numberOf(parts, "version"), items, ...arrays };
}

/** @type {(schema: Schema, record: Record<string, any>, nItems: number) => void} */
export function checkRecord(schema, record, nItems) {
  for (const [name, { index, minimum = -Infinity, maximum = Infinity }] of Object.entries(schema)) {
    checkFinite(record[name]);
    if (index) checkItems(record[name], nItems);
    for (const value of record[name])
      if (value < minimum || value > maximum) throw new BadMessage(["wire.bounds", { name }]);
  }
}

/** A part's values, which must have this shape.
 * @type {<T extends Numbers>(parts: Parts, name: string, shape: number[]) => T} */
export function shaped(parts, name, shape) {
  const { values, shape: actual } = parts.arrays[name] ?? { values: new Float32Array(0), shape: [] };
  if (String(actual) !== String(shape))
    throw new BadMessage(["wire.shape", { name, actual: String(actual), needed: String(shape) }]);
  return /** @type {any} */ (values);
}

/** An integer of the metadata: which round, which version.
 * @type {(parts: Parts, name: string) => number} */
export function numberOf({ about }, name) {
  const text = about[name];
  if (typeof text !== "string" || !/^\d{1,15}$/.test(text))
    throw new BadMessage(["wire.integer", { name, actual: JSON.stringify(text) }]);
  return Number(text);
}

/** @type {(items: Int32Array, nItems: number) => void} */
export function checkItems(items, nItems) {
  for (let index = 0; index < items.length; index++)
    if (items[index] < 0 || items[index] >= nItems || (index && items[index] <= items[index - 1]))
      throw new BadMessage(["wire.items", { last: nItems - 1 }]);
}

/** @type {(...arrays: Numbers[]) => void} */
export function checkFinite(...arrays) {
  for (const values of arrays)
    for (let index = 0; index < values.length; index++)
      if (!Number.isFinite(values[index])) throw new BadMessage(["wire.finite"]);
}
