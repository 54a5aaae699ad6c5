/* Computation where squares are learnt: a device's own vector in closed form, and one number an item.

The twin of models/squares.py and protocol/squares/computation.py, which have the objective. With Y the item vectors, D their
weights, w the confidence that a person dislikes what they do not have and 1 + alpha that they like what they have:

    x   = (w Y'DY + (1 + alpha - w) Y_u'DY_u + lambda I)^-1  (1 + alpha) sum of D Y_u      over the own items u
    w_i = c_i (p_i - x . y_i)       with c = 1 + alpha, p = 1 for own items; c = w, p = 0 for all others

Sums and the solve (Cholesky: the matrix is symmetric and positive) are done in double precision; what comes out is rounded to
32 bits, as in Python, and agrees with it to 1e-5 relative and 1e-6 absolute.
*/

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

/** Add weight * row row' to the upper triangle.
 * @type {(products: Float64Array, row: Float64Array, weight: number) => void} */
function addProducts(products, row, weight) {
  const factors = row.length;
  for (let one = 0, start = 0; one < factors; one++, start += factors) {
    const value = weight * row[one];
    for (let other = one; other < factors; other++) products[start + other] += value * row[other];
  }
}

/** @type {(matrix: Float64Array, size: number) => void} */
function mirror(matrix, size) {
  for (let one = 0; one < size; one++)
    for (let other = 0; other < one; other++) matrix[one * size + other] = matrix[other * size + one];
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
  if (!solved.every(Number.isFinite))
    throw new BadMessage("With this model the device's equations have no solution; nothing was sent.");
  return solved;
}

/** Solve A x = b for a symmetric, positive A, which is lost: A = L L', then L z = b, then L' x = z.
 * @type {(matrix: Float64Array, right: Float64Array) => Float64Array} */
function solve(matrix, right) {
  const size = right.length;
  const solution = Float64Array.from(right);
  for (let row = 0; row < size; row++) {
    const mine = row * size;
    for (let column = 0; column <= row; column++) {
      const theirs = column * size;
      let rest = matrix[mine + column];
      for (let k = 0; k < column; k++) rest -= matrix[mine + k] * matrix[theirs + k];
      // What is not positive has no root: not a number from here on, and the caller refuses it.
      matrix[mine + column] = column < row ? rest / matrix[theirs + column] : Math.sqrt(rest);
    }
    for (let k = 0; k < row; k++) solution[row] -= matrix[mine + k] * solution[k];
    solution[row] /= matrix[mine + row];
  }
  for (let row = size - 1; row >= 0; row--) {
    for (let k = row + 1; k < size; k++) solution[row] -= matrix[k * size + row] * solution[k];
    solution[row] /= matrix[row * size + row];
  }
  return solution;
}

/** How strongly each of these items should move towards the vector: w_i, one number an item of the block, in its order.
 * @type {(objective: Objective, vectors: Float32Array, vector: Float32Array, profile: Int32Array, block: Int32Array) => Float32Array} */
export function pulls({ liked, unobserved }, vectors, vector, profile, block) {
  const factors = vector.length;
  const x = Float64Array.from(vector);
  const own = new Set(profile);
  const strengths = new Float32Array(block.length);
  for (let index = 0; index < block.length; index++) {
    const item = block[index];
    let score = 0;
    for (let f = 0, first = item * factors; f < factors; f++) score += x[f] * vectors[first + f];
    strengths[index] = own.has(item) ? liked * (1 - score) : -unobserved * score;
  }
  return strengths;
}
