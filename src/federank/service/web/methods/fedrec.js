/* FedRec: federated rating prediction by PMF in batch style (2020, Algorithms 2 and 3); src/federank/methods/fedrec/ in JavaScript.

1. Sample items that the user has not rated, and give them virtual ratings.
2. Move the user's vector by the mean gradient over all these ratings.
3. Gather the gradient of every item's V.

Under secure aggregation there are no virtual ratings: a message has a row for every item. Predictions come from the vector that explains
all ratings of the user best (fold-in). Sums are in double precision, results in 32 bits: Python's to 1e-5 relative and 1e-6 absolute.
SVD++ has no client here: its uploads have a second list, which names the rated items.
*/

import { BadAnswer, needed } from "../client/http.js";
import { MESSAGES } from "../schemas.js";
import { USER_FACTORS, WORDS, absentItem, below, words } from "../federation/rng.js";
import { BadMessage, checkRecord, decodeRows, encodeRecord } from "../federation/wire.js";
import { addProducts, mirror, solve } from "./linear.js";
import { recordMessage, recordRatings, sampledEver } from "../privacy/ledger.js";
import { NOTHING_HIDDEN } from "../privacy/policy.js";
import { scores } from "./ranking.js";

/** Gradients that leave: of rated and sampled items in one ascending list.
 * @typedef {{ items: Int32Array, vectors: Float32Array }} RatingUpdate */

/** Rows of the shared model; `weights` says which items any upload has had.
 * @typedef {{ roundNumber: number, version: number, iteration: number, items: Int32Array, vectors: Float32Array,
 *   weights: Float32Array }} RatingRows */

/** @type {(buffer: ArrayBuffer, sizes: { items: number, factors: number }) => RatingRows} */
export function decodeRatingRows(buffer, sizes) {
  const { reported, iteration, ...rows } = decodeRows(MESSAGES["pmf-broadcast"], buffer, sizes);
  return { ...rows, weights: Float32Array.from(reported), iteration: iteration[0] };
}

// Virtual ratings: of items that the user has not rated, so that an upload does not say which are which.

const VIRTUAL = 11; // which items that are not rated get a virtual rating

/** Distinct items that are missing from an ascending profile; every set of that many is equally likely.
 * @type {(seed: number, user: number, round: number, profile: Int32Array, nItems: number, count: number) => number[]} */
function sampleUnrated(seed, user, round, profile, nItems, count) {
  const size = profile.length;
  /** @type {number[]} */
  const sampled = [];
  const wordOf = (/** @type {number} */ counter) => words(seed, user, VIRTUAL, round, counter)[0];
  if (2 * (size + count) <= nItems) {
    // Most items are free: draw again what is rated or sampled already.
    const taken = new Set(profile);
    for (let tried = 0; sampled.length < count; tried++) {
      const item = below(wordOf(tried), nItems);
      if (taken.has(item)) continue;
      taken.add(item);
      sampled.push(item);
    }
    return sampled;
  }
  // Few are: draw ranks among the missing items, each at the first try (Floyd's method).
  const ranks = new Set();
  for (let k = 0; k < count; k++) {
    const last = nItems - size - count + k;
    const drawn = below(wordOf(k), last + 1);
    const rank = ranks.has(drawn) ? last : drawn;
    ranks.add(rank);
    sampled.push(absentItem(profile, rank));
  }
  return sampled;
}

/** The items that get a virtual rating in a round, in the order of their draws. A sample for a lifetime outlives changes of the history:
what was `sampled` before and is not rated stays, ahead of new ones.
 * @param {{ seed: number, user: number, isFixed: boolean }} whose
 * @param {number} round
 * @param {Int32Array} profile
 * @param {number} count
 * @param {number} nItems
 * @param {Int32Array} sampled ascending
 * @returns {number[]} */
export function virtualItems({ seed, user, isFixed }, round, profile, count, nItems, sampled) {
  const named = isFixed ? 0 : round;
  const drawn = sampleUnrated(seed, user, named, profile, nItems, count);
  if (!isFixed || !sampled.length) return drawn;
  const [rated, news] = [new Set(profile), new Set(drawn)];
  const stays = Array.from(sampled).filter((item) => !rated.has(item));
  const staying = new Set(stays);
  if (stays.every((item) => news.has(item)) || drawn.every((item) => staying.has(item))) return drawn;
  if (stays.length >= count) return stays.slice(0, count);
  const known = Int32Array.from([...profile, ...stays]).sort();
  return [...stays, ...sampleUnrated(seed, user, named, known, nItems, count - stays.length)];
}

// Computation, in batch style (2020, Algorithms 2 and 3).

/** What a federation has published, with how the owner hides ratings, for this many of them.
 * @typedef {{ factors: number, learningRate: number, decay: number, regulariser: number, initialRange: number,
 *   predictFrom: number, localPasses: number, isLocalOwn: boolean, isAfter: boolean, isHybrid: boolean, isFixed: boolean,
 *   virtual: number }} RatingRecipe */

/** Whose client it is: `vector` moves.
 * @typedef {{ seed: number, user: number, vector: Float32Array, items: Int32Array, ratings: Float32Array, sampled: Int32Array }} Rater */

/** The shared model as a round begins.
 * @typedef {{ roundNumber: number, iteration: number, vectors: Float32Array }} RatingBroadcast */

/** @type {(published: any, hidden: { filling: string, rho: number, sampling: string }, rated: number, nItems: number) => RatingRecipe} */
export function ratingRecipe(published, { filling, rho, sampling }, rated, nItems) {
  const isLate = published.filling_start === "late";
  return {
    factors: published.factors,
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

/** First values of one row: uniform numbers of mean zero in a range of this width.
 * @type {(columns: number, seed: number, row: number, span: number) => Float32Array} */
export function uniformRow(columns, seed, row, span) {
  const values = new Float32Array(columns);
  for (let first = 0; first < columns; first += 4)
    words(seed, row, USER_FACTORS, 0, first / 4).forEach((word, index) => {
      if (first + index < columns) values[first + index] = span * (word / WORDS - 0.5);
    });
  return values;
}

/** One client's part of a round: its vector moves; which items were sampled, and the update.
 * @type {(recipe: RatingRecipe, rater: Rater, broadcast: RatingBroadcast) => RatingUpdate & { sampled: number[] }} */
export function computeRatings(recipe, rater, { vectors: V, roundNumber, iteration }) {
  const { factors, virtual, isFixed } = recipe;
  const nItems = V.length / factors;
  const rate = Math.fround(recipe.learningRate * recipe.decay ** iteration);
  const sampled = virtual
    ? virtualItems({ ...rater, isFixed }, roundNumber, rater.items, virtual, nItems, rater.sampled)
    : [];
  const items = Int32Array.from([...rater.items, ...sampled]);
  const mean = Math.fround(rater.ratings.reduce((sum, rating) => sum + rating, 0) / rater.ratings.length);
  const values = new Float64Array(items.length).fill(mean);
  values.set(rater.ratings);
  if (virtual && recipe.isHybrid && (iteration >= recipe.predictFrom || recipe.isLocalOwn)) {
    /** @type {Float64Array} */
    let local = Float64Array.from(rater.vector);
    for (let pass = 0; pass < recipe.localPasses; pass++) local = stepped(recipe, local, V, rater.items, values, rate);
    if (recipe.isLocalOwn) rater.vector = Float32Array.from(local);
    if (iteration >= recipe.predictFrom)
      sampled.forEach((item, index) => {
        values[rater.items.length + index] = product(local, V, item);
      });
  }
  const before = Float64Array.from(rater.vector);
  const moved = stepped(recipe, before, V, items, values, rate);
  const update = gradients(recipe, recipe.isAfter ? moved : before, V, items, values);
  rater.vector = Float32Array.from(moved);
  return { ...update, sampled };
}

/** @type {(U: Float64Array, V: Float32Array, item: number) => number} */
function product(U, V, item) {
  let sum = 0;
  for (let f = 0; f < U.length; f++) sum += U[f] * V[item * U.length + f];
  return sum;
}

/** The vector after a step by the mean gradient over these ratings (Eq. 7).
 * @type {(recipe: RatingRecipe, U: Float64Array, V: Float32Array, items: Int32Array, values: Float64Array, rate: number) => Float64Array} */
function stepped({ factors, regulariser }, U, V, items, values, rate) {
  const total = new Float64Array(factors);
  items.forEach((item, index) => {
    const error = product(U, V, item) - values[index];
    for (let f = 0; f < factors; f++) total[f] += error * V[item * factors + f];
  });
  return U.map((value, f) => value - rate * (total[f] / items.length + regulariser * value));
}

/** @type {(recipe: RatingRecipe, U: Float64Array, V: Float32Array, items: Int32Array, values: Float64Array) => RatingUpdate} */
function gradients({ factors, regulariser }, U, V, items, values) {
  const vectors = new Float32Array(items.length * factors);
  const order = Array.from(items.keys()).sort((one, other) => items[one] - items[other]);
  order.forEach((index, place) => {
    const item = items[index];
    const error = product(U, V, item) - values[index];
    for (let f = 0; f < factors; f++) vectors[place * factors + f] = error * U[f] + regulariser * V[item * factors + f];
  });
  return { items: Int32Array.from(order, (index) => items[index]), vectors };
}

// Fold-in: a user's vector in closed form, from few ratings or from many.

const FOLD_IN_REGULARIZATION = 0.5;

/** @type {(vectors: Float32Array, items: Int32Array, ratings: Float32Array, factors: number) => Float32Array} */
export function foldedIn(vectors, items, ratings, factors) {
  const gram = new Float64Array(factors * factors);
  const aim = new Float64Array(factors);
  items.forEach((item, index) => {
    const row = Float64Array.from(vectors.subarray(item * factors, (item + 1) * factors));
    addProducts(gram, row, 1);
    for (let f = 0; f < factors; f++) aim[f] += row[f] * ratings[index];
  });
  mirror(gram, factors);
  for (let f = 0; f < factors; f++) gram[f * factors + f] += FOLD_IN_REGULARIZATION;
  const vector = Float32Array.from(solve(gram, aim));
  if (!vector.every(Number.isFinite)) throw new BadMessage(["detail.unsolvable"]);
  return vector;
}

// Under secure aggregation a message has a row for every item: the gradient of V, and 1 where the user has rated the item; zeros elsewhere.

/** @type {(factors: number) => number} */
export const columnsOfGradients = (factors) => factors + 1;

/** An update without virtual ratings as a message that names every item.
 * @type {(update: RatingUpdate, factors: number, nItems: number) => Float32Array} */
export function denseGradients({ items, vectors }, factors, nItems) {
  const columns = columnsOfGradients(factors);
  const rows = new Float32Array(nItems * columns);
  items.forEach((item, place) => {
    rows.set(vectors.subarray(place * factors, (place + 1) * factors), item * columns);
    rows[(item + 1) * columns - 1] = 1;
  });
  return rows;
}

// The method as the client sees it: the items that may leave, and sampled ones among them.

/** @type {(published: any, isSecure: boolean) => Method} */
export function fedrec(published, isSecure) {
  const { factors, lowest, highest, step, uploads_per_client: uploads } = published;
  needed(lowest < highest, "recipe (lowest)");
  needed((published.uploads === "secure") === isSecure, "recipe (uploads)");
  needed(!isSecure || uploads, "recipe (uploads_per_client)");
  return {
    factors,
    messages: uploads || null,
    sharing: ["fixed-subset"],
    scale: { lowest, highest, step },
    decode: (buffer, items) => decodeRatingRows(buffer, { items, factors }),
    popularity: (model) => (model.popular ??= lengths(model.vectors, factors)),
    scores,
    foldIn: (_, history, model, stars) => foldedIn(model.vectors, history, stars, factors),
    async clientUpdate(client, task, { seed, user }, sharedProfile) {
      const { model, entries, policy } = client;
      const { profile } = sharedProfile;
      const stars = client.starsOf(profile);
      const { filling, rho, sampling } = isSecure ? NOTHING_HIDDEN : policy;
      if (!filling || rho === null || rho === undefined || !sampling) throw new BadAnswer(["detail.no-filling"]);
      const recipe = ratingRecipe(published, { filling, rho, sampling }, profile.length, client.shape.items);
      // What explains the ratings that may leave; where a first model predicts zero, the first values of a simulation.
      const isDrawn = published.first_prediction === "zero" && model.iteration === 0;
      const first = () =>
        isDrawn
          ? uniformRow(factors, seed, user, recipe.initialRange)
          : foldedIn(model.vectors, profile, stars, factors);
      const vector = Float32Array.from(client.roundVector(profile) ?? first());
      const rater = { seed, user, vector, items: profile, ratings: stars, sampled: sampledEver(entries) };
      const update = computeRatings(recipe, rater, { ...model, roundNumber: task.round });
      const rows = isSecure ? client.shape.items : update.items.length;
      if (rows > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-rows", { most: task.most_rows, rows }]);
      checkRecord(MESSAGES["pmf-update"], update, client.shape.items);
      if (!rater.vector.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const recorded = isSecure
        ? recordMessage(entries, task.round, sharedProfile)
        : recordRatings(entries, task.round, profile, update.sampled);
      return {
        body: encodeRecord(MESSAGES["pmf-update"], update, { rows: update.items.length, factors }),
        values: () => denseGradients(update, factors, client.shape.items),
        compared: update.sampled.length,
        liked: Array.from(profile),
        vector: rater.vector,
        changed: [...recorded.values()],
      };
    },
  };
}

/** @type {(vectors: Float32Array, factors: number) => Float32Array} */
function lengths(vectors, factors) {
  const squares = new Float32Array(vectors.length / factors);
  for (let index = 0; index < vectors.length; index++)
    squares[Math.floor(index / factors)] += vectors[index] * vectors[index];
  return squares;
}
