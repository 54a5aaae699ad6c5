/* At home, where ratings are learnt: a person's vector in closed form, from a few stars or from many (protocol/ratings/home.py).

    U = (V'V + pull I)^-1  V' (r - V beside)          over the rated items' V, in double precision
*/

import { BadMessage } from "../wire.js";
import { addProducts, mirror, solve } from "../solving.js";

export const HOME_PULL = 0.5;

/** What predicts these ratings best: the solved vector, and what stands beside it.
 * @type {(vectors: Float32Array, items: Int32Array, ratings: Float32Array, beside: Float64Array, pull?: number) => Float32Array} */
export function solvedTaste(vectors, items, ratings, beside, pull = HOME_PULL) {
  const factors = beside.length;
  const sides = new Float64Array(factors * factors);
  const aim = new Float64Array(factors);
  const row = new Float64Array(factors);
  items.forEach((item, index) => {
    let told = 0;
    for (let f = 0; f < factors; f++) {
      row[f] = vectors[item * factors + f];
      told += row[f] * beside[f];
    }
    addProducts(sides, row, 1);
    for (let f = 0; f < factors; f++) aim[f] += row[f] * (ratings[index] - told);
  });
  mirror(sides, factors);
  for (let f = 0; f < factors; f++) sides[f * factors + f] += pull;
  const taste = Float32Array.from(solve(sides, aim), (own, f) => own + beside[f]);
  if (!taste.every(Number.isFinite)) throw new BadMessage(["detail.unsolvable"]);
  return taste;
}

/** What the rated items' W say together; nothing without rows.
 * @type {(implicit: Float32Array, items: Int32Array, factors: number) => Float64Array} */
export function besideOf(implicit, items, factors) {
  const total = new Float64Array(factors);
  if (!implicit.length || !items.length) return total;
  for (const item of items) for (let f = 0; f < factors; f++) total[f] += implicit[item * factors + f];
  return total.map((sum) => sum / Math.sqrt(items.length));
}
