/* What crosses the wire when squares are learnt (protocol/squares/messages.py).

    SquaresBroadcast   server -> device: the item vectors, or the rows that changed, as bytes with a scale a row or as they are
    SquaresUpdate      device -> server: one number an item, and the vector that these numbers pull the items towards

A message means a matrix of a row for every item (`dense`), and that matrix has rank one: its two factors say the same in a
sixtieth of the room. Only sums of messages hide a person, and sums need the whole matrix.
*/

export const LEVELS = 127; // a number of a Broadcast is a whole multiple, from -127 to 127, of its row's scale

/** Rows of the item vectors as of a round and a version, the items' weights, and lambda.
 * @typedef {{ roundNumber: number, version: number, regulariser: number, items: Int32Array, weights: Float32Array,
 *   vectors: Float32Array }} SquaresBroadcast */

/** One number for each item, the person's own vector, and how much the person counts, at most 1.
 * @typedef {{ strengths: Float32Array, vector: Float32Array, scale: number }} SquaresUpdate */

/** What a message means: two matrices, row by row. The last column stands for a vector's constant 1.
 * @typedef {{ pulls: Float32Array, squares: Float32Array }} Dense */

/** The rows that codes and scales stand for.
 * @type {(codes: Int8Array, scales: Float32Array) => Float32Array} */
export function restored(codes, scales) {
  const factors = scales.length ? codes.length / scales.length : 0;
  const vectors = new Float32Array(codes.length);
  for (let row = 0, index = 0; row < scales.length; row++)
    for (let f = 0; f < factors; f++, index++) vectors[index] = codes[index] * scales[row];
  return vectors;
}

/** The message written out: a row for every item, w_i a [x, 1]; and the square of the vector, a [x, 1] [x, 1]'.
 * @type {(update: SquaresUpdate) => Dense} */
export function dense({ strengths, vector, scale }) {
  const whole = Float32Array.of(...vector, 1);
  const scaled = whole.map((value) => scale * value);
  return { pulls: outer(strengths, scaled), squares: outer(whole, scaled) };
}

/** All numbers of a message in one row, as sums add them up: rows of items, then the square of the vector.
 * @type {(message: Dense) => Float32Array} */
export function flat({ pulls, squares }) {
  const values = new Float32Array(pulls.length + squares.length);
  values.set(pulls);
  values.set(squares, pulls.length);
  return values;
}

/** @type {(left: Float32Array, right: Float32Array) => Float32Array} */
function outer(left, right) {
  const matrix = new Float32Array(left.length * right.length);
  for (let row = 0, index = 0; row < left.length; row++)
    for (let column = 0; column < right.length; column++, index++) matrix[index] = left[row] * right[column];
  return matrix;
}
