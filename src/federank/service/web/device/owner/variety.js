/* Variety: how different the recommendations are from one another, at their owner's wish.

The best items often resemble each other. One after the other is chosen from the best: what counts is how well it fits and, by the
share that the owner asks for, how little it resembles what was chosen before it (maximal marginal relevance, Carbonell and Goldstein,
1998). The best item always comes first.
*/

const AMONG = 8; // times as many as are wanted are looked at

/** How many of the best are looked at to choose n from.
 * @type {(n: number, variety: number) => number} */
export const lookedAt = (n, variety) => (variety > 0 ? AMONG * n : n);

/** The cosine of two items' vectors.
 * @type {(vectors: Float32Array, factors: number, one: number, other: number) => number} */
function alike(vectors, factors, one, other) {
  let [product, mine, theirs] = [0, 0, 0];
  for (let f = 0; f < factors; f++) {
    const [a, b] = [vectors[one * factors + f], vectors[other * factors + f]];
    product += a * b;
    mine += a * a;
    theirs += b * b;
  }
  return product / Math.sqrt(mine * theirs) || 0;
}

/** Choose n of these items, which are in order of their values, with so much variety (0: none, below 1).
 * @type {(best: number[], values: Float32Array, vectors: Float32Array, n: number, variety: number) => number[]} */
export function varied(best, values, vectors, n, variety) {
  if (!(variety > 0) || best.length <= n) return best.slice(0, n);
  const factors = vectors.length / values.length;
  const [high, low] = [values[best[0]], values[best[best.length - 1]]];
  const fits = best.map((item) => (high > low ? (values[item] - low) / (high - low) : 1));
  const nearest = best.map(() => -1);
  /** @type {number[]} */
  const chosen = [];
  const open = new Set(best.keys());
  while (chosen.length < n) {
    let [next, most] = [-1, -Infinity];
    for (const place of open) {
      const worth = chosen.length ? (1 - variety) * fits[place] - variety * nearest[place] : fits[place];
      if (worth > most) [next, most] = [place, worth];
    }
    open.delete(next);
    chosen.push(best[next]);
    for (const place of open)
      nearest[place] = Math.max(nearest[place], alike(vectors, factors, best[place], best[next]));
  }
  return chosen;
}
