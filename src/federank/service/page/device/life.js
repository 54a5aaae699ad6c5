/* Rounds: how this device takes part while the page is open.

1. Send what is still on its way from before: the same bytes with the same ticket.
2. Wait for a task; fetch its Broadcast: the rows of the model that changed.
3. Compute on the outward profile, and let the owner's policy decide what goes into the Update.
4. Write the ledger, the moved vector and the Update's bytes in one transaction, before anything is sent. If the owner has
   made a choice since the round began, nothing is written and nothing is sent.
5. Send. Only a receipt or a definite refusal ends it; until then it is tried again, so sleep, a reload or a lost network
   cannot lose it, and cannot make a second Update out of it.
*/

import { BadAnswer, NoAnswer, Refused } from "./client.js";
import * as federation from "./federation.js";
import { compute } from "../protocol/pairs/computation.js";
import { record } from "../protocol/ledger.js";
import { BadMessage, checkRows, encodeUpdate } from "../protocol/messages.js";
import { share } from "../protocol/pairs/transmission.js";
import { BETWEEN_POLLS, FIRST_BACKOFF, LONGEST_BACKOFF, LONG_POLL, MOST_OLDER_OFFERS } from "./rules.js";
import { Outdated, StorageFull, write } from "./store.js";

class BegunAnew extends Error {}

/** Take part until told to stop. `say` gets a sentence for the person and a word for the state of things.

A pause (`signal`) lets a message that is being sent arrive; leaving (`leaving`) does not wait for it. */
export async function takePart(device, signal, leaving, say) {
  for (let failures = 0; !signal.aborted;) {
    try {
      await device.reload();
      if (!device.kept.taking) return say(device.notice ?? "Not taking part.", "resting");
      await holdBack(device, say);
      const hurdle = await hurdleOf(device);
      if (hurdle) return say(hurdle, "resting");
      const token = await enrolled(device);
      await sendPending(device, token, leaving, say);
      say("Waiting for the next round.", "waiting");
      const task = await federation.work(token, LONG_POLL, signal);
      if (task) await play(device, token, task, signal, leaving, say);
      await sleep(BETWEEN_POLLS, signal);
      failures = 0;
    } catch (fault) {
      if (signal.aborted) return undefined;
      if (fault instanceof Outdated || fault instanceof BegunAnew) continue;
      if (fault instanceof StorageFull) return say(fault.message, "stopped");
      const pause = await afterFault(device, fault, Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** failures++), say);
      await sleep(pause, signal);
    }
  }
  return undefined;
}

/** Why this device has nothing to take part with, as a sentence; null if it has. */
export async function hurdleOf(device) {
  const { pi, sharing } = device.policy;
  if (!device.history.length) return "Pick something you like first; there is nothing to learn from yet.";
  if (pi === 0) return "You share nothing, so nothing is sent. Recommendations go on working.";
  if (device.history.length === device.shape.items)
    return "You have the whole catalogue; there is nothing to compare with.";
  if (sharing === "deniable" && device.kept.joined && device.kept.joined !== device.catalogue.digest)
    return "The catalogue has changed, and deniable answers are tied to it. Leave and erase, then join again.";
  const { profile, allowed } = await device.outward();
  if (!allowed.includes(true)) {
    const never = new Set(device.policy.neverItems);
    if (sharing === "deniable")
      return "The draw that you made once for life leaves nothing to send. Recommendations go on working.";
    if (device.history.every((item) => never.has(item)))
      return "Everything you have is marked never to be shared, so nothing is sent.";
    return "As much as you allow has left already, so nothing more is sent. Recommendations go on working.";
  }
  return profile.length < device.shape.items
    ? null
    : "Your outward profile covers the whole catalogue; share less to take part.";
}

async function enrolled(device) {
  const identity = await device.identity();
  if (identity.token) return identity.token;
  if (await device.meetsAnother()) throw new BegunAnew();
  const { device: id, token } = await federation.enrol();
  const joined = device.kept.joined ?? device.catalogue.digest;
  await write(
    device.database,
    { facts: { identity: { ...identity, device: id, token }, joined, founding: device.told.founding } },
    { revision: device.kept.revision },
  );
  await device.reload();
  return token;
}

async function play(device, token, task, signal, leaving, say) {
  if (task.ticket === device.kept.answered) return undefined;
  device.olderInARow = task.version < device.model.version ? (device.olderInARow ?? 0) + 1 : 0;
  if (device.olderInARow && device.olderInARow < MOST_OLDER_OFFERS)
    return say("The server has offered a round that is over; asking again.", "waiting");
  say(`Round ${task.round}: learning on this device.`, "learning");
  try {
    device.take(await federation.broadcast(token, task, device.shape, device.model.version, signal));
  } catch (fault) {
    if (fault instanceof Refused && (fault.status === 410 || fault.status === 404))
      return say("That round ended before this device could begin.", "waiting");
    throw fault;
  }
  await device.keepModel();

  const { seed, user } = await device.identity();
  const revision = device.kept.revision;
  const outward = await device.outward();
  const from = device.learntFrom(outward.profile);
  const person = {
    seed,
    user,
    vector: await device.roundVector(outward.profile),
    pi: device.policy.pi,
    triples: device.recipe.triples,
    ...outward,
  };
  const gradients = compute(device.recipe, person, { ...device.model, roundNumber: task.round });
  const update = share(device.recipe, person, gradients);
  if (update.items.length > (task.most_rows ?? Infinity))
    throw new BadAnswer(`The server allows ${task.most_rows} rows, but its own recipe makes ${update.items.length}.`);

  checkRows(update, device.shape.items);
  if (!person.vector.every(Number.isFinite))
    throw new BadMessage("With this model the device's numbers run out of range; nothing was sent.");

  const body = encodeUpdate(update);
  const { items } = device.catalogue;
  const changed = [...record(device.entries, task.round, outward, update).values()];
  const sent = changed
    .filter(({ item }) => update.biases[update.items.indexOf(item)] > 0)
    .map(({ item }) => items[item].id);
  const at = Date.now();
  const entryOf = ({ item, ...entry }) => [items[item].id, { ...entry, id: items[item].id, title: items[item].title }];
  const story = {
    ticket: task.ticket,
    round: task.round,
    at,
    liked: sent,
    compared: update.items.length - sent.length,
    bytes: body.length,
    outcome: "on its way",
  };
  await write(
    device.database,
    {
      facts: { vector: { values: person.vector, ...from }, answered: task.ticket },
      ledger: Object.fromEntries(changed.map(entryOf)),
      rounds: { [task.ticket]: story },
      pending: { [task.ticket]: { ticket: task.ticket, liked: sent, from, body, at } },
    },
    { revision },
  );
  await device.reload();
  return sendPending(device, token, leaving, say);
}

/** Drop what is on its way if its owner no longer allows what is in it, or has taken back what it was computed from. */
async function holdBack(device, say) {
  const { pending, identity } = device.kept;
  const { profile, allowed } = await device.outward();
  const may = new Set(
    Array.from(profile)
      .filter((_, place) => allowed[place])
      .map((item) => device.catalogue.items[item].id),
  );
  for (const { ticket, liked, from } of pending)
    if (!device.stands(from, profile) || !liked.every((id) => may.has(id)))
      await settle(device, identity, ticket, "held back: you changed your mind before it was sent", say);
}

/** Send what is on its way, as long as its owner still allows it. */
async function sendPending(device, token, leaving, say) {
  await holdBack(device, say);
  const { pending, identity } = device.kept;
  for (const { ticket, body } of pending) {
    let outcome = "received";
    try {
      await federation.send(token, ticket, body, leaving);
    } catch (fault) {
      if (!(fault instanceof Refused) || fault.status === 401 || fault.status === 403) throw fault;
      outcome = `not used: ${fault.message}`;
    }
    await settle(device, identity, ticket, outcome, say);
  }
}

/** Write down what became of a message: it is no longer on its way. */
async function settle(device, identity, ticket, outcome, say) {
  const story = device.kept.rounds.find((round) => round.ticket === ticket);
  await write(
    device.database,
    { pending: { [ticket]: undefined }, ...(story && { rounds: { [ticket]: { ...story, outcome } } }) },
    { device: identity.device },
  );
  await device.reload();
  say(
    outcome === "received" ? "The server has received this round's message." : `The last message was ${outcome}.`,
    "sent",
  );
}

/** Say what went wrong; how many seconds to wait before the next try. */
async function afterFault(device, fault, pause, say) {
  if (fault instanceof Refused && (fault.status === 401 || fault.status === 403)) {
    const identity = { ...device.kept.identity, device: null, token: null };
    const pending = Object.fromEntries(device.kept.pending.map(({ ticket }) => [ticket, undefined]));
    const rounds = device.kept.rounds
      .filter(({ ticket }) => ticket in pending)
      .map((story) => [story.ticket, { ...story, outcome: "not used: the server no longer knew this device" }]);
    await write(
      device.database,
      { facts: { identity }, pending, rounds: Object.fromEntries(rounds) },
      { device: device.kept.identity.device },
    );
    say("The server no longer knows this device; joining again.", "trouble");
    return pause;
  }
  if (fault instanceof NoAnswer) say(`${fault.message} Nothing is lost; trying again.`, "trouble");
  else if (fault instanceof Refused || fault instanceof BadAnswer || fault instanceof BadMessage)
    say(fault.message, "trouble");
  else throw fault;
  // Jitter, so that devices that failed together do not come back together.
  return Math.max(fault.retryAfter ?? 0, pause * (0.5 + 0.5 * Math.random()));
}

function sleep(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
