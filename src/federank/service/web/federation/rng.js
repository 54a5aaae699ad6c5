/* Draws: every random choice, as a function of (seed, user, round, counter).

The same as federation/rng.py, word for word: Threefry-4x32 with 20 rounds (Salmon et al., 2011), keyed by (seed, user,
purpose, 0), counting (round, counter, 0, 0). JavaScript's bit operators work on 32-bit words, so sums are cut back with
`| 0` and words leave as unsigned with `>>> 0`.
*/

export const TRIPLE = 2; // one (positive, negative) pair and its coin
export const MASK = 3; // may this item's row be sent in this round
export const USER_FACTORS = 6; // first values, drawn on the device
export const NEGATIVE = 9; // a negative, where two tries have met the profile
export const STICKY = 13; // which of its own items may ever be sent
export const DENIABLE = 14; // what an item of the catalogue answers per client lifetime, liked or not

export const WORDS = 2 ** 32;

/** @typedef {[number, number, number, number]} Words Four words of 32 bits. */

const ROTATIONS = [
  [10, 26, 11, 21, 13, 27, 23, 5],
  [6, 20, 17, 11, 25, 10, 18, 20],
];

/** @type {(word: number, by: number) => number} */
const rotated = (word, by) => (word << by) | (word >>> (32 - by));

/** Threefry-4x32-20: four words from a key and a counter of four words each.
 * @type {(k0: number, k1: number, k2: number, k3: number, c0: number, c1: number, c2: number, c3: number) => Words} */
function threefry(k0, k1, k2, k3, c0, c1, c2, c3) {
  const key = [k0 | 0, k1 | 0, k2 | 0, k3 | 0, 0x1bd11bda ^ k0 ^ k1 ^ k2 ^ k3];
  let a = (c0 + key[0]) | 0;
  let b = (c1 + key[1]) | 0;
  let c = (c2 + key[2]) | 0;
  let d = (c3 + key[3]) | 0;
  for (let turn = 1; turn <= 5; turn++) {
    const r = ROTATIONS[(turn - 1) & 1];
    for (let half = 0; half < 8; half += 4) {
      a = (a + b) | 0;
      b = rotated(b, r[half]) ^ a;
      c = (c + d) | 0;
      d = rotated(d, r[half + 1]) ^ c;
      a = (a + d) | 0;
      d = rotated(d, r[half + 2]) ^ a;
      c = (c + b) | 0;
      b = rotated(b, r[half + 3]) ^ c;
    }
    a = (a + key[turn % 5]) | 0;
    b = (b + key[(turn + 1) % 5]) | 0;
    c = (c + key[(turn + 2) % 5]) | 0;
    d = (d + key[(turn + 3) % 5] + turn) | 0;
  }
  return [a >>> 0, b >>> 0, c >>> 0, d >>> 0];
}

/** @type {(seed: number, user: number, purpose: number, roundNumber: number, counter: number) => Words} */
export function words(seed, user, purpose, roundNumber, counter) {
  return threefry(seed, user, purpose, 0, roundNumber, counter, 0, 0);
}

/** A integer from 0 to count - 1: the upper half of word * count, which does not fit a double in one piece.
 * @type {(word: number, count: number) => number} */
export function below(word, count) {
  const lower = Math.floor(((word & 0xffff) * count) / 0x10000);
  return Math.floor(((word >>> 16) * count + lower) / 0x10000);
}

/** @type {(word: number, probability: number) => boolean} */
export function happens(word, probability) {
  return word < probability * WORDS;
}

/** @type {(profile: ArrayLike<number>, item: number) => boolean} */
export function holds(profile, item) {
  let low = 0;
  let span = profile.length;
  while (span > 1) {
    const half = span >> 1;
    if (profile[low + half] <= item) low += half;
    span -= half;
  }
  return profile.length > 0 && profile[low] === item;
}

/** @type {(profile: ArrayLike<number>, rank: number) => number} */
export function absentItem(profile, rank) {
  // profile[k] - k items are missing below profile[k]: find how many of the profile's items lie below the wanted one.
  let low = 0;
  let high = profile.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (profile[middle] - middle <= rank) low = middle + 1;
    else high = middle;
  }
  return rank + low;
}

/** First values of one row: normal numbers of mean 0 and deviation `scale` (Box and Muller, 1958; federation/rng.py).
 * @type {(columns: number, seed: number, row: number, purpose: number, scale: number) => Float32Array} */
export function normalRow(columns, seed, row, purpose, scale) {
  const values = new Float32Array(columns);
  for (let block = 0; 4 * block < columns; block++) {
    const [a, b, c, d] = words(seed, row, purpose, 0, block);
    const four = [...normalPair(a, b), ...normalPair(c, d)];
    for (let index = 0; index < 4 && 4 * block + index < columns; index++)
      values[4 * block + index] = scale * four[index];
  }
  return values;
}

/** @type {(first: number, second: number) => [number, number]} */
function normalPair(first, second) {
  const radius = Math.sqrt(-2 * Math.log((first + 0.5) / WORDS)); // the half keeps the logarithm away from zero
  const angle = (2 * Math.PI * second) / WORDS;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}
