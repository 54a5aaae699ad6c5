/* Computation where ratings are learnt, in batch style (protocol/ratings/computation.py; FedRec, 2020, Algorithms 2 and 3).

1. Sample items that the person has not rated, and give them virtual ratings (virtual.js).
2. Move the person's vector by the mean gradient over all these ratings.
3. Gather the gradient of every item's V, and for SVD++ of the rated items' W.

Sums are in double precision, and what comes out is rounded to 32 bits: Python's to 1e-5 relative and 1e-6 absolute.
*/

import { USER_FACTORS, WORDS, words } from "../draws.js";
import { virtualItems } from "./virtual.js";

/** @import { RatingUpdate } from "./codec.js" */

/** What a federation has published, with how the owner hides ratings, for so many of them.
 * @typedef {{ factors: number, hasImplicit: boolean, learningRate: number, decay: number, regulariser: number, initialRange: number,
 *   predictFrom: number, localPasses: number, isLocalOwn: boolean, isAfter: boolean, isHybrid: boolean, isFixed: boolean,
 *   virtual: number }} RatingRecipe */

/** Whose device it is: `vector` moves.
 * @typedef {{ seed: number, user: number, vector: Float32Array, items: Int32Array, ratings: Float32Array, sampled: Int32Array }} Rater */

/** The shared model as a round begins.
 * @typedef {{ roundNumber: number, iteration: number, vectors: Float32Array, implicit: Float32Array }} RatingBroadcast */

/** The recipe of one person who takes part with so many ratings.
 * @type {(published: any, hidden: { filling: string, rho: number, sampling: string }, rated: number, nItems: number, hasImplicit: boolean) => RatingRecipe} */
export function ratingRecipe(published, { filling, rho, sampling }, rated, nItems, hasImplicit) {
  const isLate = published.filling_start === "late";
  return {
    factors: published.factors,
    hasImplicit,
    learningRate: published.learning_rate,
    decay: published.decay,
    regulariser: Math.fround(published.regulariser),
    initialRange: published.initial_range,
    predictFrom: isLate ? published.t_predict + 1 : Math.max(published.t_predict - 1, 0),
    localPasses: published.t_local,
    isLocalOwn: published.local_training === "own",
    isAfter: published.item_gradients === "after",
    isHybrid: filling === "hybrid",
    isFixed: sampling === "fixed",
    virtual: Math.min(Math.floor(rho * rated + 1e-9), nItems - rated),
  };
}

/** First values of one row: uniform numbers of mean zero in a range of this width (protocol/ratings/first_values.py).
 * @type {(columns: number, seed: number, row: number, span: number) => Float32Array} */
export function uniformRow(columns, seed, row, span) {
  const values = new Float32Array(columns);
  for (let first = 0; first < columns; first += 4)
    words(seed, row, USER_FACTORS, 0, first / 4).forEach((word, index) => {
      if (first + index < columns) values[first + index] = span * (word / WORDS - 0.5);
    });
  return values;
}

/** One device's part of a round: its vector moves; which items were sampled, and the Update.
 * @type {(recipe: RatingRecipe, person: Rater, broadcast: RatingBroadcast) => RatingUpdate & { sampled: number[] }} */
export function computeRatings(recipe, person, broadcast) {
  const { factors, virtual, isFixed } = recipe;
  const { vectors: V, roundNumber, iteration } = broadcast;
  const nItems = V.length / factors;
  const rate = Math.fround(recipe.learningRate * recipe.decay ** iteration);
  const sampled = virtual
    ? virtualItems({ ...person, isFixed }, roundNumber, person.items, virtual, nItems, person.sampled)
    : [];
  const items = Int32Array.from([...person.items, ...sampled]);
  const mean = Math.fround(person.ratings.reduce((sum, rating) => sum + rating, 0) / person.ratings.length);
  const values = new Float64Array(items.length).fill(mean);
  values.set(person.ratings);
  const others = othersOf(recipe, broadcast.implicit, person.items, items.length);
  if (virtual && recipe.isHybrid && (iteration >= recipe.predictFrom || recipe.isLocalOwn)) {
    /** @type {Float64Array} */
    let local = Float64Array.from(person.vector);
    for (let pass = 0; pass < recipe.localPasses; pass++)
      local = stepped(recipe, local, V, person.items, others, values, rate);
    if (recipe.isLocalOwn) person.vector = Float32Array.from(local);
    if (iteration >= recipe.predictFrom) {
      const beside = others.row(items.length); // all rated items speak for one that is not rated
      sampled.forEach((item, index) => {
        let told = 0;
        for (let f = 0; f < factors; f++) told += (local[f] + beside[f]) * V[item * factors + f];
        values[person.items.length + index] = told;
      });
    }
  }
  const before = Float64Array.from(person.vector);
  const moved = stepped(recipe, before, V, items, others, values, rate);
  const update = gradients(recipe, recipe.isAfter ? moved : before, broadcast, person.items, items, others, values);
  person.vector = Float32Array.from(moved);
  return { ...update, sampled };
}

/** What the W of the other rated items say of each rating, real ones first; nothing for PMF.
 * @typedef {{ row: (index: number) => Float64Array, norm: (index: number) => number }} Others
 * @type {(recipe: RatingRecipe, implicit: Float32Array, rated: Int32Array, count: number) => Others} */
function othersOf({ factors, hasImplicit }, implicit, rated) {
  const nothing = new Float64Array(factors);
  if (!hasImplicit) return { row: () => nothing, norm: () => 0 };
  const total = new Float64Array(factors);
  for (const item of rated) for (let f = 0; f < factors; f++) total[f] += implicit[item * factors + f];
  const norm = (/** @type {number} */ index) =>
    1 / Math.sqrt(Math.max(rated.length - (index < rated.length ? 1 : 0), 1));
  return {
    norm,
    row: (index) =>
      total.map((sum, f) => norm(index) * (sum - (index < rated.length ? implicit[rated[index] * factors + f] : 0))),
  };
}

/** The vector after a step by the mean gradient over these ratings (Eq. 7).
 * @type {(recipe: RatingRecipe, U: Float64Array, V: Float32Array, items: Int32Array, others: Others, values: Float64Array, rate: number) => Float64Array} */
function stepped({ factors, regulariser }, U, V, items, others, values, rate) {
  const total = new Float64Array(factors);
  items.forEach((item, index) => {
    const beside = others.row(index);
    let error = -values[index];
    for (let f = 0; f < factors; f++) error += (U[f] + beside[f]) * V[item * factors + f];
    for (let f = 0; f < factors; f++) total[f] += error * V[item * factors + f];
  });
  return U.map((value, f) => value - rate * (total[f] / items.length + regulariser * value));
}

/** Every item's gradient, by item number; and the rated items' of W.
 * @type {(recipe: RatingRecipe, U: Float64Array, broadcast: RatingBroadcast, rated: Int32Array, items: Int32Array, others: Others, values: Float64Array) => RatingUpdate} */
function gradients({ factors, regulariser, hasImplicit }, U, { vectors: V, implicit }, rated, items, others, values) {
  const rows = new Float32Array(items.length * factors);
  const pulls = new Float64Array(hasImplicit ? items.length * factors : 0);
  const total = new Float64Array(factors);
  items.forEach((item, index) => {
    const beside = others.row(index);
    let error = -values[index];
    for (let f = 0; f < factors; f++) error += (U[f] + beside[f]) * V[item * factors + f];
    for (let f = 0; f < factors; f++) {
      rows[index * factors + f] = error * (U[f] + beside[f]) + regulariser * V[item * factors + f];
      if (!hasImplicit) continue;
      pulls[index * factors + f] = error * others.norm(index) * V[item * factors + f];
      total[f] += pulls[index * factors + f];
    }
  });
  const order = Array.from(items.keys()).sort((one, other) => items[one] - items[other]);
  const vectors = new Float32Array(rows.length);
  order.forEach((index, place) => vectors.set(rows.subarray(index * factors, (index + 1) * factors), place * factors));
  const implicitItems = hasImplicit ? rated : new Int32Array(0);
  const implicitVectors = new Float32Array(implicitItems.length * factors);
  for (let index = 0; index < implicitVectors.length; index++) {
    const f = index % factors;
    const W = implicit[rated[(index - f) / factors] * factors + f];
    implicitVectors[index] = (total[f] - pulls[index]) / items.length + regulariser * W;
  }
  return { items: Int32Array.from(order, (index) => items[index]), vectors, implicitItems, implicitVectors };
}
