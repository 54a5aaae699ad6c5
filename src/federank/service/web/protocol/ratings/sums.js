/* Ratings as sums that no single server can open (protocol/ratings/sums.py): a message that names every item, row by row, with the
gradient of V, that of W for SVD++, and a count: 1 where the person has rated the item, and zeros elsewhere.
*/

/** @import { RatingUpdate } from "./codec.js" */

/** Numbers a row of a message: gradients, and a count.
 * @type {(factors: number, hasImplicit: boolean) => number} */
export const columnsOfGradients = (factors, hasImplicit) => factors * (hasImplicit ? 2 : 1) + 1;

/** An Update without virtual ratings as a message that names every item.
 * @type {(update: RatingUpdate, factors: number, nItems: number, hasImplicit: boolean) => Float32Array} */
export function denseGradients({ items, vectors, implicitItems, implicitVectors }, factors, nItems, hasImplicit) {
  const columns = columnsOfGradients(factors, hasImplicit);
  const rows = new Float32Array(nItems * columns);
  items.forEach((item, place) => {
    rows.set(vectors.subarray(place * factors, (place + 1) * factors), item * columns);
    rows[(item + 1) * columns - 1] = 1;
  });
  implicitItems.forEach((item, place) =>
    rows.set(implicitVectors.subarray(place * factors, (place + 1) * factors), item * columns + factors),
  );
  return rows;
}
