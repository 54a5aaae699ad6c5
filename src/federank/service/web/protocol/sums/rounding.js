/* Rounding (protocol/sums/rounding.py): a message becomes integers of bounded length.

Clip to the norm C, scale so that C becomes 4096, round each number down or up at random, and shrink until the norm of the whole
numbers fits. Lengths are summed in the order of the numbers, as in Python, so that both round alike to the last bit.
*/

import { BadMessage } from "../wire.js";

export const C_INT = 4096;
const SHRINKING = 1 - 2 ** -12;

/** The message as integers of norm at most C_INT; `chances` are uniform 16-bit words, one for each number.
 * @type {(values: Float64Array | Float32Array, clip: number, chances: Uint16Array) => Int32Array<ArrayBuffer>} */
export function roundMessage(values, clip, chances) {
  let squares = 0;
  for (let index = 0; index < values.length; index++) squares += values[index] * values[index];
  const norm = Math.sqrt(squares);
  if (!Number.isFinite(norm)) throw new BadMessage(["upload.finite"]);
  let factor = C_INT / Math.max(clip, norm);
  const whole = new Int32Array(values.length);
  for (;;) {
    let length = 0;
    for (let index = 0; index < values.length; index++) {
      const rounded = Math.floor(values[index] * factor + chances[index] * 2 ** -16);
      whole[index] = rounded;
      length += rounded * rounded;
    }
    if (length <= C_INT * C_INT) return whole;
    factor *= (C_INT / Math.sqrt(length)) * SHRINKING;
  }
}
