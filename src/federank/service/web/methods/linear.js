/* Solving for a vector: sums of products, and symmetric, positive systems (Cholesky), in double precision. */

/** Add weight * row row' to the upper triangle.
 * @type {(products: Float64Array, row: Float64Array, weight: number) => void} */
export function addProducts(products, row, weight) {
  const factors = row.length;
  for (let one = 0, start = 0; one < factors; one++, start += factors) {
    const value = weight * row[one];
    for (let other = one; other < factors; other++) products[start + other] += value * row[other];
  }
}

/** @type {(matrix: Float64Array, size: number) => void} */
export function mirror(matrix, size) {
  for (let one = 0; one < size; one++)
    for (let other = 0; other < one; other++) matrix[one * size + other] = matrix[other * size + one];
}

/** Solve A x = b for a symmetric, positive A, which is lost: A = L L', then L z = b, then L' x = z.
 * @type {(matrix: Float64Array, right: Float64Array) => Float64Array} */
export function solve(matrix, right) {
  const size = right.length;
  const solution = Float64Array.from(right);
  for (let row = 0; row < size; row++) {
    const mine = row * size;
    for (let column = 0; column <= row; column++) {
      const theirs = column * size;
      let rest = matrix[mine + column];
      for (let k = 0; k < column; k++) rest -= matrix[mine + k] * matrix[theirs + k];
      // What is not positive has no root: not a number from here on, and the caller refuses it.
      matrix[mine + column] = column < row ? rest / matrix[theirs + column] : Math.sqrt(rest);
    }
    for (let k = 0; k < row; k++) solution[row] -= matrix[mine + k] * solution[k];
    solution[row] /= matrix[mine + row];
  }
  for (let row = size - 1; row >= 0; row--) {
    for (let k = row + 1; k < size; k++) solution[row] -= matrix[k * size + row] * solution[k];
    solution[row] /= matrix[row * size + row];
  }
  return solution;
}
