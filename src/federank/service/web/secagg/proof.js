/* The field of p = 2^64 - 2^32 + 1 elements (secagg/proof/field.py), in integers that a browser counts exactly.

An array of elements has two 32-bit words for each, the low one first: in memory they are the bytes that travel. 2^64 = 2^32 - 1
and 2^96 = -1 in the field. BigInt is used for a few constants alone; it is some ten times slower than what is here.
*/

import { BadMessage } from "../federation/wire.js";
import { digest, inMemory } from "./canonical.js";
import { MOST_LENGTH, RANGE_BITS } from "../schemas.js";
import { KeyStream, SEED_BYTES } from "./ring.js";
import { assembled, newSecrets, splitMessage, systemRandom } from "./upload.js";

/** @import { Parameters } from "./config.js" */
/** @import { Proof } from "./upload.js" */

/** @typedef {Uint32Array<ArrayBuffer>} Elements */

export const MODULUS = 2n ** 64n - 2n ** 32n + 1n;
const WORD = 2 ** 32;
const LAST = WORD - 1;

/** @type {(count: number) => Elements} */
export const zeros = (count) => new Uint32Array(2 * count);

/** Write below + 2^32 above, integers between -2^34 and 2^34, as an element.
 * @type {(result: Elements, at: number, below: number, above: number) => void} */
function write(result, at, below, above) {
  let carried = Math.floor(below / WORD);
  let low = below - carried * WORD;
  let high = above + carried;
  // What is over 2^64, or missing below 0, goes once around: 2^64 = 2^32 - 1.
  for (let turns = Math.floor(high / WORD); turns !== 0; turns = Math.floor(high / WORD)) {
    low -= turns;
    carried = Math.floor(low / WORD);
    low -= carried * WORD;
    high += carried + turns - turns * WORD;
  }
  const over = high === LAST && low >= 1; // p or more
  result[2 * at] = over ? low - 1 : low;
  result[2 * at + 1] = over ? 0 : high;
}

/** @type {(one: number, other: number) => number} */
function upper(one, other) {
  const high = one >>> 16;
  const low = one & 0xffff;
  return Math.floor((high * other + Math.floor((low * other) / 65536)) / 65536);
}

/** result[at] = one[i] + other[j]
 * @type {(result: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function add(result, at, one, i, other, j) {
  write(result, at, one[2 * i] + other[2 * j], one[2 * i + 1] + other[2 * j + 1]);
}

/** result[at] = one[i] - other[j]
 * @type {(result: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function subtract(result, at, one, i, other, j) {
  write(result, at, one[2 * i] - other[2 * j], one[2 * i + 1] - other[2 * j + 1]);
}

/** result[at] = one[i] other[j]
 * @type {(result: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function multiply(result, at, one, i, other, j) {
  const a = one[2 * i + 1];
  const b = one[2 * i];
  const c = other[2 * j + 1];
  const d = other[2 * j];
  // The four words of the product, before carries.
  const second = upper(b, d) + (Math.imul(a, d) >>> 0) + (Math.imul(b, c) >>> 0);
  const third = upper(a, d) + upper(b, c) + (Math.imul(a, c) >>> 0) + Math.floor(second / WORD);
  const fourth = upper(a, c) + Math.floor(third / WORD);
  const middle = third % WORD;
  write(result, at, (Math.imul(b, d) >>> 0) - middle - fourth, (second % WORD) + middle);
}

/** @type {(base: bigint, exponent: bigint) => bigint} */
function power(base, exponent) {
  if (exponent === 0n) return 1n;
  const half = power((base * base) % MODULUS, exponent >> 1n);
  return exponent & 1n ? (half * base) % MODULUS : half;
}

/** @type {(value: bigint) => Elements} */
const element = (value) => Uint32Array.of(Number(value & 0xffffffffn), Number(value >> 32n));

/** Each column as the coefficients of a polynomial, evaluated at the powers of a root of order `order`; in place.
 * @type {(rows: Elements, order: number, root: bigint) => void} */
function transform(rows, order, root) {
  const width = rows.length / 2 / order;
  const bits = Math.log2(order);
  for (let row = 0; row < order; row++) {
    let turned = 0;
    for (let bit = 0; bit < bits; bit++) turned |= ((row >> bit) & 1) << (bits - 1 - bit);
    if (turned > row) {
      const saved = rows.slice(2 * row * width, 2 * (row + 1) * width);
      rows.copyWithin(2 * row * width, 2 * turned * width, 2 * (turned + 1) * width);
      rows.set(saved, 2 * turned * width);
    }
  }
  const odd = zeros(1);
  for (let span = 1; span < order; span *= 2) {
    const step = element(power(root, BigInt(order / (2 * span))));
    for (let begin = 0; begin < order; begin += 2 * span) {
      const twiddle = element(1n);
      for (let row = begin; row < begin + span; row++) {
        for (let column = 0; column < width; column++) {
          const at = row * width + column;
          multiply(odd, 0, twiddle, 0, rows, at + span * width);
          subtract(rows, at + span * width, rows, at, odd, 0);
          add(rows, at, rows, at, odd, 0);
        }
        multiply(twiddle, 0, twiddle, 0, step, 0);
      }
    }
  }
}

/** @type {(order: number) => bigint} */
const rootOfUnity = (order) => power(7n, (MODULUS - 1n) / BigInt(order));

/** The values of polynomials at the powers of the root of their order, from their coefficients; in place.
 * @type {(rows: Elements, order: number) => void} */
export const evaluate = (rows, order) => transform(rows, order, rootOfUnity(order));

/** The coefficients of the polynomials that have these values at the powers of the root of their order; in place.
 * @type {(rows: Elements, order: number) => void} */
export function interpolate(rows, order) {
  transform(rows, order, power(rootOfUnity(order), MODULUS - 2n));
  const scale = element(power(BigInt(order), MODULUS - 2n));
  for (let at = 0; at < rows.length / 2; at++) multiply(rows, at, rows, at, scale, 0);
}

// Projections (secagg/proof/circuit.py): random sums and differences of a message's numbers, taken of both shares.

const TOGETHER = 4096; // groups of eight numbers whose bits are made at a time

/** @type {(key: Bytes, context: Bytes, projections: number, vectors: Uint32Array[]) => Promise<Int32Array[]>} */
export async function project(key, context, projections, vectors) {
  const stream = await KeyStream.from(key, context, "projections");
  const length = vectors[0].length;
  const result = vectors.map(() => new Int32Array(projections));
  for (let begin = 0; begin < length; begin += 8 * TOGETHER) {
    const groups = Math.min(Math.ceil((length - begin) / 8), TOGETHER);
    const bits = await stream.next(groups * 2 * projections);
    vectors.forEach((vector, row) => addGroups(vector, begin, groups, bits, result[row]));
  }
  return result;
}

/** @type {(values: Uint32Array, begin: number, groups: number, bits: Bytes, result: Int32Array) => void} */
function addGroups(values, begin, groups, bits, result) {
  const subsets = new Int32Array(256);
  const projections = result.length;
  for (let group = 0; group < groups; group++) {
    for (let place = 0, size = 1; place < 8; place++, size *= 2) {
      const at = begin + 8 * group + place;
      const value = at < values.length ? values[at] | 0 : 0;
      for (let subset = 0; subset < size; subset++) subsets[size + subset] = (subsets[subset] + value) | 0;
    }
    const from = 2 * projections * group;
    for (let number = 0; number < projections; number++)
      result[number] += subsets[bits[from + number]] - subsets[bits[from + projections + number]];
  }
}

// The device's proof (secagg/proof/proof.py, secagg/proof/circuit.py): wires and a polynomial, split in two as the message is.

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
  const result = zeros(2 * points);
  const product = zeros(1);
  for (let row = 0; row < 2 * points; row++)
    for (let column = 0; column < columns; column++) {
      const at = row * 2 * columns + column;
      multiply(product, 0, rows, at, rows, at + columns);
      add(result, row, result, row, product, 0);
    }
  interpolate(result, 2 * points);
  return result;
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
  const result = zeros(count);
  for (let at = 0; at < count;) {
    const words = new Uint32Array((await stream.next(8 * (count - at))).buffer);
    for (let word = 0; word < words.length; word += 2) {
      const [low, high] = [words[word], words[word + 1]];
      if (high < MODULUS_HIGH || (high === MODULUS_HIGH && low < MODULUS_LOW)) {
        result[2 * at] = low;
        result[2 * at++ + 1] = high;
      }
    }
  }
  return result;
}

// Uploads that carry a proof of their norm (secagg/proof/upload.py).

const MOST_DRAWS = 8;

/** A message with its proof, as the bytes of an upload. Where its projections are by chance outside of what can be proved, secrets
 * are drawn again.
 * @type {(parameters: Parameters, roundConfig: RoundConfig, message: Int32Array) => Promise<Bytes>} */
export async function sendChecked(parameters, roundConfig, message) {
  for (let draw = 0; draw < MOST_DRAWS; draw++) {
    const upload = await makeCheckedUpload(parameters, roundConfig, message, newSecrets(), systemRandom(SEED_BYTES));
    if (upload) return upload;
  }
  throw new BadMessage(["upload.no-proof"]);
}

/** A message with its proof from these secrets, or null where they give none.
 * @type {(parameters: Parameters, roundConfig: RoundConfig, message: Int32Array, secrets: Secrets, proofSeed: Bytes,
 *   ephemeral?: CryptoKeyPair) => Promise<Bytes | null>} */
export async function makeCheckedUpload(parameters, roundConfig, message, secrets, proofSeed, ephemeral) {
  if (message.length > MOST_LENGTH)
    throw new BadMessage(["upload.proof-length", { most: MOST_LENGTH, result: message.length }]);
  const split = await splitMessage(roundConfig, message, secrets);
  const proof = await prove(parameters, split, secrets, proofSeed);
  return proof && assembled("FRSUMS02", secrets, split, ephemeral, proof);
}
