/* FedRec: federated rating prediction (PMF, SVD++) in batch style (2020, Algorithms 2 and 3); src/federank/methods/fedrec/ in JavaScript.

1. Sample items that the user has not rated, and give them virtual ratings.
2. Move the user's vector by the mean gradient over all these ratings.
3. Gather the gradient of every item's V, and for SVD++ of the rated items' W.

Under secure aggregation there are no virtual ratings: a message has a row for every item. Predictions come from the vector that explains
all ratings of the user best (fold-in). Sums are in double precision, results in 32 bits: Python's to 1e-5 relative and 1e-6 absolute.
*/

import { BadAnswer, needed, positive, whole } from "../client/http.js";
import { MOST_FACTORS, MOST_MESSAGES, MOST_PASSES } from "../client/rules.js";
import { USER_FACTORS, WORDS, absentItem, below, words } from "../federation/rng.js";
import { BadMessage, checkFinite, checkItems, decodeParts, encodeParts, numberOf, shaped } from "../federation/wire.js";
import { addProducts, mirror, solve } from "./linear.js";
import { recordMessage, recordRatings, sampledEver } from "../privacy/ledger.js";
import { NOTHING_HIDDEN } from "../privacy/policy.js";
import { scores } from "./ranking.js";

/** @import { Model } from "../client/client.js" */
/** @import { Kind } from "../federation/wire.js" */
/** @import { Method } from "./registry.js" */

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

// Virtual ratings: items that a person has not rated, rated all the same, so that an upload does not say which are which (protocol/ratings/virtual.py).

const VIRTUAL = 11; // which items that are not rated get a virtual rating

/** So many different items that are missing from an ascending profile; every set of that many is equally likely.
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

/** The items that get a virtual rating in a round, in the order of their draws. A sample for life outlives changes of the history:
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
  const kept = new Set(stays);
  if (stays.every((item) => news.has(item)) || drawn.every((item) => kept.has(item))) return drawn;
  if (stays.length >= count) return stays.slice(0, count);
  const known = Int32Array.from([...profile, ...stays]).sort();
  return [...stays, ...sampleUnrated(seed, user, named, known, nItems, count - stays.length)];
}

// Computation where ratings are learnt, in batch style (protocol/ratings/computation.py; FedRec, 2020, Algorithms 2 and 3).

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

// At home, where ratings are learnt: a person's vector in closed form, from a few stars or from many (protocol/ratings/home.py).

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

// Ratings as sums that no single server can open (protocol/ratings/sums.py): a message that names every item, row by row, with the gradient of V, that of W for SVD++, and a count: 1 where the person has rated the item, and zeros elsewhere.

/** Numbers a row of a message: gradients, and a count.
 * @type {(factors: number, hasImplicit: boolean) => number} */
export const columnsOfGradients = (factors, hasImplicit) => factors * (hasImplicit ? 2 : 1) + 1;

/** An Update without virtual ratings as a message that names every item.
 * @type {(update: RatingUpdate, factors: number, nItems: number, hasImplicit: boolean) => Float32Array} */
export function denseGradients({ items, vectors, implicitItems, implicitVectors }, factors, nItems, hasImplicit) {
  const columns = columnsOfGradients(factors, hasImplicit);
  const rows = new Float32Array(nItems * columns);
  items.forEach((item, place) => {
    rows.set(vectors.subarray(place * factors, (place + 1) * factors), item * columns);
    rows[(item + 1) * columns - 1] = 1;
  });
  implicitItems.forEach((item, place) =>
    rows.set(implicitVectors.subarray(place * factors, (place + 1) * factors), item * columns + factors),
  );
  return rows;
}

// Ratings on a device (pmf, svdpp): the items that may leave and sampled ones among them, with virtual ratings; predictions are made at home, from the vector that explains all stars best. Where no single server reads a message there are no virtual ratings: a message names every item, and a life has so many of them. The twins of this file are service/device/methods/ratings.py and, there too, methods/ratings_in_sums.py.

const RATES = ["learning_rate", "decay", "regulariser", "initial_range", "step"];

/** PMF, or SVD++ (`hasImplicit`), whose messages have rows of W that name what was rated wherever a server reads them.
 * @type {(published: any, hasImplicit: boolean, isSecure: boolean) => Method} */
export function fedrec(published, hasImplicit, isSecure) {
  const { factors, lowest, highest, step } = published;
  needed(whole(factors, 1, MOST_FACTORS), "recipe");
  for (const name of ["t_predict", "t_local"]) needed(whole(published[name], 0, MOST_PASSES), `recipe (${name})`);
  for (const name of RATES) needed(positive(published[name]), `recipe (${name})`);
  needed(["mean", "zero"].includes(published.first_prediction), "recipe (first_prediction)");
  needed(Number.isFinite(lowest) && Number.isFinite(highest) && lowest < highest, "recipe (lowest)");
  if (isSecure) needed(whole(published.messages, 1, MOST_MESSAGES) && positive(published.clip), "recipe (messages)");
  /** @type {(model: Model, items: Int32Array, stars: Float32Array) => Float32Array} */
  const taste = (model, items, stars) =>
    solvedTaste(model.vectors, items, stars, besideOf(model.implicit, items, factors));
  return {
    factors,
    messages: isSecure ? published.messages : null,
    sharing: ["fixed-subset"],
    scale: { lowest, highest, step },
    namesRated: hasImplicit && !isSecure,
    hasImplicit,
    decode: (buffer, items) => decodeRatingRows(buffer, factors, items, hasImplicit),
    popularity: (model) => (model.popular ??= lengths(model.vectors, factors)),
    scores,
    foldIn: (_, history, model, stars) => taste(model, history, stars),
    async clientUpdate(client, task, { seed, user }, outward) {
      const { model, entries, policy } = client;
      const { profile } = outward;
      const stars = client.starsOf(profile);
      const { filling, rho, sampling } = isSecure ? NOTHING_HIDDEN : policy;
      if (!filling || rho === null || rho === undefined || !sampling) throw new BadAnswer(["detail.no-filling"]);
      const recipe = ratingRecipe(
        published,
        { filling, rho, sampling },
        profile.length,
        client.shape.items,
        hasImplicit,
      );
      const solved = () => {
        const beside = besideOf(model.implicit, profile, factors);
        return taste(model, profile, stars).map((value, f) => value - beside[f]);
      };
      // What explains the stars that may leave; where a first model predicts zero, the first values of a simulation.
      const isDrawn = published.first_prediction === "zero" && model.iteration === 0;
      const first = () => (isDrawn ? uniformRow(factors, seed, user, recipe.initialRange) : solved());
      const vector = Float32Array.from(client.roundVector(profile) ?? first());
      const person = { seed, user, vector, items: profile, ratings: stars, sampled: sampledEver(entries) };
      const update = computeRatings(recipe, person, { ...model, roundNumber: task.round });
      const rows = isSecure ? client.shape.items : update.items.length;
      if (rows > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-rows", { most: task.most_rows, rows }]);
      checkFinite(update.vectors, update.implicitVectors);
      if (!person.vector.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const recorded = isSecure
        ? recordMessage(entries, task.round, outward)
        : recordRatings(entries, task.round, profile, update.sampled);
      return {
        body: encodeRatingUpdate(update, factors),
        values: () => denseGradients(update, factors, client.shape.items, hasImplicit),
        compared: update.sampled.length,
        liked: Array.from(profile),
        vector: person.vector,
        changed: [...recorded.values()],
      };
    },
  };
}

/** How long each item's vector is: much is said of what many have rated.
 * @type {(vectors: Float32Array, factors: number) => Float32Array} */
function lengths(vectors, factors) {
  const squares = new Float32Array(vectors.length / factors);
  for (let index = 0; index < vectors.length; index++)
    squares[Math.floor(index / factors)] += vectors[index] * vectors[index];
  return squares;
}
