/* What an answer must hold: a value that is not as promised is refused with a sentence that names it as the interface does. */

import { BadAnswer } from "./client.js";

/** Refuse an answer unless this holds.
 * @type {(holds: unknown, what: string) => void} */
export function needed(holds, what) {
  if (!holds) throw new BadAnswer(["detail.unusable", { what }]);
}

/** @type {(value: any, low: number, high: number) => boolean} */
export const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;

/** @type {(value: any) => boolean} */
export const positive = (value) => Number.isFinite(value) && value >= 0;
