/* Computation where squares are learnt: a device's own vector in closed form, and one number an item.

The twin of models/squares.py and protocol/squares/computation.py, which have the objective. With Y the item vectors, D their
weights, w the confidence that a person dislikes what they do not have and 1 + alpha that they like what they have:

    x   = (w Y'DY + (1 + alpha - w) Y_u'DY_u + lambda I)^-1  (1 + alpha) sum of D Y_u      over the own items u
    w_i = c_i (p_i - x . y_i)       with c = 1 + alpha, p = 1 for own items; c = w, p = 0 for all others

Sums and the solve (Cholesky: the matrix is symmetric and positive) are done in double precision; what comes out is rounded to
32 bits, as in Python, and agrees with it to 1e-5 relative and 1e-6 absolute.
*/

import { addProducts, mirror, solve } from "../solving.js";
import { BadMessage } from "../wire.js";

/** What counts how much: `liked` is 1 + alpha, `unobserved` is w.
 * @typedef {{ liked: number, unobserved: number }} Objective */

/** The item vectors (a row for each item), the items' weights, and lambda.
 * @typedef {{ vectors: Float32Array, weights: Float32Array, regulariser: number }} SquaresModel */

/** Y'DY: the inner products of all columns, each item with its weight. It serves every solve on the same model.
 * @type {(model: SquaresModel) => Float64Array} */
export function gramMatrix({ vectors, weights }) {
  const factors = weights.length ? vectors.length / weights.length : 0;
  const products = new Float64Array(factors * factors);
  const row = new Float64Array(factors);
  for (let item = 0, first = 0; item < weights.length; item++, first += factors) {
    for (let f = 0; f < factors; f++) row[f] = vectors[first + f];
    addProducts(products, row, weights[item]);
  }
  mirror(products, factors);
  return products;
}

/** The vector that explains this ascending profile best: in a message the outward one, at home the whole history.
 * @type {(objective: Objective, model: SquaresModel, gram: Float64Array, profile: Int32Array) => Float32Array} */
export function ownVector({ liked, unobserved }, { vectors, weights, regulariser }, gram, profile) {
  const factors = Math.sqrt(gram.length);
  const own = new Float64Array(factors * factors);
  const aim = new Float64Array(factors);
  const row = new Float64Array(factors);
  for (const item of profile) {
    for (let f = 0; f < factors; f++) row[f] = vectors[item * factors + f];
    if (liked !== unobserved) addProducts(own, row, weights[item]);
    for (let f = 0; f < factors; f++) aim[f] += weights[item] * row[f];
  }
  mirror(own, factors);
  const sides = gram.map((product, index) => unobserved * product + (liked - unobserved) * own[index]);
  for (let f = 0; f < factors; f++) {
    sides[f * factors + f] += regulariser;
    aim[f] *= liked;
  }
  const solved = Float32Array.from(solve(sides, aim));
  if (!solved.every(Number.isFinite)) throw new BadMessage(["detail.unsolvable"]);
  return solved;
}

/** How strongly each item should move towards the vector: w_i, one number per item.
 * @type {(objective: Objective, vectors: Float32Array, vector: Float32Array, profile: Int32Array) => Float32Array} */
export function pulls({ liked, unobserved }, vectors, vector, profile) {
  const factors = vector.length;
  const x = Float64Array.from(vector);
  const own = new Set(profile);
  const strengths = new Float32Array(vectors.length / factors);
  for (let item = 0; item < strengths.length; item++) {
    let score = 0;
    for (let f = 0, first = item * factors; f < factors; f++) score += x[f] * vectors[first + f];
    strengths[item] = own.has(item) ? liked * (1 - score) : -unobserved * score;
  }
  return strengths;
}
