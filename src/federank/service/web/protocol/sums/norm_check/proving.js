/* The device's proof (norm_check/proving.py, norm_check/circuit.py): wires and a polynomial, split in two as the message is.

Wires are bits: sixteen for the value of each projection, one for its wrap, and those of what is left below T. The helper's share of
wires and proof follows from the seed; the leader's is the rest. From the same inputs it is the same proof as Python's.
*/

import { digest, inMemory } from "../canonical.js";
import { KeyStream } from "../masks.js";
import { MODULUS, add, evaluate, interpolate, multiply, subtract, zeros } from "./field.js";
import { RANGE_BITS } from "./parameters.js";
import { project } from "./projections.js";

/** @import { Bytes } from "../canonical.js" */
/** @import { Secrets, Split } from "../upload.js" */
/** @import { Elements } from "./field.js" */
/** @import { Parameters } from "./parameters.js" */

/** What the leader gets, and what is sealed for the helper.
 * @typedef {{ share: Elements, partWires: Bytes }} Proof */

const WORD = 2 ** 32;
const HALF_RANGE = 2 ** (RANGE_BITS - 1);
const [MODULUS_LOW, MODULUS_HIGH] = [Number(MODULUS % 2n ** 32n), Number(MODULUS >> 32n)];

/** A proof that the two shares of a message add up to a short one, or null where they do not seem to.
 * @type {(parameters: Parameters, split: Split, secrets: Secrets, proofSeed: Bytes) => Promise<Proof | null>} */
export async function prove(parameters, split, { seed, blind }, proofSeed) {
  const { context, partLeader, partHelper } = split;
  const { wires: wireCount, projections, points, columns, coefficients } = parameters;
  const key = await digest("projections", context, partLeader, partHelper);
  const [leader, helper] = await project(key, context, projections, [split.share, split.mask]);
  const written = wiresOf(parameters, leader, helper);
  if (!written) return null;
  const { wires, values } = written;
  const theirs = await randomElements(await KeyStream.from(seed, context, "check"), parameters.elements);
  const share = zeros(parameters.elements);
  for (let wire = 0; wire < wireCount; wire++) share[2 * wire] = wires[wire];
  for (let wire = 0; wire < wireCount; wire++) subtract(share, wire, share, wire, theirs, wire);
  const partWires = await digest("wires", context, blind, inMemory(share.subarray(0, 2 * wireCount)));
  const joint = await digest("joint", context, partLeader, partHelper, partWires);
  const drawn = await randomElements(await KeyStream.from(joint, context, "joint"), wireCount + projections + 1);

  // A row for each root of unity: random values at 1, a call of the gadget at the others; left inputs, then right ones.
  const rows = zeros(2 * points * 2 * columns);
  const first = await randomElements(await KeyStream.from(proofSeed, context, "proof"), 2 * columns);
  rows.set(first);
  /** @type {(gate: number) => number} */
  const placeOf = (gate) => (1 + Math.floor(gate / columns)) * 2 * columns + (gate % columns);
  const minusOne = zeros(1);
  subtract(minusOne, 0, minusOne, 0, Uint32Array.of(1, 0), 0);
  for (let wire = 0; wire < wireCount; wire++) {
    const at = placeOf(wire);
    if (wires[wire]) rows.set(drawn.subarray(2 * wire, 2 * wire + 2), 2 * at);
    else rows.set(minusOne, 2 * (at + columns));
  }
  const halfRange = Uint32Array.of(HALF_RANGE, 0);
  for (let number = 0; number < projections; number++) {
    const at = placeOf(wireCount + number);
    rows[2 * (at + columns)] = values[number] + HALF_RANGE;
    subtract(rows, at + columns, rows, at + columns, halfRange, 0);
    multiply(rows, at, drawn, wireCount + projections, rows, at + columns);
  }
  const polynomial = gadgetPolynomial(rows, points, columns);
  share.set(first, 2 * wireCount);
  share.set(polynomial.subarray(0, 2 * coefficients), 2 * (wireCount + 2 * columns));
  for (let at = wireCount; at < parameters.elements; at++) subtract(share, at, share, at, theirs, at);
  return { share, partWires };
}

/** The coefficients of the polynomial that the gadget makes of its inputs' polynomials.
 * @type {(rows: Elements, points: number, columns: number) => Elements} */
function gadgetPolynomial(rows, points, columns) {
  interpolate(rows.subarray(0, 2 * points * 2 * columns), points);
  evaluate(rows, 2 * points);
  const found = zeros(2 * points);
  const product = zeros(1);
  for (let row = 0; row < 2 * points; row++)
    for (let column = 0; column < columns; column++) {
      const at = row * 2 * columns + column;
      multiply(product, 0, rows, at, rows, at + columns);
      add(found, row, found, row, product, 0);
    }
  interpolate(found, 2 * points);
  return found;
}

/** The bits that a device proves things about, and the values of its projections, from both servers' projections.
 * @type {(parameters: Parameters, leader: Int32Array, helper: Int32Array) => { wires: Uint8Array, values: number[] } | null} */
function wiresOf({ projections, limit, slackBits, wires: count }, leader, helper) {
  const wires = new Uint8Array(count);
  const values = [];
  let left = limit;
  let at = 0;
  for (let number = 0; number < projections; number++) {
    const total = ((leader[number] + 2 ** 31) >>> 0) + (helper[number] >>> 0);
    const value = (total % WORD) - 2 ** 31;
    if (Math.abs(value) >= HALF_RANGE) return null;
    values.push(value);
    left -= value * value;
    for (let bit = 0; bit < RANGE_BITS; bit++) wires[at++] = ((value + HALF_RANGE) >> bit) & 1;
    wires[at++] = total >= WORD ? 1 : 0;
  }
  if (left < 0) return null;
  for (let bit = 0; bit < slackBits; bit++) wires[at++] = Math.floor(left / 2 ** bit) % 2;
  return { wires, values };
}

/** So many elements of the field: the words of a key stream, but those that are no element.
 * @type {(stream: { next: (length: number) => Promise<Bytes> }, count: number) => Promise<Elements>} */
export async function randomElements(stream, count) {
  const found = zeros(count);
  for (let at = 0; at < count;) {
    const words = new Uint32Array((await stream.next(8 * (count - at))).buffer);
    for (let word = 0; word < words.length; word += 2) {
      const [low, high] = [words[word], words[word + 1]];
      if (high < MODULUS_HIGH || (high === MODULUS_HIGH && low < MODULUS_LOW)) {
        found[2 * at] = low;
        found[2 * at++ + 1] = high;
      }
    }
  }
  return found;
}
