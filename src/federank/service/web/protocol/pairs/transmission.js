/* Transmission: what a device lets the server see (protocol/pairs/transmission.py).

A device has gradients for the items of its outward profile and for the items it compared them with. It sends all of the
second kind, and of the first what its owner allows: nothing of what must never leave; of the rest each pair's with a coin
of pi (mask as-in-code), or each item's with one coin per round (as-printed), or, where it was decided for life, all of it.
*/

import { MASK, happens, words } from "../draws.js";

/** @import { Update } from "../messages.js" */
/** @import { Gradients } from "./computation.js" */

/** Who shares: what names its draws, and what its owner allows.
 * @typedef {{ seed: number, user: number, pi: number, allowed: boolean[], lifelong: boolean }} Sharer */

/** Whether the owner lets this positive item's gradient go; `allowed` is the decision for life on this item.
 * @type {(allowed: boolean, coin: number, pi: number) => boolean} */
export function maySend(allowed, coin, pi) {
  return allowed && happens(coin, pi);
}

/** The Update: gradients summed per item, without the positives that are held back.
 * @type {(recipe: { factors: number, maskPerRow: boolean }, person: Sharer, roundNumber: number, gradients: Gradients) => Update} */
export function share({ factors, maskPerRow }, person, roundNumber, gradients) {
  const { allowed, seed, user } = person;
  const pi = person.lifelong ? 1 : person.pi;
  /** @type {[item: number, table: Float32Array, t: number, bias: number][]} */
  const rows = [];
  gradients.positives.forEach((item, t) => {
    const coin = maskPerRow ? words(seed, user, MASK, roundNumber, item)[0] : gradients.coins[t];
    if (maySend(allowed[gradients.places[t]], coin, pi))
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
