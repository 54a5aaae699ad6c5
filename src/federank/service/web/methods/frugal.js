/* Frugal: implicit least squares with a handful of messages per client; src/federank/methods/frugal/ in JavaScript, for the client.

    FrugalBroadcast   server -> client: the item vectors, or the rows that changed, as bytes with a scale per row or as floats
    FrugalUpdate      client -> server: one residual per item, and the client's vector

A message means a matrix with a row per item (`dense`) of rank one: its two factors hold the same in a sixtieth of the bytes. Under secure
aggregation the dense matrix is summed. What is sent follows from the shared profile alone, recommendations from the full history.

With a minimum support, items that weigh nothing are in no message and are not recommended. The first message carries counts: 1 for each
item of the profile.
*/

import { BadAnswer, needed, positive, isIntegerIn } from "../client/http.js";
import { C_INT, LEVELS, MOST_FACTORS, MOST_MESSAGES, MOST_SUPPORT } from "../schemas.js";
import { holds } from "../federation/rng.js";
import { BadMessage, checkFinite, checkItems, decodeParts, encodeParts, numberOf, shaped } from "../federation/wire.js";
import { addProducts, mirror, solve } from "./linear.js";
import { recordMessage } from "../privacy/ledger.js";
import { among } from "../privacy/policy.js";
import { scores } from "./ranking.js";

/** Rows of the item vectors as of a round and a version, the items' weights, and lambda.
 * @typedef {{ roundNumber: number, version: number, regulariser: number, items: Int32Array, weights: Float32Array,
 *   vectors: Float32Array, itemWeights?: ItemWeights }} FrugalBroadcast */

/** One number for each item, the user's own vector, and how much the user counts, at most 1.
 * @typedef {{ strengths: Float32Array, vector: Float32Array, scale: number }} FrugalUpdate */

/** What a message means: two matrices, row by row. The last column stands for a vector's constant 1.
 * @typedef {{ pulls: Float32Array, squares: Float32Array }} Dense */

/** @type {(codes: Int8Array, scales: Float32Array) => Float32Array} */
export function restored(codes, scales) {
  const factors = scales.length ? codes.length / scales.length : 0;
  const vectors = new Float32Array(codes.length);
  for (let row = 0, index = 0; row < scales.length; row++)
    for (let f = 0; f < factors; f++, index++) vectors[index] = codes[index] * scales[row];
  return vectors;
}

/** The message written out: a row for every item, w_i a [x, 1]; and the square of the vector, a [x, 1] [x, 1]'.
 * @type {(update: FrugalUpdate) => Dense} */
export function dense({ strengths, vector, scale }) {
  const matrix = Float32Array.of(...vector, 1);
  const scaled = matrix.map((value) => scale * value);
  return { pulls: outer(strengths, scaled), squares: outer(matrix, scaled) };
}

/** All numbers of a message in one row, as sums add them up: rows of items, then the square of the vector.
 * @type {(message: Dense) => Float32Array} */
export function flat({ pulls, squares }) {
  const values = new Float32Array(pulls.length + squares.length);
  values.set(pulls);
  values.set(squares, pulls.length);
  return values;
}

/** @type {(left: Float32Array, right: Float32Array) => Float32Array} */
function outer(left, right) {
  const matrix = new Float32Array(left.length * right.length);
  for (let row = 0, index = 0; row < left.length; row++)
    for (let column = 0; column < right.length; column++, index++) matrix[index] = left[row] * right[column];
  return matrix;
}

// The messages of squares as bytes (methods/frugal/method.py), through the one wire format (wire.js).

/** @type {Record<string, Kind>} */
const NEEDED = { regulariser: "F64" };
/** @type {Record<string, Kind>} */
const RIDGE = { ridge_starts: "I32", ridge_items: "I32", ridge_codes: "I8", ridge_scales: "F32" };
/** @type {Record<string, Kind>} */
const OPTIONAL = { items: "I32", weights: "F32", codes: "I8", scales: "F32", vectors: "F32", complete: "I8", ...RIDGE };

/** @type {(update: FrugalUpdate) => Uint8Array<ArrayBuffer>} */
export function encodeFrugalUpdate({ strengths, vector, scale }) {
  return encodeParts({
    strengths: { values: strengths, shape: [strengths.length] },
    vector: { values: vector, shape: [vector.length] },
    scale: { values: Float32Array.of(scale), shape: [1] },
  });
}

/** A Broadcast from the wire, once it is sure to be one; its rows as they are to be used, in whatever form they came.
 * @type {(buffer: ArrayBuffer, factors: number, nItems: number) => FrugalBroadcast} */
export function decodeFrugalBroadcast(buffer, factors, nItems) {
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
  const broadcast = {
    roundNumber: numberOf(parts, "round"),
    version: numberOf(parts, "version"),
    regulariser,
    items,
    weights,
    vectors,
    ...(arrays.ridge_starts ? { itemWeights: itemWeightsOf(parts, "ridge_", nItems) } : {}),
  };
  return arrays.complete ? completed(broadcast, factors, nItems) : broadcast;
}

/** The rows of all items: those that are not named are zeros, and weigh nothing.
 * @type {(broadcast: FrugalBroadcast, factors: number, nItems: number) => FrugalBroadcast} */
function completed(broadcast, factors, nItems) {
  const items = Int32Array.from({ length: nItems }, (_, item) => item);
  const weights = new Float32Array(nItems);
  const vectors = new Float32Array(nItems * factors);
  broadcast.items.forEach((item, row) => {
    weights[item] = broadcast.weights[row];
    vectors.set(broadcast.vectors.subarray(row * factors, (row + 1) * factors), item * factors);
  });
  return { ...broadcast, items, weights, vectors };
}

// Minimum support: which items messages cover.

/** The items that messages cover, ascending: those that weigh something, where items need support.
 * @type {(minSupport: number, weights: Float32Array) => Int32Array} */
export function supportedItems(minSupport, weights) {
  const all = Int32Array.from(weights.keys());
  return minSupport > 1 ? all.filter((item) => weights[item] > 0) : all;
}

/** The places of an ascending profile's items among these items; what is not among them is left out.
 * @type {(items: Int32Array, profile: Int32Array) => Int32Array} */
export function coveredBy(items, profile) {
  const places = new Map(Array.from(items, (item, place) => [item, place]));
  return Int32Array.from(Array.from(profile).flatMap((item) => places.get(item) ?? []));
}

/** @type {(model: SquaresModel, items: Int32Array) => SquaresModel} */
export function rowsOfItems({ vectors, weights, regulariser }, items) {
  if (items.length === weights.length) return { vectors, weights, regulariser };
  const factors = vectors.length / weights.length;
  const rows = new Float32Array(items.length * factors);
  items.forEach((item, row) => rows.set(vectors.subarray(item * factors, (item + 1) * factors), row * factors));
  return { vectors: rows, weights: Float32Array.from(items, (item) => weights[item]), regulariser };
}

/** What one user of an item adds to a secure sum of counts: even a history of all items is of an allowed norm.
 * @type {(items: number) => number} */
export const countUnit = (items) => Math.floor(C_INT / Math.sqrt(items));

/** @type {(parts: Parts, rows: number, factors: number) => Float32Array} */
function rowsOf(parts, rows, factors) {
  const { codes, scales, vectors } = parts.arrays;
  if (Boolean(codes) !== Boolean(scales) || Boolean(codes) === Boolean(vectors)) throw new BadMessage(["wire.rows"]);
  if (vectors) {
    /** @type {Float32Array} */
    const values = shaped(parts, "vectors", [rows, factors]);
    checkFinite(values);
    return values;
  }
  /** @type {Int8Array} */
  const levels = shaped(parts, "codes", [rows, factors]);
  /** @type {Float32Array} */
  const steps = shaped(parts, "scales", [rows]);
  checkFinite(steps);
  if (levels.some((level) => level < -LEVELS)) throw new BadMessage(["wire.codes", { levels: LEVELS }]);
  if (steps.some((step) => step < 0)) throw new BadMessage(["wire.scales"]);
  const values = restored(levels, steps);
  checkFinite(values);
  return values;
}

// Computation where squares are learnt: a device's own vector in closed form, and one number an item.

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

/** The vector that explains this ascending profile best: in a message the shared profile, locally the full history.
 * @type {(objective: Objective, model: SquaresModel, gram: Float64Array, profile: Int32Array) => Float32Array} */
export function solveUser({ liked, unobserved }, { vectors, weights, regulariser }, gram, profile) {
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
export function residuals({ liked, unobserved }, vectors, vector, profile) {
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

// Transmission where squares are learnt: what a device lets the server see (methods/frugal/method.py).

/** How people are weighed, and the largest norm of a message (0: none).
 * @typedef {{ activity: number, clip: number }} Weighing */

/** The L2 norm of all numbers of the message, written out: of w [x, 1]' and of [x, 1] [x, 1]' together.
 * @type {(strengths: Float32Array, vector: Float32Array) => number} */
function messageNorm(strengths, vector) {
  const length = 1 + squared(vector);
  return Math.sqrt(length * (squared(strengths) + length));
}

/** @type {(values: Float32Array) => number} */
function squared(values) {
  let sum = 0;
  for (let index = 0; index < values.length; index++) sum += values[index] * values[index];
  return sum;
}

/** @type {(weighing: Weighing, size: number, strengths: Float32Array, vector: Float32Array) => FrugalUpdate} */
export function send({ activity, clip }, size, strengths, vector) {
  const weight = size ? size ** -activity : 0; // none of the items is supported: zeros
  const scale = clip > 0 ? Math.min(weight, clip / messageNorm(strengths, vector)) : weight;
  return { strengths, vector, scale: Math.fround(scale) };
}

// The client: its own vector is solved for locally, and at most n messages leave in its lifetime.

/** These values of items with a vector; -Infinity of others, so that they are not recommended: items without support,
 * and those that the server hides because their predicted audience has jumped.
 * @type {(values: Float32Array, model: Model) => Float32Array} */
function ofShown(values, { vectors, version }) {
  if (version === null) return values; // no model has arrived
  const factors = vectors.length / values.length;
  return values.map((value, item) =>
    vectors.subarray(item * factors, (item + 1) * factors).some((number) => number !== 0) ? value : -Infinity,
  );
}

/** Published weights between items: of a target, scale x codes[k] for items[k] (methods/frugal/item_weights.py).
 * @typedef {{ starts: Int32Array, items: Int32Array, codes: Int8Array, scales: Float32Array }} ItemWeights */

/** Item-item weights from the wire, once they are sure to be some.
 * @type {(buffer: ArrayBuffer, nItems: number) => ItemWeights} */
export function decodeItemWeights(buffer, nItems) {
  const parts = decodeParts(buffer, { starts: "I32", scales: "F32" }, { items: "I32", codes: "I8" });
  return itemWeightsOf(parts, "", nItems);
}

/** The item-item weights among the parts of a message; those of fewer items than the catalogue has are extended.
 * @type {(parts: Parts, prefix: string, nItems: number) => ItemWeights} */
function itemWeightsOf(parts, prefix, nItems) {
  const count = parts.arrays[`${prefix}items`]?.values.length ?? 0;
  const known = prefix ? Math.min(parts.arrays[`${prefix}scales`]?.values.length ?? 0, nItems) : nItems;
  const starts = new Int32Array(nItems + 1);
  const scales = new Float32Array(nItems);
  starts.set(shaped(parts, `${prefix}starts`, [known + 1]));
  starts.fill(starts[known], known);
  scales.set(shaped(parts, `${prefix}scales`, [known]));
  /** @type {Int32Array} */
  const items = count ? shaped(parts, `${prefix}items`, [count]) : new Int32Array(0);
  /** @type {Int8Array} */
  const codes = count || parts.arrays[`${prefix}codes`] ? shaped(parts, `${prefix}codes`, [count]) : new Int8Array(0);
  checkFinite(scales);
  if (codes.some((level) => level < -LEVELS)) throw new BadMessage(["wire.codes", { levels: LEVELS }]);
  if (scales.some((scale) => scale < 0)) throw new BadMessage(["wire.scales"]);
  const ascends = starts.every((start, target) => start >= (target ? starts[target - 1] : 0));
  if (starts[0] || starts[nItems] !== count || !ascends) throw new BadMessage(["wire.bounds", { name: "starts" }]);
  for (let target = 0; target < nItems; target++)
    checkItems(items.subarray(starts[target], starts[target + 1]), nItems);
  return { starts, items, codes, scales };
}

/** Low-rank scores + p W, for a history p with a number for each item; without weights or a history the scores as they are.
 * @type {(values: Float32Array, itemWeights: ItemWeights | undefined, history: Float32Array) => Float32Array} */
function withItemWeights(values, itemWeights, history) {
  if (!itemWeights || !history.length) return values;
  const { starts, items, codes, scales } = itemWeights;
  return values.map((value, target) => {
    let sum = 0;
    for (let k = starts[target]; k < starts[target + 1]; k++) sum += codes[k] * history[items[k]];
    return value + Math.fround(sum * scales[target]);
  });
}

/** @type {(published: any) => Method} */
export function frugal(published) {
  const { factors, messages, alpha, unobserved_weight: unobserved, activity } = published;
  const clip = published.clip ?? 0;
  const minSupport = published.min_support ?? 1;
  needed(isIntegerIn(factors, 1, MOST_FACTORS) && isIntegerIn(messages, 1, MOST_MESSAGES), "recipe");
  needed(isIntegerIn(minSupport, 1, MOST_SUPPORT), "recipe (min_support)");
  const numbers = { alpha, unobserved_weight: unobserved, activity, clip };
  for (const [name, value] of Object.entries(numbers)) needed(positive(value), `recipe (${name})`);
  const objective = { liked: Math.fround(1 + alpha), unobserved: Math.fround(unobserved) };
  /** @type {(model: Model, profile: Int32Array) => Float32Array} */
  const solved = (model, profile) => solveUser(objective, model, (model.gram ??= gramMatrix(model)), profile);
  /** @type {(model: Model, items: Int32Array, profile: Int32Array) => FrugalUpdate} */
  const updateOf = (model, items, profile) => {
    const vector = solved(model, profile);
    const strengths = residuals(objective, rowsOfItems(model, items).vectors, vector, coveredBy(items, profile));
    if (!strengths.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
    return send({ activity, clip }, profile.length, strengths, vector);
  };
  return {
    factors,
    messages,
    sharing: ["fixed-subset", "randomized-response"],
    decode(buffer, items) {
      const rows = decodeFrugalBroadcast(buffer, factors, items);
      if (rows.itemWeights && published.item_weights !== "ridge") throw new BadMessage(["wire.rows"]);
      return rows;
    },
    popularity: (model) => (model.popular ??= ofShown(nearness(model), model)),
    scores(vector, model) {
      const values = scores(vector.subarray(0, factors), model);
      return ofShown(withItemWeights(values, model.itemWeights, vector.subarray(factors)), model);
    },
    hasLearnt: ({ weights }) => minSupport === 1 || weights.some((weight) => weight !== 0 && weight !== 1),
    foldIn(_, history, model) {
      const vector = solved(model, history);
      if (!model.itemWeights) return vector;
      const extended = new Float32Array(factors + model.weights.length); // ends with the history, which the weights apply to
      extended.set(vector);
      for (const item of history) extended[factors + item] = 1;
      return extended;
    },
    async clientUpdate({ model, shape, entries, spent }, task, _, sharedProfile) {
      if (shape.items > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-numbers", { most: task.most_rows, items: shape.items }]);
      const items = supportedItems(minSupport, model.weights);
      const hasCounts = minSupport > 1 && (task.counts ?? (!spent || !items.length));
      const sent = hasCounts || minSupport === 1 ? sharedProfile : among(sharedProfile, (item) => holds(items, item));
      const update = hasCounts ? counted(sent.profile, shape.items) : updateOf(model, items, sent.profile);
      return {
        body: encodeFrugalUpdate(update),
        values: () => (hasCounts ? update.strengths : flat(dense(update))),
        compared: 0,
        liked: Array.from(sent.profile),
        vector: hasCounts ? solved(model, sent.profile) : update.vector,
        changed: [...recordMessage(entries, task.round, sent).values()],
      };
    },
  };
}

/** A message of counts: 1 for each item of the profile, and no vector.
 * @type {(profile: Int32Array, items: number) => FrugalUpdate} */
function counted(profile, items) {
  const strengths = new Float32Array(items);
  for (const item of profile) strengths[item] = 1;
  return { strengths, vector: new Float32Array(0), scale: 1 };
}

/** How near each item is to all others together: what many have is near much.
 * @type {(model: Model) => Float32Array} */
function nearness({ vectors, weights }) {
  const factors = vectors.length / weights.length;
  const sum = new Float64Array(factors);
  for (let index = 0; index < vectors.length; index++) sum[index % factors] += vectors[index];
  const near = new Float32Array(weights.length);
  for (let index = 0; index < vectors.length; index++)
    near[Math.floor(index / factors)] += vectors[index] * sum[index % factors];
  return near;
}
