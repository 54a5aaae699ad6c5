/* One device's message with differential privacy (methods/frugal/private.py): integers of length at most 4096.

    first     p / sqrt(n): the items of a user with n of them
    later     c = D p - (q . D p) q,  x = V'c,  message = c x' / (|c| |x|): the history without what is popular anyway, times where
              it points among the directions that are looked for

The model's vectors are D^-1 [V, q], its weights D^2. Sums are taken in the order of their numbers, as in Python, so that both make
the same message to the last bit from the same chances.
*/

import { BadMessage } from "../federation/wire.js";
import { C_INT } from "../schemas.js";
import { rounded } from "../secagg/ring.js";

const NOTHING = 1e-20;

/** What a device of a later round works out from the model: D, V (items x directions) and q, of length 1.
 * @typedef {{ scales: Float64Array, wanted: Float64Array, popular: Float64Array }} Directions */

/** @type {(model: { vectors: Float32Array, weights: Float32Array }) => Directions} */
export function directionsOf({ vectors, weights }) {
  const items = weights.length;
  const factors = vectors.length / items;
  const scales = Float64Array.from(weights, Math.sqrt);
  const wanted = new Float64Array(items * (factors - 1));
  const popular = new Float64Array(items);
  let squares = 0;
  for (let item = 0, at = 0; item < items; item++) {
    const first = item * factors;
    for (let f = 0; f < factors - 1; f++) wanted[at++] = vectors[first + f] * scales[item];
    popular[item] = vectors[first + factors - 1] * scales[item];
    squares += popular[item] * popular[item];
  }
  const length = Math.sqrt(squares);
  if (length > 0) for (let item = 0; item < items; item++) popular[item] /= length;
  return { scales, wanted, popular };
}

/** The message of a plan's stage; `known` is needed by all stages but the first. `chances` are uniform 16-bit words, one for each
number. A history that gives no direction sends zeros.
 * @type {(stage: number, items: number, profile: Int32Array, known: Directions | null, chances: Uint16Array) =>
 *   Int32Array<ArrayBuffer>} */
export function privateMessage(stage, items, profile, known, chances) {
  const values = stage === 0 || !known ? popularity(items, profile) : history(profile, known);
  if (!values) return new Int32Array(chances.length);
  if (!values.every(Number.isFinite)) throw new BadMessage(["upload.finite"]);
  return rounded(values, C_INT, chances);
}

/** @type {(items: number, profile: Int32Array) => Float64Array} */
function popularity(items, profile) {
  const row = new Float64Array(items);
  for (const item of profile) row[item] = 1 / Math.sqrt(profile.length);
  return row;
}

/** @type {(profile: Int32Array, known: Directions) => Float64Array | null} */
function history(profile, { scales, wanted, popular }) {
  const items = scales.length;
  const columns = wanted.length / items;
  let shared = 0;
  for (const item of profile) shared += popular[item] * scales[item];
  const row = popular.map((value) => -shared * value);
  for (const item of profile) row[item] += scales[item];
  let length = 0;
  const pointed = new Float64Array(columns);
  for (let item = 0, at = 0; item < items; item++) {
    length += row[item] * row[item];
    for (let f = 0; f < columns; f++) pointed[f] += row[item] * wanted[at++];
  }
  let aim = 0;
  for (const value of pointed) aim += value * value;
  if (length <= NOTHING || aim <= NOTHING) return null;
  const [long, far] = [Math.sqrt(length), Math.sqrt(aim)];
  const direction = pointed.map((value) => value / far);
  return Float64Array.from(
    { length: items * columns },
    (_, at) => (row[Math.floor(at / columns)] / long) * direction[at % columns],
  );
}
