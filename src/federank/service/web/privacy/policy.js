/* Policy: what its owner allows to leave this device, and the shared profile that follows from it (privacy/policy.py).

    all                   a positive is sent with probability pi, drawn again every time
    fixed-subset          of n items, ceil(pi n) may ever be sent: those with the smallest words
    randomized-response   every item of the catalogue answers once per lifetime: a liked one is sent with probability pi,
                          any other with a smaller q, with item_epsilon = ln( pi (1 - q) / (q (1 - pi)) )

With the basis `shared` the device takes part with its shared profile instead of its history, so that all that leaves
is a function of that profile and of draws.
*/

import { DENIABLE, STICKY, happens, holds, words } from "../federation/rng.js";

/** What one user allows; `messages` is how many may leave, ever, where they are counted; `triples` is how many pairs the device trains on in a
 * round, as far as the federation allows; `neverItems` are items, by number, that must never be sent because they are liked.
 * @typedef {{ sharing: string, pi: number, basis: string, item_epsilon?: number | null, budget?: number | null,
 *   messages?: number | null, triples?: number | null, neverItems?: number[], filling?: string | null, rho?: number | null,
 *   sampling?: string | null }} Policy */

/** What a device takes part with: items, which of them are its owner's, which may ever be sent, and whether always.
 * @typedef {{ profile: Int32Array, real: boolean[], allowed: boolean[], lifelong: boolean }} SharedProfile */

/** Where no single server reads a message, it names every item, and there is nothing to hide among others. */
export const NOTHING_HIDDEN = { filling: "none", rho: 0, sampling: "fixed" };
const SHARING = ["all", "fixed-subset", "randomized-response"];
const BASES = ["history", "shared"];

/** Whether this is a policy at all: what a server suggests, or an old database holds, may be anything.
 * @type {(policy?: any) => policy is Policy} */
export function isPolicy({ sharing, pi, basis, item_epsilon = null, budget = null, messages = null, ...more } = {}) {
  if (!SHARING.includes(sharing) || !BASES.includes(basis) || !(pi >= 0 && pi <= 1)) return false;
  for (const most of [budget, messages]) if (most !== null && !(Number.isInteger(most) && most >= 0)) return false;
  const { triples = null } = more;
  if (triples !== null && !(Number.isInteger(triples) && triples >= 1)) return false;
  if (!hidesAsItCan(more)) return false;
  if (sharing !== "randomized-response") return item_epsilon === null;
  return Number.isFinite(item_epsilon) && item_epsilon > 0 && pi < 1 && basis === "shared" && budget === null;
}

/** Whether virtual ratings, where a federation is of ratings, are of a kind and a number that there is.
 * @type {(policy: any) => boolean} */
function hidesAsItCan({ filling = null, rho = null, sampling = null }) {
  if (filling === null && rho === null && sampling === null) return true;
  const isKnown = ["hybrid", "average", "none"].includes(filling) && ["fixed", "fresh"].includes(sampling);
  return isKnown && Number.isFinite(rho) && rho >= 0 && rho <= 1000 && !(rho > 0 && filling === "none");
}

/** q: the probability that an item which is not liked is sent all the same; 0 unless randomized-response.
 * @type {(policy: Pick<Policy, "pi" | "item_epsilon">) => number} */
export function decoyRate({ pi, item_epsilon = null }) {
  return item_epsilon === null ? 0 : (pi * Math.exp(-item_epsilon)) / (pi * Math.exp(-item_epsilon) + 1 - pi);
}

/** How many of the candidates are chosen, where `before` of them have left and `ever` items have left in all.
 * @type {(policy: Policy, candidates: number, before: number, ever: number) => number} */
export function mostChosen(policy, candidates, before, ever) {
  const most = mostAllowed(policy, candidates);
  // Where nothing is bound to stay, there is nothing to count.
  return isBounded(policy) ? Math.min(most, before + Math.max(0, most - ever)) : most;
}

/** Whether some of the history never leaves under a policy.
 * @type {(policy: Policy) => boolean} */
export function isBounded({ sharing, pi, budget = null }) {
  return budget !== null || (sharing === "fixed-subset" && pi < 1);
}

/** How many of the items that are on no never-list may ever leave.
 * @type {(policy: Policy, candidates: number) => number} */
function mostAllowed(policy, candidates) {
  // Integer products must stay integers: 0.07 x 100 is a little more than 7 to a computer.
  const most = policy.sharing === "fixed-subset" ? Math.ceil(policy.pi * candidates - 1e-9) : candidates;
  return Math.min(most, policy.budget ?? most);
}

/** One user's shared profile, from an ascending history.

`sent` is what has left because it was liked, each item once, whether or not it is still there: what is stays chosen, ahead of
new ones; and new ones are chosen only while fewer than the bound have ever left.
 * @type {(policy: Policy, seed: number, user: number, history: Int32Array, nItems: number, sent?: ArrayLike<number>) => SharedProfile} */
export function sharedProfile(policy, seed, user, history, nItems, sent = []) {
  const never = new Set(policy.neverItems);
  const candidates = history.filter((item) => !never.has(item));
  if (policy.sharing === "randomized-response") return randomizedResponse(policy, seed, user, candidates, nItems);
  const before = new Set(Array.from(sent));
  const drawn = Array.from(candidates, (item) => ({
    item,
    first: !before.has(item),
    word: words(seed, user, STICKY, 0, item)[0],
  }));
  drawn.sort((one, other) => Number(one.first) - Number(other.first) || one.word - other.word);
  const still = drawn.filter(({ first }) => !first).length;
  const may = new Set(
    drawn.slice(0, mostChosen(policy, candidates.length, still, before.size)).map(({ item }) => item),
  );
  const profile = policy.basis === "shared" ? history.filter((item) => may.has(item)) : history;
  return {
    profile,
    real: Array.from(profile, () => true),
    allowed: Array.from(profile, (item) => may.has(item)),
    lifelong: policy.sharing === "fixed-subset",
  };
}

/** The part of a shared profile that `stays`.
 * @type {(shared: SharedProfile, stays: (item: number) => boolean) => SharedProfile} */
export function among({ profile, real, allowed, lifelong }, stays) {
  const left = Array.from(profile.keys()).filter((place) => stays(profile[place]));
  return {
    profile: Int32Array.from(left, (place) => profile[place]),
    real: left.map((place) => real[place]),
    allowed: left.map((place) => allowed[place]),
    lifelong,
  };
}

/** @type {(policy: Policy, seed: number, user: number, liked: Int32Array, nItems: number) => SharedProfile} */
function randomizedResponse(policy, seed, user, liked, nItems) {
  const q = decoyRate(policy);
  const profile = [];
  for (let block = 0; 4 * block < nItems; block++) {
    const four = words(seed, user, DENIABLE, 0, block);
    for (let lane = 0; lane < 4 && 4 * block + lane < nItems; lane++) {
      const item = 4 * block + lane;
      if (happens(four[lane], holds(liked, item) ? policy.pi : q)) profile.push(item);
    }
  }
  return {
    profile: Int32Array.from(profile),
    real: profile.map((item) => holds(liked, item)),
    allowed: profile.map(() => true),
    lifelong: true,
  };
}
