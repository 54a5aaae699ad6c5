/* One round on this device: computation, transmission and the ledger, with nothing written and nothing sent yet.

They are the protocol's own (protocol/); the twin of this file is service/device/round.py.
*/

import { record } from "../protocol/ledger.js";
import { checkRows, encodeUpdate } from "../protocol/messages.js";
import { compute } from "../protocol/pairs/computation.js";
import { share } from "../protocol/pairs/transmission.js";
import { BadMessage } from "../protocol/wire.js";
import { BadAnswer } from "./client.js";

/** @import { Entry } from "../protocol/ledger.js" */
/** @import { Device } from "./device.js" */
/** @import { Task } from "./federation.js" */
/** @import { LearntFrom } from "./store.js" */

/** What a round leaves: the Update's bytes, how many rows it has, which items it sends as liked, the moved vector and what
it was learnt from, and the ledger's lines that change.
 * @typedef {{ body: Uint8Array<ArrayBuffer>, rows: number, liked: number[], vector: Float32Array, from: LearntFrom,
 *   changed: Entry[] }} Played */

/** Play a task's round on the model at hand.
 * @type {(device: Device, task: Task) => Promise<Played>} */
export async function play(device, task) {
  const { recipe, model, shape } = device;
  const { seed, user } = await device.identity();
  const outward = await device.outward();
  const vector = await device.roundVector(outward.profile);
  const person = { seed, user, vector, pi: device.policy.pi, triples: recipe.triples, ...outward };
  const gradients = compute(recipe, person, { ...model, roundNumber: task.round });
  const update = share(recipe, person, gradients);
  const rows = update.items.length;
  if (rows > (task.most_rows ?? Infinity))
    throw new BadAnswer(`The server allows ${task.most_rows} rows, but its own recipe makes ${rows}.`);
  checkRows(update, shape.items);
  if (!person.vector.every(Number.isFinite))
    throw new BadMessage("With this model the device's numbers run out of range; nothing was sent.");
  return {
    body: encodeUpdate(update),
    rows,
    liked: Array.from(update.items.filter((_, index) => update.biases[index] > 0)),
    vector: person.vector,
    from: device.learntFrom(outward.profile),
    changed: [...record(device.entries, task.round, outward, update).values()],
  };
}
