/* Shelves: what is recommended, in a few rows, each with a reason where there is one that its reader will believe.

    best        by the home vector alone
    because     what resembles one of the user's own items far more than most items do, and has a category with it in common
    different   good, and little like what stands above it (maximal marginal relevance, Carbonell and Goldstein, 1998)
    many        what is popular

What was turned down teaches here, and nowhere else: what resembles it moves down. Nothing of it is ever sent.
*/

import { topN } from "../methods/ranking.js";

/** A row of items by their numbers; `own` is the user's item that is its reason.
 * @typedef {{ kind: "best" | "because" | "different" | "many", own?: number, items: number[] }} Shelf */

const BEST = 5;
const LONG = 14;
const SHORT = 4; // fewer are no shelf
const REASONS = 3; // shelves because of something
const BELIEVED = 2; // standard deviations above an item's mean likeness: what is shown as a reason
const SURELY = 0.8; // and the similarity that is believed whatever the others are
const AKIN = 0.25; // the least product of likeness and kinship
const AMONG = 160;
const TAUGHT = 0.6; // of the range of values: what a likeness of 1 to something turned down costs

/** The cosine of one item's vector with every item's; 0 where either has none.
 * @type {(vectors: Float32Array, count: number, item: number) => Float32Array} */
function likeness(vectors, count, item) {
  const factors = vectors.length / count;
  const alike = new Float32Array(count);
  const own = vectors.subarray(item * factors, (item + 1) * factors);
  const length = Math.hypot(...own);
  for (let other = 0; other < count; other++) {
    let [product, squares] = [0, 0];
    for (let f = 0; f < factors; f++) {
      const value = vectors[other * factors + f];
      product += own[f] * value;
      squares += value * value;
    }
    alike[other] = product / (length * Math.sqrt(squares)) || 0;
  }
  return alike;
}

/** @type {(alike: Float32Array) => number} */
function believed(alike) {
  const mean = alike.reduce((sum, value) => sum + value, 0) / alike.length;
  const spread = Math.sqrt(alike.reduce((sum, value) => sum + (value - mean) ** 2, 0) / alike.length);
  return Math.min(Math.max(mean + BELIEVED * spread, 0.3), SURELY);
}

/** @type {(values: Float32Array, vectors: Float32Array, down: number[]) => Float32Array} */
export function taught(values, vectors, down) {
  if (!down.length) return values;
  let [low, high] = [Infinity, -Infinity];
  // What must not be recommended is worth -Infinity: it is no part of the range, and stays as it is.
  for (const value of values) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const worst = new Float32Array(values.length);
  for (const item of down) {
    const alike = likeness(vectors, values.length, item);
    const least = believed(alike);
    alike.forEach((value, other) => {
      if (value >= least) worst[other] = Math.max(worst[other], value);
    });
  }
  return values.map((value, item) => (Number.isFinite(value) ? value - TAUGHT * (high - low) * worst[item] : value));
}

/** Everything that is recommended now, and of each item the user's own that is a believable reason for it.
 * @type {(client: Client) => Promise<{ shelves: Shelf[], reasons: Map<number, number> }>} */
export async function shelves(client) {
  const { history, model, method, shape } = client;
  if (!history.length) return { shelves: [], reasons: new Map() };
  const values = await client.worth();
  const without = new Set(client.left);
  const best = topN(values, AMONG, without);
  // Where items are rated, what was given less than the mean is no reason.
  const stars = client.starsOf(history);
  const mean = stars.reduce((sum, star) => sum + star, 0) / stars.length;
  const own = Array.from(method.scale ? history.filter((_, place) => stars[place] >= mean) : history);
  const alike = new Map(client.isFresh ? [] : own.map((item) => [item, likeness(model.vectors, shape.items, item)]));
  const least = new Map([...alike].map(([item, values_]) => [item, believed(values_)]));
  const kinship = kinshipIn(client.catalogue);
  /** @type {(item: number) => number | null} */
  const reasonOf = (item) => {
    let [reason, most] = [/** @type {number | null} */ (null), AKIN];
    for (const [other, values_] of alike) {
      const akin = values_[item] >= (least.get(other) ?? 2) ? values_[item] * kinship(item, other) : 0;
      if (akin > most) [reason, most] = [other, akin];
    }
    return reason;
  };
  const reasons = new Map(best.flatMap((item) => (reasonOf(item) === null ? [] : [[item, reasonOf(item) ?? -1]])));
  /** @type {Shelf[]} */
  const rows = [{ kind: "best", items: best.slice(0, BEST) }];
  const shown = new Set(rows[0].items);
  /** @type {(shelf: Shelf) => void} */
  const add = (shelf) => {
    if (shelf.items.length < SHORT) return;
    rows.push(shelf);
    for (const item of shelf.items) shown.add(item);
  };
  const latest = new Map(client.stored.history.map(({ id, at }) => [client.catalogue.numberOf.get(id), at]));
  const anchors = own.sort((one, other) => (latest.get(other) ?? 0) - (latest.get(one) ?? 0) || one - other);
  for (const item of anchors) {
    if (rows.length > REASONS || !alike.size) break;
    const values_ = alike.get(item) ?? new Float32Array(shape.items);
    const near = best.filter((other) => !shown.has(other) && reasons.get(other) === item);
    near.sort((one, other) => values_[other] * kinship(other, item) - values_[one] * kinship(one, item));
    add({ kind: "because", own: item, items: near.slice(0, LONG) });
  }
  if (!client.isFresh) add({ kind: "different", items: different(client, values, best, shown) });
  const popular = topN(method.popularity(model), LONG, new Set([...without, ...shown]));
  if (!client.isFresh) add({ kind: "many", items: popular });
  return { shelves: rows, reasons };
}

/** How much of their categories two items share, where a rare one says more than a common one (Jaccard, weighted by the logarithm of
rarity); 1 where either has none.
 * @type {(catalogue: Catalogue) => (one: number, other: number) => number} */
function kinshipIn({ items, membersOf }) {
  /** @type {(categories: string[]) => number} */
  const weight = (categories) =>
    categories.reduce((sum, name) => sum + Math.log(items.length / (membersOf.get(name)?.length ?? 1)), 0);
  return (one, other) => {
    const [mine, theirs] = [items[one].categories, items[other].categories];
    const all = weight([...new Set([...mine, ...theirs])]);
    return mine.length && theirs.length && all ? weight(mine.filter((name) => theirs.includes(name))) / all : 1;
  };
}

/** @type {(client: Client, values: Float32Array, best: number[], shown: Set<number>) => number[]} */
function different({ model, shape, history }, values, best, shown) {
  const open = best.filter((item) => !shown.has(item));
  const nearest = new Map(open.map((item) => [item, 0]));
  /** @type {(item: number) => void} */
  const compare = (item) => {
    const alike = likeness(model.vectors, shape.items, item);
    for (const [other, most] of nearest) nearest.set(other, Math.max(most, alike[other]));
  };
  for (const item of Array.from(history).slice(0, 50)) compare(item);
  const [high, low] = [values[best[0]], values[best[best.length - 1]]];
  /** @type {number[]} */
  const chosen = [];
  while (chosen.length < LONG && nearest.size) {
    const worth = (/** @type {number} */ item) =>
      (high > low ? (values[item] - low) / (high - low) : 0) - 2 * (nearest.get(item) ?? 0);
    const next = [...nearest.keys()].reduce((most, item) => (worth(item) > worth(most) ? item : most));
    nearest.delete(next);
    chosen.push(next);
    compare(next);
  }
  return chosen;
}
