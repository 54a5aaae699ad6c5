/* A method as a device sees it: what the rounds, the recommendations and the page ask of it, whatever is learnt.

    pairs     fpl: gradients of the items it shares and of others they are compared with, round after round
    squares   frugal: a vector solved for at home, and a handful of whole messages in a life
    ratings   pmf, svdpp: gradients of what was rated, and of items sampled among it with virtual ratings; or of every item, where
              no single server reads a message

A method is made from what `GET /federation` says of its recipe, once that is sure to be one.
*/

import { needed } from "../requests/answers.js";
import { pairs } from "./pairs.js";
import { pmf, svdpp } from "./ratings.js";
import { squares } from "./squares.js";

/** @import { Entry } from "../../protocol/ledger.js" */
/** @import { Pairs } from "../../protocol/pairs/computation.js" */
/** @import { Outward } from "../../protocol/policies/policy.js" */
/** @import { Device, Model } from "../device.js" */
/** @import { Rows, Task } from "../requests/federation.js" */
/** @import { Identity } from "../store.js" */

/** A message that may go out: its bytes, how many items it compares with, which it sends as liked, the vector it was made with,
the ledger's lines that change, all its numbers where only sums of messages are ever read, and how many pairs it was made from where
there are any.
 * @typedef {{ body: Uint8Array<ArrayBuffer>, compared: number, liked: number[], vector: Float32Array,
 *   changed: Entry[], values?: () => Float32Array, pairs?: number }} Message */

/** @typedef {object} Method
 * @property {number} factors
 * @property {number | null} messages how many a device sends in its life; null where nobody counts
 * @property {string[]} sharing the kinds of policies that it knows
 * @property {(buffer: ArrayBuffer, items: number) => Rows} decode
 * @property {(model: Model) => Float32Array} popularity which items are the better known ones
 * @property {Pairs} [pairs] where pairs are learnt from
 * @property {{ lowest: number, highest: number, step: number }} [scale] what ratings there are, where items are rated
 * @property {boolean} [namesRated] whether messages name what was rated, whatever hides it
 * @property {boolean} [hasImplicit] whether items have a second vector (SVD++)
 * @property {(identity: Identity, history: Int32Array, model: Model, stars: Float32Array) => Float32Array} home
 * @property {(device: Device, task: Task, identity: Identity, outward: Outward) => Promise<Message>} message */

/** @type {Record<string, (recipe: any, isSummed: boolean) => Method>} */
const METHOD_OF = { fpl: pairs, frugal: squares, pmf, svdpp };

/** A method by its name, with a federation's recipe, as it is played where no single server reads a message or where one does.
 * @type {(name: string, recipe: any, isSummed?: boolean) => Method} */
export function methodOf(name, recipe, isSummed = false) {
  needed(recipe !== null && typeof recipe === "object", "recipe");
  return METHOD_OF[name](recipe, isSummed);
}
