/* The home vector: who somebody is, learnt on the device and never used in a round; and the best items by it.

The twin of protocol/pairs/home.py.

It starts from zero and is learnt from the whole history with the public item factors as they are. It stays here.
*/

import { compute } from "./computation.js";

/** @import { Recipe } from "./computation.js" */

/** The public item factors, a row for each item of the catalogue.
 * @typedef {{ vectors: Float32Array, biases: Float32Array }} Model */

const HOME_ROUND = 0xffffffff; // stands for the round in the home vector's draws, so that no round shares them
export const HOME_STEPS = 1000;

/** A vector learnt from an ascending history in this many steps; zero where no pair can be drawn.
 * @type {(recipe: Recipe, seed: number, user: number, history: Int32Array, model: Model, steps?: number) => Float32Array} */
export function homeVector(recipe, seed, user, history, model, steps = HOME_STEPS) {
  const person = { seed, user, profile: history, vector: new Float32Array(recipe.factors), triples: steps };
  if (history.length > 0 && history.length < model.biases.length)
    compute({ ...recipe, summed: false }, person, { ...model, roundNumber: HOME_ROUND });
  return person.vector;
}

/** A vector's score of every item: x = b + Q p.
 * @type {(vector: Float32Array, model: Model) => Float32Array} */
export function scores(vector, { vectors, biases }) {
  const factors = vector.length;
  const values = new Float32Array(biases.length);
  for (let item = 0, place = 0; item < values.length; item++) {
    let x = biases[item];
    for (let f = 0; f < factors; f++) x += vector[f] * vectors[place++];
    values[item] = x;
  }
  return values;
}

/** The n best items, best first, without those in `leftOut`; ties go to the smaller number.
 * @type {(values: Float32Array, n: number, leftOut: Set<number>) => number[]} */
export function topN(values, n, leftOut) {
  /** @type {number[]} */
  const best = [];
  let bar = -Infinity;
  for (let item = 0; item < values.length; item++) {
    const value = values[item];
    if (!(value > bar) || leftOut.has(item)) continue;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < value) place--;
    best.splice(place, 0, item);
    if (best.length > n) best.pop();
    if (best.length === n) bar = values[best[n - 1]];
  }
  return best;
}
