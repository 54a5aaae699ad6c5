/* Transmission: what a device lets the server see (protocol/pairs/transmission.py).

A device has gradients for the items of its outward profile and for the items it compared them with. It sends all of the
second kind, and of the first what its owner allows: nothing of what must never leave; of the rest each pair's with a coin
of pi (all), or, where it was decided for life, all of it. A federation in the world tosses no coins per row.
*/

import { happens } from "../draws.js";

/** @import { Update } from "../messages.js" */
/** @import { Gradients } from "./computation.js" */

/** Who shares: what its owner allows.
 * @typedef {{ pi: number, allowed: boolean[], lifelong: boolean }} Sharer */

/** Whether the owner lets this positive item's gradient go; `allowed` is the decision for life on this item.
 * @type {(allowed: boolean, coin: number, pi: number) => boolean} */
export function maySend(allowed, coin, pi) {
  return allowed && happens(coin, pi);
}

/** The Update: gradients summed per item, without the positives that are held back.
 * @type {(recipe: { factors: number }, person: Sharer, gradients: Gradients) => Update} */
export function share({ factors }, person, gradients) {
  const { allowed } = person;
  const pi = person.lifelong ? 1 : person.pi;
  /** @type {[item: number, table: Float32Array, t: number, bias: number][]} */
  const rows = [];
  gradients.positives.forEach((item, t) => {
    if (maySend(allowed[gradients.places[t]], gradients.coins[t], pi))
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
