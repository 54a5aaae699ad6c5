/* One round on this device: computation, transmission and the ledger, with nothing written and nothing sent yet. Where only sums of
messages are ever read, what may go out is split before it is written down.

They are the protocol's own (protocol/), by the federation's method (methods/); the twin of this file is
service/device/round.py.
*/

import { BadAnswer } from "./requests/client.js";
import { isSummed } from "./requests/federation.js";

/** @import { Device } from "./device.js" */
/** @import { Message } from "./methods/method.js" */
/** @import { Task } from "./requests/federation.js" */
/** @import { LearntFrom } from "./store.js" */

/** What a round leaves: a message, its numbers before it is split (for its owner to look at), what it was learnt from, and where only sums are read the noise on the sum that it goes into and
the digest of the offer that it was made for.
 * @typedef {Message & { from: LearntFrom, before?: Float32Array, noise?: number, offer?: string }} Played */

/** Play a task's round on the model at hand, and split the message on the terms of the round's offer where there is one.
 * @type {(device: Device, task: Task, signal: AbortSignal) => Promise<Played>} */
export async function play(device, task, signal) {
  const { facts, model, kept } = device;
  const sums = isSummed(facts) ? await import("./requests/sums.js") : null;
  const offer = sums && kept.sums && (await sums.fetchOffer(kept.sums, facts, model, task, signal));
  const terms = offer && kept.sums ? { charter: kept.sums, offer } : null;
  if (sums && terms)
    sums.refuseBeyondPromise(
      terms,
      kept.rounds.map(({ noise }) => noise ?? 0),
    );
  const outward = await device.outward();
  const message = await device.method.message(device, task, await device.identity(), outward);
  const from = device.learntFrom(outward.profile);
  if (!sums) return { ...message, from };
  if (!terms || !message.values) throw new BadAnswer(["detail.unsplit"]);
  const { body, before } = await sums.split(terms, model, outward.profile, message.values);
  return { ...message, from, body, before, noise: terms.offer.noise, offer: await sums.offerName(terms) };
}
