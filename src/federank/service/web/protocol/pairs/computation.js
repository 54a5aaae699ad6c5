/* Computation: on the device, with the person's own history, which stays there (protocol/pairs/computation.py).

The device draws pairs of an item it has and one it has not, steps its own vector, and gathers for each pair the gradients
of the two items. Item factors stay as they were received for the whole round; the own vector moves with every pair
(as-in-code), or once at the end (as-printed).

Values are 32-bit floats, as in Python. Every stored number is rounded (Float32Array does it, Math.fround elsewhere); inside
one inner product JavaScript's doubles are kept, so a result may differ from Python's in the last place or two.
*/

import { NEGATIVE, TRIPLE, absentItem, below, holds, words } from "../draws.js";

/** @import { Broadcast } from "../messages.js" */

/** What `GET /federation` says of the method.
 * @typedef {{ factors: number, triples: number, most_triples?: number | null, order?: string, mask?: string, initial_scale: number, learning_rate: number,
 *   user_regulariser: number, positive_regulariser: number, negative_regulariser: number }} PublishedRecipe */

/** The same, worked out.
 * @typedef {{ factors: number, triples: number, mostTriples: number, summed: boolean, maskPerRow: boolean, initialScale: number, learningRate: number,
 *   userRegulariser: number, positiveRegulariser: number, negativeRegulariser: number }} Recipe */

/** Who learns: what names its draws, its own vector, and the items that positives are drawn from, ascending.
 * @typedef {{ seed: number, user: number, vector: Float32Array, profile: Int32Array, triples: number }} Learner */

/** What comes out of a round's pairs, one row each: before anybody decides what is sent.
 * @typedef {{ places: Int32Array, positives: Int32Array, negatives: Int32Array, coins: Uint32Array,
 *   slopes: Float32Array, positiveVectors: Float32Array, negativeVectors: Float32Array }} Gradients */

const FARTHEST = 80; // 1 / (1 + e^80) is zero for every purpose

/** 1 / (1 + e^x), for any x.
 * @type {(x: number) => number} */
export function slope(x) {
  return Math.fround(1 / (1 + Math.exp(Math.min(Math.max(x, -FARTHEST), FARTHEST))));
}

/** What `GET /federation` says of the method, worked out: the regularisers are multiples of the learning rate.
 * @type {(published: PublishedRecipe) => Recipe} */
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

/** How many pairs a round learns from: as many as the federation says, or as the device's owner does, up to `mostTriples`.
 * @typedef {Pick<Recipe, "triples" | "mostTriples">} Pairs */

/** The pairs of a device whose owner wishes for so many, or for nothing.
 * @type {(recipe: Pairs, wish?: number | null) => number} */
export function ownTriples(recipe, wish = null) {
  return wish === null ? recipe.triples : Math.min(wish, recipe.mostTriples);
}

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

/** One device's part of a round: its own vector moves (`person.vector` is replaced), and item gradients come out.
 * @type {(recipe: Recipe, person: Learner, broadcast: Pick<Broadcast, "vectors" | "biases" | "roundNumber">) => Gradients} */
export function compute(recipe, person, broadcast) {
  const { factors, learningRate, summed } = recipe;
  const { seed, user, profile, triples } = person;
  const { vectors, biases, roundNumber } = broadcast;
  const p = Float32Array.from(person.vector);
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
  person.vector = p;
  return gradients;
}
