/* The messages of squares as bytes (protocol/squares/codec.py), through the one wire format (wire.js).

A Broadcast tells its rows as `codes` and `scales`, or as `vectors` where they travel as they are; `items` are left out where all
rows are told, and `weights` where every item weighs 1.
*/

import { BadMessage, checkFinite, checkItems, decodeParts, encodeParts, numberOf, shaped } from "../wire.js";
import { LEVELS, restored } from "./messages.js";

/** @import { Kind, Parts } from "../wire.js" */
/** @import { SquaresBroadcast, SquaresUpdate } from "./messages.js" */

/** @type {Record<string, Kind>} */
const NEEDED = { regulariser: "F64" };
/** @type {Record<string, Kind>} */
const OPTIONAL = { items: "I32", weights: "F32", codes: "I8", scales: "F32", vectors: "F32" };

/** The bytes of an Update.
 * @type {(update: SquaresUpdate) => Uint8Array<ArrayBuffer>} */
export function encodeSquaresUpdate({ strengths, vector, scale }) {
  return encodeParts({
    strengths: { values: strengths, shape: [strengths.length] },
    vector: { values: vector, shape: [vector.length] },
    scale: { values: Float32Array.of(scale), shape: [1] },
  });
}

/** A Broadcast from the wire, once it is sure to be one; its rows as they are to be used, in whatever form they came.
 * @type {(buffer: ArrayBuffer, factors: number, nItems: number) => SquaresBroadcast} */
export function decodeSquaresBroadcast(buffer, factors, nItems) {
  const parts = decodeParts(buffer, NEEDED, OPTIONAL);
  const { arrays } = parts;
  const count = arrays.items ? arrays.items.values.length : nItems;
  /** @type {Int32Array} */
  const items = arrays.items ? shaped(parts, "items", [count]) : Int32Array.from({ length: nItems }, (_, item) => item);
  checkItems(items, nItems);
  /** @type {Float32Array} */
  const weights = arrays.weights ? shaped(parts, "weights", [count]) : new Float32Array(count).fill(1);
  checkFinite(weights);
  if (weights.some((weight) => weight < 0)) throw new BadMessage(["wire.weights"]);
  const [regulariser] = shaped(parts, "regulariser", [1]);
  if (!(Number.isFinite(regulariser) && regulariser >= 0)) throw new BadMessage(["wire.regulariser"]);
  const vectors = rowsOf(parts, count, factors);
  return {
    roundNumber: numberOf(parts, "round"),
    version: numberOf(parts, "version"),
    regulariser,
    items,
    weights,
    vectors,
  };
}

/** @type {(parts: Parts, rows: number, factors: number) => Float32Array} */
function rowsOf(parts, rows, factors) {
  const { codes, scales, vectors } = parts.arrays;
  if (Boolean(codes) !== Boolean(scales) || Boolean(codes) === Boolean(vectors)) throw new BadMessage(["wire.rows"]);
  if (vectors) {
    /** @type {Float32Array} */
    const told = shaped(parts, "vectors", [rows, factors]);
    checkFinite(told);
    return told;
  }
  /** @type {Int8Array} */
  const levels = shaped(parts, "codes", [rows, factors]);
  /** @type {Float32Array} */
  const steps = shaped(parts, "scales", [rows]);
  checkFinite(steps);
  if (levels.some((level) => level < -LEVELS)) throw new BadMessage(["wire.codes", { levels: LEVELS }]);
  if (steps.some((step) => step < 0)) throw new BadMessage(["wire.scales"]);
  const told = restored(levels, steps);
  checkFinite(told);
  return told;
}
