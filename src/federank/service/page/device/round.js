/* One round on this device: computation, transmission and the ledger, with nothing written and nothing sent yet.

They are the protocol's own (protocol/), by the federation's method (methods/); the twin of this file is
service/device/round.py.
*/

/** @import { Device } from "./device.js" */
/** @import { Message } from "./methods/method.js" */
/** @import { Task } from "./federation.js" */
/** @import { LearntFrom } from "./store.js" */

/** What a round leaves: a message, and what it was learnt from.
 * @typedef {Message & { from: LearntFrom }} Played */

/** Play a task's round on the model at hand.
 * @type {(device: Device, task: Task) => Promise<Played>} */
export async function play(device, task) {
  const outward = await device.outward();
  const message = await device.method.message(device, task, await device.identity(), outward);
  return { ...message, from: device.learntFrom(outward.profile) };
}
