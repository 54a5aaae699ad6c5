/* A method as the client sees it, and the methods by their names. Only the federation's own is loaded.

    fpl           gradients of the items it shares and of others they are compared with, round after round
    frugal        a vector solved for at home, and a handful of messages per lifetime
    pmf           gradients of what was rated, and of items sampled among it with virtual ratings (FedRec)

A method is made from what `GET /federation` says of its recipe, once that is sure to be one. Its parts have Python's names: clientUpdate,
foldIn, scores.
*/

import { needed } from "../client/http.js";
import { SETTINGS } from "../schemas.js";

/** A message that may go out: its bytes, how many items it compares with, which it sends as liked, the vector it was made with,
the ledger's lines that change, all its numbers where only sums of messages are ever read, and how many pairs it was made from where
there are any.
 * @typedef {{ body: Uint8Array<ArrayBuffer>, compared: number, liked: number[], vector: Float32Array,
 *   changed: Entry[], values?: () => Float32Array, pairs?: number }} Message */

/** @typedef {object} Method
 * @property {number} factors
 * @property {number | null} messages uploads per client; null where they are not counted
 * @property {string[]} sharing the kinds of policies that it knows
 * @property {(buffer: ArrayBuffer, items: number) => Rows} decode
 * @property {(vector: Float32Array, model: Model) => Float32Array} scores
 * @property {(model: Model) => Float32Array} popularity which items are the better known ones
 * @property {(model: Model) => boolean} [hasLearnt] whether a version's numbers are more than drawn by chance; else any after the first
 * @property {(policy: Policy) => number} [pairs] how many pairs a message is made from, where there are any
 * @property {{ lowest: number, highest: number, step: number }} [scale] what ratings there are, where items are rated
 * @property {(identity: Identity, history: Int32Array, model: Model, stars: Float32Array) => Float32Array} foldIn
 * @property {(client: Client, task: Task, identity: Identity, sharedProfile: SharedProfile) => Promise<Message>} clientUpdate */

/** @type {Record<string, (recipe: any, isSecure: boolean) => Promise<Method>>} */
const LOADED = {
  fpl: async (recipe) => (await import("./fpl.js")).fpl(recipe),
  frugal: async (recipe) => (await import("./frugal.js")).frugal(recipe),
  pmf: async (recipe, isSecure) => (await import("./fedrec.js")).fedrec(recipe, isSecure),
};

/** What a setting may be: one of some words, or a number in a range; `above` and `below` are not reached; an open one may be null.
 * @typedef {{ choices?: string[], integer?: boolean, low?: number, high?: number, above?: number, below?: number, open?: boolean }} Setting */

/** Settings of methods by their names.
 * @typedef {Record<string, Record<string, Setting>>} Schemas */

/** @type {(value: any, setting: Setting) => boolean} */
function isSetting(value, { choices, integer, low = -Infinity, high = Infinity, above, below, open = false }) {
  if (value === null) return open;
  if (choices) return choices.includes(value);
  const isWithin = value >= low && value <= high && value > (above ?? -Infinity) && value < (below ?? Infinity);
  return Number.isFinite(value) && isWithin && (!integer || Number.isInteger(value));
}

/** @type {(name: string, recipe: any) => void} */
export function checkSettings(name, recipe) {
  for (const [setting, declared] of Object.entries(SETTINGS[name] ?? {}))
    needed(isSetting(recipe[setting], declared), `recipe (${setting})`);
}

/** A method by its name, with a federation's recipe, as it runs where no single server reads a message or where one does.
 * @type {(name: string, recipe: any, isSecure?: boolean) => Promise<Method>} */
export async function methodOf(name, recipe, isSecure = false) {
  needed(recipe !== null && typeof recipe === "object", "recipe");
  checkSettings(name, recipe);
  return LOADED[name](recipe, isSecure);
}
