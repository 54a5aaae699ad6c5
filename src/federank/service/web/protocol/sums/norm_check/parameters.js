/* How large a norm check is (norm_check/parameters.py): everything follows from the number of projections. */

import { BadMessage } from "../../wire.js";
import { C_INT } from "../rounding.js";

export const RANGE_BITS = 16;
export const MOST_LENGTH = 2 ** 25;
/** @type {Record<number, number>} */
const LIMITS = { 64: 95, 128: 144 };

/** One size of the check.
 * @typedef {{ projections: number, limit: number, slackBits: number, wires: number, points: number, columns: number,
 *   coefficients: number, elements: number, proofBytes: number }} Parameters */

/** The sizes that follow from a number of projections.
 * @type {(projections: number) => Parameters} */
export function checkParameters(projections) {
  if (!Object.hasOwn(LIMITS, projections)) throw new BadMessage(["upload.projections", { found: projections }]);
  const limit = LIMITS[projections] * C_INT * C_INT;
  const slackBits = limit.toString(2).length;
  const wires = (RANGE_BITS + 1) * projections + slackBits;
  const points = projections / 2;
  const columns = Math.ceil((wires + projections) / (points - 1));
  const coefficients = 2 * points - 1;
  const elements = wires + 2 * columns + coefficients;
  return { projections, limit, slackBits, wires, points, columns, coefficients, elements, proofBytes: 8 * elements };
}
