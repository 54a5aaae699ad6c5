/* Faults, and whatever else the device has to say: which sentence it is, and what stands in it. The words are the page's (words/). */

/** A sentence's name, in every language.
 * @typedef {keyof typeof import("./words/en.json")} Key */

/** What is wrong with a message or an answer, for developers: the page shows the code, and no sentence of its own.
 * @typedef {`${"wire" | "round-config" | "upload" | "key" | "config" | "statement" | "sums" | "detail"}.${string}`} Code */

/** What is to be said: a sentence by its name with its values, a code, or text of the server's, which stays as it is.
 * @typedef {string | [key: Key | Code, values?: Record<string, unknown>]} Said */

export class Fault extends Error {
  /** @param {Said} said */
  constructor(said) {
    super(JSON.stringify(said));
    this.said = said;
  }
}

/** @type {(fault: unknown) => Said} */
export function saidOf(fault) {
  if (!(fault instanceof Error)) return String(fault);
  if (fault.name === "InvalidStateError") return ["fault.storage-gone"]; // the browser's own, of a database that is closed
  return "said" in fault ? /** @type {Fault} */ (fault).said : fault.message;
}
