/* FPL (FedeRank): Bayesian personalised ranking, federated; src/federank/methods/fpl/ in JavaScript, for the client.

    Broadcast   server -> client: the item factors, or the rows that changed
    Update      client -> server: gradients of the items it shares, and of those it compared them with

The client draws pairs of an item it has and one it has not, steps its own vector and sends what the policy allows of the items' gradients.
*/

import { BadAnswer } from "../client/http.js";
import { HOME_ROUND, HOME_STEPS, MESSAGES } from "../schemas.js";
import {
  MASK,
  NEGATIVE,
  TRIPLE,
  USER_FACTORS,
  absentItem,
  below,
  happens,
  holds,
  normalRow,
  words,
} from "../federation/rng.js";
import { BadMessage, checkRecord, decodeRows, encodeRecord } from "../federation/wire.js";
import { record } from "../privacy/ledger.js";
import { scores } from "./ranking.js";

/** Rows: which items, ascending; a row of factors (or of gradients) and a bias for each.
 * @typedef {{ items: Int32Array, vectors: Float32Array, biases: Float32Array }} Update */

/** Rows of the shared model, as of a round and a version.
 * @typedef {Update & { roundNumber: number, version: number }} Broadcast */

// Computation: on the device, with the user's own history, which stays there (methods/fpl/method.py).

/** What `GET /federation` says of the method, worked out: the regularisers are multiples of the learning rate.
 * @typedef {{ factors: number, triples: number, mostTriples: number, summed: boolean, maskPerRow: boolean, initialScale: number, learningRate: number,
 *   userRegulariser: number, positiveRegulariser: number, negativeRegulariser: number }} Recipe */

/** Who learns: what names its draws, its own vector, and the items that positives are drawn from, ascending.
 * @typedef {{ seed: number, user: number, vector: Float32Array, profile: Int32Array, triples: number }} Learner */

/** What comes out of a round's pairs, one row each: before the policy decides what is sent.
 * @typedef {{ places: Int32Array, positives: Int32Array, negatives: Int32Array, coins: Uint32Array,
 *   slopes: Float32Array, positiveVectors: Float32Array, negativeVectors: Float32Array }} Gradients */

const STEEPEST = 80; // 1 / (1 + e^80) is zero for every purpose

/** 1 / (1 + e^x), for any x.
 * @type {(x: number) => number} */
export function slope(x) {
  return Math.fround(1 / (1 + Math.exp(Math.min(Math.max(x, -STEEPEST), STEEPEST))));
}

/** @type {(published: any) => Recipe} */
export function recipeFor(published) {
  const rate = published.learning_rate;
  return {
    factors: published.factors,
    triples: published.triples,
    mostTriples: published.most_triples ?? published.triples,
    summed: published.order === "as-printed",
    maskPerRow: published.mask === "as-printed",
    initialScale: published.initial_scale,
    learningRate: Math.fround(rate),
    userRegulariser: Math.fround(rate * published.user_regulariser),
    positiveRegulariser: Math.fround(rate * published.positive_regulariser),
    negativeRegulariser: Math.fround(rate * published.negative_regulariser),
  };
}

/** How many pairs a round learns from: as many as the federation says, or as the client's owner does, up to `mostTriples`.
 * @type {(recipe: Pick<Recipe, "triples" | "mostTriples">, requested?: number | null) => number} */
export const ownTriples = ({ triples, mostTriples }, requested = null) =>
  requested === null ? triples : Math.min(requested, mostTriples);

/** One pair: the place of a positive in the profile (with replacement), a negative, and a word for the coin.
 * @type {(seed: number, user: number, roundNumber: number, counter: number, profile: ArrayLike<number>, nItems: number) => [number, number, number]} */
function drawPair(seed, user, roundNumber, counter, profile, nItems) {
  const [first, second, third, coin] = words(seed, user, TRIPLE, roundNumber, counter);
  const place = below(first, profile.length);
  let negative = below(second, nItems);
  if (holds(profile, negative)) {
    negative = below(third, nItems);
    if (holds(profile, negative)) {
      const [word] = words(seed, user, NEGATIVE, roundNumber, counter);
      negative = absentItem(profile, below(word, nItems - profile.length));
    }
  }
  return [place, negative, coin];
}

/** One device's part of a round: its own vector moves (`learner.vector` is replaced), and item gradients come out.
 * @type {(recipe: Recipe, learner: Learner, broadcast: Pick<Broadcast, "vectors" | "biases" | "roundNumber">) => Gradients} */
export function compute(recipe, learner, broadcast) {
  const { factors, learningRate, summed } = recipe;
  const { seed, user, profile, triples } = learner;
  const { vectors, biases, roundNumber } = broadcast;
  const p = Float32Array.from(learner.vector);
  const moves = new Float32Array(factors);
  const gradients = {
    places: new Int32Array(triples),
    positives: new Int32Array(triples),
    negatives: new Int32Array(triples),
    coins: new Uint32Array(triples),
    slopes: new Float32Array(triples),
    positiveVectors: new Float32Array(triples * factors),
    negativeVectors: new Float32Array(triples * factors),
  };
  for (let t = 0; t < triples; t++) {
    const [place, j, coin] = drawPair(seed, user, roundNumber, t, profile, biases.length);
    const i = profile[place];
    let x = biases[i] - biases[j];
    for (let f = 0; f < factors; f++) x += p[f] * (vectors[i * factors + f] - vectors[j * factors + f]);
    const g = slope(x);
    gradients.places[t] = place;
    gradients.positives[t] = i;
    gradients.negatives[t] = j;
    gradients.coins[t] = coin;
    gradients.slopes[t] = g;
    for (let f = 0; f < factors; f++) {
      const qi = vectors[i * factors + f];
      const qj = vectors[j * factors + f];
      const pf = p[f];
      gradients.positiveVectors[t * factors + f] = g * pf - recipe.positiveRegulariser * qi;
      gradients.negativeVectors[t * factors + f] = -g * pf - recipe.negativeRegulariser * qj;
      const move = learningRate * (g * (qi - qj) - recipe.userRegulariser * pf);
      if (summed) moves[f] += move;
      else p[f] = pf + move;
    }
  }
  if (summed) for (let f = 0; f < factors; f++) p[f] += moves[f];
  learner.vector = p;
  return gradients;
}

// Transmission: what a device lets the server see (methods/fpl/method.py).

/** Who shares: what names its draws, and what its owner allows.
 * @typedef {{ seed: number, user: number, pi: number, allowed: boolean[], lifelong: boolean }} Sharer */

/** The Update: gradients summed per item, without the positives that are held back.
 * @type {(recipe: { factors: number, maskPerRow: boolean }, learner: Sharer, roundNumber: number, gradients: Gradients) => Update} */
export function share({ factors, maskPerRow }, learner, roundNumber, gradients) {
  const { allowed, seed, user } = learner;
  const pi = learner.lifelong ? 1 : learner.pi;
  /** @type {[item: number, table: Float32Array, t: number, bias: number][]} */
  const rows = [];
  gradients.positives.forEach((item, t) => {
    const coin = maskPerRow ? words(seed, user, MASK, roundNumber, item)[0] : gradients.coins[t];
    if (allowed[gradients.places[t]] && happens(coin, pi))
      rows.push([item, gradients.positiveVectors, t, gradients.slopes[t]]);
  });
  gradients.negatives.forEach((item, t) => rows.push([item, gradients.negativeVectors, t, -gradients.slopes[t]]));

  const items = Int32Array.from(new Set(rows.map(([item]) => item))).sort();
  const placeOf = new Map(Array.from(items, (item, place) => [item, place]));
  const vectors = new Float32Array(items.length * factors);
  const biases = new Float32Array(items.length);
  for (const [item, table, t, bias] of rows) {
    const place = placeOf.get(item) ?? 0;
    for (let f = 0; f < factors; f++) vectors[place * factors + f] += table[t * factors + f];
    biases[place] += bias;
  }
  return { items, vectors, biases };
}

// The home vector: the user's taste, learnt locally and never used in a round; and the best items by it.

/** The public item factors, a row for each item of the catalogue.
 * @typedef {{ vectors: Float32Array, biases: Float32Array }} Model */

/** A vector learnt from an ascending history in this many steps; zero where no pair can be drawn.
 * @type {(recipe: Recipe, seed: number, user: number, history: Int32Array, model: Model, steps?: number) => Float32Array} */
export function homeVector(recipe, seed, user, history, model, steps = HOME_STEPS) {
  const learner = { seed, user, profile: history, vector: new Float32Array(recipe.factors), triples: steps };
  if (history.length > 0 && history.length < model.biases.length)
    compute({ ...recipe, summed: false }, learner, { ...model, roundNumber: HOME_ROUND });
  return learner.vector;
}

// Pairs on a device (fpl): every round some pairs are drawn, and the gradients of their items sent.

/** @type {(published: any) => Method} */
export function fpl(published) {
  const { factors } = published;
  const recipe = recipeFor(published);
  return {
    factors,
    messages: null,
    pairs: ({ triples }) => ownTriples(recipe, triples),
    sharing: ["fixed-subset", "randomized-response", "all"],
    decode: (buffer, items) => decodeRows(MESSAGES["fpl-broadcast"], buffer, { items, factors }),
    popularity: ({ biases }) => biases,
    scores,
    foldIn: ({ seed, user }, history, model) => homeVector(recipe, seed, user, history, model),
    async clientUpdate(client, task, { seed, user }, sharedProfile) {
      const first = () => normalRow(factors, seed, user, USER_FACTORS, recipe.initialScale);
      const vector = client.roundVector(sharedProfile.profile) ?? first();
      const learner = {
        seed,
        user,
        vector,
        pi: client.policy.pi,
        triples: ownTriples(recipe, client.policy.triples),
        ...sharedProfile,
      };
      const gradients = compute(recipe, learner, { ...client.model, roundNumber: task.round });
      const update = share(recipe, learner, task.round, gradients);
      const rows = update.items.length;
      if (rows > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-rows", { most: task.most_rows, rows }]);
      checkRecord(MESSAGES["fpl-update"], update, client.shape.items);
      if (!learner.vector.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const liked = Array.from(update.items.filter((_, index) => update.biases[index] > 0));
      return {
        body: encodeRecord(MESSAGES["fpl-update"], update, { rows, factors }),
        compared: rows - liked.length,
        liked,
        pairs: learner.triples,
        vector: learner.vector,
        changed: [...record(client.entries, task.round, sharedProfile, update).values()],
      };
    },
  };
}
