/* Distribution where squares are learnt: which items a round's messages cover (protocol/squares/distribution.py).

Every `blocks` rounds the catalogue is dealt out anew, so each item has its turn equally often. The block follows from the
federation's seed and the round alone: nobody needs to be told.
*/

import { BLOCK, SERVER, words } from "../draws.js";

/** The items that this round's messages cover, ascending.
 * @type {(seed: number, nItems: number, blocks: number, roundNumber: number) => Int32Array} */
export function blockOf(seed, nItems, blocks, roundNumber) {
  const everything = Int32Array.from({ length: nItems }, (_, item) => item);
  if (blocks === 1) return everything;
  const dealt = Math.floor(roundNumber / blocks);
  const turn = roundNumber % blocks;
  const drawn = Float64Array.from(everything, (item) => words(seed, SERVER, BLOCK, dealt, item)[0]);
  const order = everything.sort((one, other) => drawn[one] - drawn[other] || one - other);
  const bound = (/** @type {number} */ number) => Math.floor((number * nItems) / blocks);
  return order.slice(bound(turn), bound(turn + 1)).sort();
}
