/* Ranking: what a vector makes of every item, and the best of them. */

/** @type {(vector: Float32Array, model: { vectors: Float32Array, biases: Float32Array }) => Float32Array} */
export function scores(vector, { vectors, biases }) {
  const factors = vector.length;
  const values = new Float32Array(biases.length);
  for (let item = 0, place = 0; item < values.length; item++) {
    let x = biases[item];
    for (let f = 0; f < factors; f++) x += vector[f] * vectors[place++];
    values[item] = x;
  }
  return values;
}

/** The n best items, best first, without those in `leftOut`; ties go to the smaller number.
 * @type {(values: Float32Array, n: number, leftOut: Set<number>) => number[]} */
export function topN(values, n, leftOut) {
  /** @type {number[]} */
  const best = [];
  let bar = -Infinity;
  for (let item = 0; item < values.length; item++) {
    const value = values[item];
    if (!(value > bar) || leftOut.has(item)) continue;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < value) place--;
    best.splice(place, 0, item);
    if (best.length > n) best.pop();
    if (best.length === n) bar = values[best[n - 1]];
  }
  return best;
}
