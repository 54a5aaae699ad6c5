/* Virtual ratings: items that a person has not rated, rated all the same, so that an upload does not say which are which
(protocol/ratings/virtual.py).
*/

import { absentItem, below, words } from "../draws.js";

const VIRTUAL = 11; // which items that are not rated get a virtual rating

/** So many different items that are missing from an ascending profile; every set of that many is equally likely.
 * @type {(seed: number, user: number, round: number, profile: Int32Array, nItems: number, count: number) => number[]} */
function sampleUnrated(seed, user, round, profile, nItems, count) {
  const size = profile.length;
  /** @type {number[]} */
  const sampled = [];
  const wordOf = (/** @type {number} */ counter) => words(seed, user, VIRTUAL, round, counter)[0];
  if (2 * (size + count) <= nItems) {
    // Most items are free: draw again what is rated or sampled already.
    const taken = new Set(profile);
    for (let tried = 0; sampled.length < count; tried++) {
      const item = below(wordOf(tried), nItems);
      if (taken.has(item)) continue;
      taken.add(item);
      sampled.push(item);
    }
    return sampled;
  }
  // Few are: draw ranks among the missing items, each at the first try (Floyd's method).
  const ranks = new Set();
  for (let k = 0; k < count; k++) {
    const last = nItems - size - count + k;
    const drawn = below(wordOf(k), last + 1);
    const rank = ranks.has(drawn) ? last : drawn;
    ranks.add(rank);
    sampled.push(absentItem(profile, rank));
  }
  return sampled;
}

/** The items that get a virtual rating in a round, in the order of their draws. A sample for life outlives changes of the history:
what was `sampled` before and is not rated stays, ahead of new ones.
 * @param {{ seed: number, user: number, isFixed: boolean }} whose
 * @param {number} round
 * @param {Int32Array} profile
 * @param {number} count
 * @param {number} nItems
 * @param {Int32Array} sampled ascending
 * @returns {number[]} */
export function virtualItems({ seed, user, isFixed }, round, profile, count, nItems, sampled) {
  const named = isFixed ? 0 : round;
  const drawn = sampleUnrated(seed, user, named, profile, nItems, count);
  if (!isFixed || !sampled.length) return drawn;
  const [rated, news] = [new Set(profile), new Set(drawn)];
  const stays = Array.from(sampled).filter((item) => !rated.has(item));
  const kept = new Set(stays);
  if (stays.every((item) => news.has(item)) || drawn.every((item) => kept.has(item))) return drawn;
  if (stays.length >= count) return stays.slice(0, count);
  const known = Int32Array.from([...profile, ...stays]).sort();
  return [...stays, ...sampleUnrated(seed, user, named, known, nItems, count - stays.length)];
}
