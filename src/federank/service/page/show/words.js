/* Words: how numbers and nouns are put together. */

/** "1 place", "3 places".
 * @type {(count: number, noun: { one: string, many: string }) => string} */
export const counted = (count, { one, many }) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** "No places", "Places": the same with a capital letter.
 * @type {(text: string) => string} */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
