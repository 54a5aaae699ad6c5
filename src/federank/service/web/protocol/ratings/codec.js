/* Ratings on the wire (protocol/ratings/codec.py), through the one wire format (wire.js).

`heard` is 1 for an item that some Update has ever had and 0 for one that none has: its vector says nothing yet. SVD++ has a second
row for every item, `implicit_vectors`, and gradients of it for the rated items alone.
*/

import { BadMessage, checkFinite, checkItems, decodeParts, encodeParts, numberOf, shaped } from "../wire.js";

/** @import { Kind } from "../wire.js" */

/** Gradients that leave: of rated and sampled items in one ascending list, and of W for SVD++.
 * @typedef {{ items: Int32Array, vectors: Float32Array, implicitItems: Int32Array, implicitVectors: Float32Array }} RatingUpdate */

/** Rows of the shared model; `weights` is what was heard of each.
 * @typedef {{ roundNumber: number, version: number, iteration: number, items: Int32Array, vectors: Float32Array,
 *   weights: Float32Array, implicit: Float32Array }} RatingRows */

/** The bytes of an Update; parts of W without rows are left out.
 * @type {(update: RatingUpdate, factors: number) => Uint8Array<ArrayBuffer>} */
export function encodeRatingUpdate({ items, vectors, implicitItems, implicitVectors }, factors) {
  const own = {
    items: { values: items, shape: [items.length] },
    vectors: { values: vectors, shape: [items.length, factors] },
  };
  if (!implicitItems.length) return encodeParts(own);
  return encodeParts({
    ...own,
    implicit_items: { values: implicitItems, shape: [implicitItems.length] },
    implicit_vectors: { values: implicitVectors, shape: [implicitItems.length, factors] },
  });
}

/** A Broadcast from the wire, once it is sure to be one.
 * @type {(buffer: ArrayBuffer, factors: number, nItems: number, hasImplicit: boolean) => RatingRows} */
export function decodeRatingRows(buffer, factors, nItems, hasImplicit) {
  /** @type {Record<string, Kind>} */
  const more = hasImplicit ? { implicit_vectors: "F32" } : {};
  const parts = decodeParts(buffer, { items: "I32", vectors: "F32", heard: "I8" }, more);
  const rows = parts.arrays.items.values.length;
  /** @type {Int32Array} */
  const items = shaped(parts, "items", [rows]);
  checkItems(items, nItems);
  /** @type {Float32Array} */
  const vectors = shaped(parts, "vectors", [rows, factors]);
  /** @type {Int8Array} */
  const heard = shaped(parts, "heard", [rows]);
  if (heard.some((flag) => flag !== 0 && flag !== 1)) throw new BadMessage(["wire.heard"]);
  /** @type {Float32Array} */
  let implicit = new Float32Array(0);
  if (hasImplicit && rows) {
    if (!parts.arrays.implicit_vectors) throw new BadMessage(["wire.implicit"]);
    implicit = shaped(parts, "implicit_vectors", [rows, factors]);
  }
  checkFinite(vectors, implicit);
  return {
    roundNumber: numberOf(parts, "round"),
    version: numberOf(parts, "version"),
    iteration: numberOf(parts, "iteration"),
    items,
    vectors,
    weights: Float32Array.from(heard),
    implicit,
  };
}
