/* What crosses the wire when pairs are learnt (protocol/messages.py), through the one wire format (wire.js).

    Broadcast   server -> device: the shared model, or the rows of it that changed
    Update      device -> server: gradients of some items
*/

import { checkFinite, checkItems, decodeParts, encodeParts, numberOf, shaped } from "./wire.js";

/** Rows: which items, ascending; a row of factors (or of gradients) and a bias for each.
 * @typedef {{ items: Int32Array, vectors: Float32Array, biases: Float32Array }} Update */

/** Rows of the shared model, as of a round and a version.
 * @typedef {Update & { roundNumber: number, version: number }} Broadcast */

/** The bytes of an Update.
 * @type {(update: Update) => Uint8Array<ArrayBuffer>} */
export function encodeUpdate({ items, vectors, biases }) {
  const rows = items.length;
  return encodeParts({
    items: { values: items, shape: [rows] },
    vectors: { values: vectors, shape: [rows, rows ? vectors.length / rows : 0] },
    biases: { values: biases, shape: [rows] },
  });
}

/** A Broadcast (or the rows of a model) from the wire, once it is sure to be one.
 * @type {(buffer: ArrayBuffer, factors: number, nItems: number) => Broadcast} */
export function decodeBroadcast(buffer, factors, nItems) {
  const parts = decodeParts(buffer, { items: "I32", vectors: "F32", biases: "F32" });
  const rows = parts.arrays.items.values.length;
  /** @type {Update} */
  const update = {
    items: shaped(parts, "items", [rows]),
    vectors: shaped(parts, "vectors", [rows, factors]),
    biases: shaped(parts, "biases", [rows]),
  };
  checkRows(update, nItems);
  return { roundNumber: numberOf(parts, "round"), version: numberOf(parts, "version"), ...update };
}

/** Refuse rows that are not of the form the protocol asks for.
 * @type {(rows: Update, nItems: number) => void} */
export function checkRows({ items, vectors, biases }, nItems) {
  checkItems(items, nItems);
  checkFinite(vectors, biases);
}
