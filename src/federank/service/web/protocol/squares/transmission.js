/* Transmission where squares are learnt: what a device lets the server see (protocol/squares/transmission.py).

What is sent follows from the outward profile alone (policies/policy.js), so what the owner holds back is in no message. A message is
scaled down to its largest allowed norm, where there is one. How many may leave in a life is the device's to count.
*/

/** @import { SquaresUpdate } from "./messages.js" */

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

/** The Update of somebody who takes part with this many items, weighted and clipped.
 * @type {(weighing: Weighing, size: number, strengths: Float32Array, vector: Float32Array) => SquaresUpdate} */
export function send({ activity, clip }, size, strengths, vector) {
  const weight = size ** -activity;
  const scale = clip > 0 ? Math.min(weight, clip / messageNorm(strengths, vector)) : weight;
  return { strengths, vector, scale: Math.fround(scale) };
}
