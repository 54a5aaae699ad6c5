/* The ledger: on the device, what has ever left it (privacy/ledger.py).

An item of an Update was liked if its bias is above zero and compared with if it is below: an observer who links the device's
Updates reads the very same. The ledger is written before an Update is sent, because what may have left counts as left.
*/

/** One item that has left the device; `real` is null for what was only ever compared with.
 * @typedef {{ item: number, first_round: number, last_round: number, times_liked: number, times_compared: number,
 *   real: boolean | null }} Entry */

/** Take note of an Update: the entries it changes, as new records beside the old ones (a Map by item).
 * @type {(entries: Map<number, Entry>, roundNumber: number, sharedProfile: SharedProfile, update: Pick<Update, "items" | "biases">) => Map<number, Entry>} */
export function record(entries, roundNumber, sharedProfile, update) {
  const real = new Map(Array.from(sharedProfile.profile, (item, index) => [item, sharedProfile.real[index]]));
  const changed = new Map();
  update.items.forEach((item, index) => {
    const old = entries.get(item);
    const bias = update.biases[index];
    changed.set(item, {
      item,
      first_round: Math.min(old?.first_round ?? roundNumber, roundNumber),
      last_round: Math.max(old?.last_round ?? roundNumber, roundNumber),
      times_liked: (old?.times_liked ?? 0) + (bias > 0 ? 1 : 0),
      times_compared: (old?.times_compared ?? 0) + (bias < 0 ? 1 : 0),
      real: bias > 0 ? old?.real === true || real.get(item) : (old?.real ?? null), // once real, always real
    });
  });
  return changed;
}

/** Take note of a message that is made from a full shared profile: the entries it changes, as above.
 * @type {(entries: Map<number, Entry>, roundNumber: number, sharedProfile: SharedProfile) => Map<number, Entry>} */
export function recordMessage(entries, roundNumber, sharedProfile) {
  const items = sharedProfile.profile;
  return record(entries, roundNumber, sharedProfile, { items, biases: new Float32Array(items.length).fill(1) });
}

/** Take note of an Update of ratings: which items were rated, and which were sampled to hide them among.
 * @type {(entries: Map<number, Entry>, roundNumber: number, rated: Int32Array, sampled: number[]) => Map<number, Entry>} */
export function recordRatings(entries, roundNumber, rated, sampled) {
  const items = Int32Array.from([...rated, ...sampled]);
  const biases = Float32Array.from(items, (_, index) => (index < rated.length ? 1 : -1));
  const real = Array.from(rated, () => true);
  return record(entries, roundNumber, { profile: rated, real, allowed: real, lifelong: true }, { items, biases });
}

/** @type {(entries: Map<number, Entry>, holds: (entry: Entry) => boolean) => Int32Array} */
const itemsWhere = (entries, holds) => Int32Array.from([...entries.values()].filter(holds), ({ item }) => item).sort();

/** @type {(entries: Map<number, Entry>) => Int32Array} */
export const sampledEver = (entries) => itemsWhere(entries, ({ times_compared: times }) => times > 0);

/** @type {(entries: Map<number, Entry>) => Int32Array} */
export const liked = (entries) => itemsWhere(entries, ({ times_liked: times }) => times > 0);

/** Every item that was ever sent as liked because it was its owner's, ascending.
 * @type {(entries: Map<number, Entry>) => Int32Array} */
export const reallyLiked = (entries) => itemsWhere(entries, ({ real }) => real === true);
