/* Canonical JSON and digests (secagg/canonical.py): the same statement is the same bytes on every machine.

Keys ascend, nothing is spaced, text is printable ASCII, numbers are integers. A digest is SHA-256 over a label and parts, each with
its length before it. All of it is WebCrypto's, which a browser has on https and on this machine alone.
*/

import { BadMessage } from "../federation/wire.js";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

const PURPOSE = "federank sums 1 ";
const LONGEST = 100_000;

/** @type {(...parts: ArrayLike<number>[]) => Bytes} */
export function joined(...parts) {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** @type {(text: string) => Bytes} */
export const bytesOf = (text) => new TextEncoder().encode(text);

/** @type {(bytes: Uint8Array) => string} */
export const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes that a text writes in lower-case hexadecimal digits.
 * @type {(text: unknown, length: number, name: string) => Bytes} */
export function hexadecimal(text, length, name) {
  if (typeof text !== "string" || text.length !== 2 * length || !/^[0-9a-f]*$/.test(text))
    throw new BadMessage(["statement.hex", { name, length }]);
  return Uint8Array.from({ length }, (_, index) => parseInt(text.slice(2 * index, 2 * index + 2), 16));
}

/** @type {(value: unknown) => string} */
export function canonical(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  if (typeof value === "string" && /^[ -~]*$/.test(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, held]) => `${canonical(key)}:${canonical(held)}`)
      .join(",")}}`;
  throw new BadMessage(["statement.no-form"]);
}

/** The statement that these bytes write in the one way there is.
 * @type {(bytes: Uint8Array, name: string) => Record<string, any>} */
export function readCanonical(bytes, name) {
  if (bytes.length > LONGEST)
    throw new BadMessage(["statement.too-long", { name, most: LONGEST, fieldsFound: bytes.length }]);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const statement = JSON.parse(text);
    const isObject = typeof statement === "object" && statement !== null && !Array.isArray(statement);
    if (isObject && canonical(statement) === text) return statement;
  } catch {
    // Reported below, whatever was wrong.
  }
  throw new BadMessage(["statement.not-canonical", { name }]);
}

/** Refuse a statement whose fields are not exactly these, of these types.
 * @type {(statement: Record<string, unknown>, name: string, fields: Record<string, string>) => void} */
export function hasFields(statement, name, fields) {
  const fieldsFound = Object.keys(statement).sort();
  if (fieldsFound.join() !== Object.keys(fields).sort().join())
    throw new BadMessage(["statement.fields", { name, fields: Object.keys(fields).join(", ") }]);
  for (const [field, kind] of Object.entries(fields))
    if ((Array.isArray(statement[field]) ? "list" : typeof statement[field]) !== kind || statement[field] === null)
      throw new BadMessage(["statement.type", { field, name, kind }]);
}

/** @type {(label: string, ...parts: Uint8Array[]) => Promise<Bytes>} */
export async function digest(label, ...parts) {
  const lengthened = [bytesOf(PURPOSE + label), ...parts].flatMap((part) => [eightBytes(part.length), part]);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...lengthened)));
}

/** @type {(length: number) => Bytes} */
function eightBytes(length) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length));
  return bytes;
}

/** The bytes of numbers as they are in memory; every browser's are little-endian, as the wire's are.
 * @type {(numbers: Int8Array | Int32Array | Uint32Array | Float32Array | Float64Array) => Uint8Array} */
export const inMemory = (numbers) => new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
