/* Projections (norm_check/projections.py): random sums and differences of a message's numbers, taken of both shares.

A coefficient is A - B for two random bits. For every eight numbers the key stream has one byte of A bits for each projection, then
one of B bits for each. All sums of subsets of eight numbers are made once, and a projection looks two of them up.
*/

import { KeyStream } from "../masks.js";

/** @import { Bytes } from "../canonical.js" */

const TOGETHER = 4096; // groups of eight numbers whose bits are made at a time

/** The projections of vectors in the ring, as signed words.
 * @type {(key: Bytes, context: Bytes, projections: number, vectors: Uint32Array[]) => Promise<Int32Array[]>} */
export async function project(key, context, projections, vectors) {
  const stream = await KeyStream.from(key, context, "projections");
  const length = vectors[0].length;
  const found = vectors.map(() => new Int32Array(projections));
  for (let begin = 0; begin < length; begin += 8 * TOGETHER) {
    const groups = Math.min(Math.ceil((length - begin) / 8), TOGETHER);
    const bits = await stream.next(groups * 2 * projections);
    vectors.forEach((vector, row) => addGroups(vector, begin, groups, bits, found[row]));
  }
  return found;
}

/** @type {(values: Uint32Array, begin: number, groups: number, bits: Bytes, found: Int32Array) => void} */
function addGroups(values, begin, groups, bits, found) {
  const subsets = new Int32Array(256);
  const projections = found.length;
  for (let group = 0; group < groups; group++) {
    for (let place = 0, size = 1; place < 8; place++, size *= 2) {
      const at = begin + 8 * group + place;
      const value = at < values.length ? values[at] | 0 : 0;
      for (let subset = 0; subset < size; subset++) subsets[size + subset] = (subsets[subset] + value) | 0;
    }
    const from = 2 * projections * group;
    for (let number = 0; number < projections; number++)
      found[number] += subsets[bits[from + number]] - subsets[bits[from + projections + number]];
  }
}
