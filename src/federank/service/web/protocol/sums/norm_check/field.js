/* The field of p = 2^64 - 2^32 + 1 elements (norm_check/field.py), in integers that a browser counts exactly.

An array of elements has two 32-bit words for each, the low one first: in memory they are the bytes that travel. 2^64 = 2^32 - 1
and 2^96 = -1 in the field. BigInt is used for a few constants alone; it is some ten times slower than what is here.
*/

/** @typedef {Uint32Array<ArrayBuffer>} Elements */

export const MODULUS = 2n ** 64n - 2n ** 32n + 1n;
const WORD = 2 ** 32;
const LAST = WORD - 1;

/** A zero for each element.
 * @type {(count: number) => Elements} */
export const zeros = (count) => new Uint32Array(2 * count);

/** Write below + 2^32 above, integers between -2^34 and 2^34, as an element.
 * @type {(found: Elements, at: number, below: number, above: number) => void} */
function write(found, at, below, above) {
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
  found[2 * at] = over ? low - 1 : low;
  found[2 * at + 1] = over ? 0 : high;
}

/** The upper half of the product of two words.
 * @type {(one: number, other: number) => number} */
function upper(one, other) {
  const high = one >>> 16;
  const low = one & 0xffff;
  return Math.floor((high * other + Math.floor((low * other) / 65536)) / 65536);
}

/** found[at] = one[i] + other[j]
 * @type {(found: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function add(found, at, one, i, other, j) {
  write(found, at, one[2 * i] + other[2 * j], one[2 * i + 1] + other[2 * j + 1]);
}

/** found[at] = one[i] - other[j]
 * @type {(found: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function subtract(found, at, one, i, other, j) {
  write(found, at, one[2 * i] - other[2 * j], one[2 * i + 1] - other[2 * j + 1]);
}

/** found[at] = one[i] other[j]
 * @type {(found: Elements, at: number, one: Elements, i: number, other: Elements, j: number) => void} */
export function multiply(found, at, one, i, other, j) {
  const a = one[2 * i + 1];
  const b = one[2 * i];
  const c = other[2 * j + 1];
  const d = other[2 * j];
  // The four words of the product, before carries.
  const second = upper(b, d) + (Math.imul(a, d) >>> 0) + (Math.imul(b, c) >>> 0);
  const third = upper(a, d) + upper(b, c) + (Math.imul(a, c) >>> 0) + Math.floor(second / WORD);
  const fourth = upper(a, c) + Math.floor(third / WORD);
  const middle = third % WORD;
  write(found, at, (Math.imul(b, d) >>> 0) - middle - fourth, (second % WORD) + middle);
}

/** @type {(base: bigint, exponent: bigint) => bigint} */
function power(base, exponent) {
  if (exponent === 0n) return 1n;
  const half = power((base * base) % MODULUS, exponent >> 1n);
  return exponent & 1n ? (half * base) % MODULUS : half;
}

/** An element of its own.
 * @type {(value: bigint) => Elements} */
const element = (value) => Uint32Array.of(Number(value & 0xffffffffn), Number(value >> 32n));

/** Each column as the coefficients of a polynomial, told at the powers of a root of order `order`; in place.
 * @type {(rows: Elements, order: number, root: bigint) => void} */
function transform(rows, order, root) {
  const width = rows.length / 2 / order;
  const bits = Math.log2(order);
  for (let row = 0; row < order; row++) {
    let turned = 0;
    for (let bit = 0; bit < bits; bit++) turned |= ((row >> bit) & 1) << (bits - 1 - bit);
    if (turned > row) {
      const kept = rows.slice(2 * row * width, 2 * (row + 1) * width);
      rows.copyWithin(2 * row * width, 2 * turned * width, 2 * (turned + 1) * width);
      rows.set(kept, 2 * turned * width);
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
