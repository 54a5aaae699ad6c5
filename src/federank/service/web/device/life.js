/* How this device takes part while the page is open, round after round.

1. Send what is still on its way from before: the same bytes with the same ticket.
2. Wait for a task; fetch its Broadcast: the rows of the model that changed.
3. Play the round (round.js): compute on the outward profile, and let the owner's policy decide what goes into the Update.
4. Write the ledger, the moved vector and the Update's bytes in one transaction, before anything is sent. If the owner has
   made a choice since the round began, nothing is written and nothing is sent.
5. Send. Only a receipt or a definite refusal ends it; until then it is retried, with backoff, so sleep, a reload or a lost network
   cannot lose it, and cannot make a second Update out of it.
6. Ask until its round has ended: aggregated or discarded (outcomes.js). Only then may another Update leave, and after discarded rounds
   only after a wait, longer each time.
*/

import { ownTriples } from "../protocol/pairs/computation.js";
import { BadMessage } from "../protocol/wire.js";
import { BegunAnew, enrolled, followGrowth } from "./enrolment.js";
import { askOutcomes, ended, isWaiting, waitAfter } from "./outcomes.js";
import { BadAnswer, NoAnswer, Refused } from "./requests/client.js";
import { fetchRows, isPlain, isSummed, sendUpdate, waitForWork } from "./requests/federation.js";
import { play } from "./round.js";
import { BETWEEN_POLLS, FIRST_BACKOFF, LONGEST_BACKOFF, LONG_POLL, MOST_OLDER_OFFERS } from "./rules.js";
import { Outdated, StorageFull, write } from "./store.js";

/** @import { Said } from "../faults.js" */
/** @import { Entry } from "../protocol/ledger.js" */
/** @import { Device } from "./device.js" */
/** @import { Task } from "./requests/federation.js" */
/** @import { Played } from "./round.js" */
/** @import { Identity, KeptRound } from "./store.js" */

const MOST_KEPT = 2 ** 20; // numbers of a message before it is split, which are kept for its owner to look at

/** Gets what is to be said to the person, and a word for the state of things.
 * @typedef {(says: Said, state: string) => void} Say */

/** Take part until told to stop.

A pause (`signal`) lets a message that is being sent arrive; leaving (`leaving`) does not wait for it.
 * @type {(device: Device, signal: AbortSignal, leaving: AbortSignal, say: Say) => Promise<void>} */
export async function takePart(device, signal, leaving, say) {
  for (let failures = 0, polls = 0; !signal.aborted;) {
    try {
      await device.reload();
      if (!device.kept.taking) return say(device.notice ?? ["doing.away"], "resting");
      await holdBack(device, say);
      if (device.kept.pending.length) await sendPending(device, await enrolled(device), leaving, say);
      if (device.kept.identity?.token) await askOutcomes(device, device.kept.identity.token, signal, say);
      if (device.kept.identity?.token && isWaiting(device.kept.rounds)) {
        say(["doing.received"], "waiting");
        await sleep(Math.min(BETWEEN_POLLS * 2 ** polls++, LONG_POLL), signal);
        failures = 0;
        continue;
      }
      polls = 0;
      const hurdle = await hurdleOf(device);
      if (hurdle) return say(hurdle, "resting");
      const wait = waitAfter(device.kept.rounds, Date.now(), device.period);
      if (wait > 0) {
        say(["doing.waiting"], "waiting");
        await sleep(Math.min(wait / 1000, LONG_POLL), signal);
        continue;
      }
      const token = await enrolled(device);
      say(["doing.waiting"], "waiting");
      const task = await waitForWork(token, LONG_POLL, signal);
      if (task) await takeTask(device, token, task, signal, leaving, say);
      await sleep(BETWEEN_POLLS, signal);
      failures = 0;
    } catch (fault) {
      if (signal.aborted) return undefined;
      if (fault instanceof Outdated || fault instanceof BegunAnew) continue;
      if (fault instanceof StorageFull) return say(fault.said, "stopped");
      if (fault instanceof Refused && fault.slug === "spent") return say(["doing.enough"], "resting");
      const backoff = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** failures++);
      await sleep(await afterFault(device, fault, backoff, say), signal);
    }
  }
  return undefined;
}

/** The hurdles that no choice of the owner takes away: behind them nothing leaves any more.
 * @type {(hurdle: Said | null) => boolean} */
export const isFinal = (hurdle) =>
  Array.isArray(hurdle) &&
  ["hurdle.would-read", "hurdle.unknown-kind", "hurdle.spent", "hurdle.changed"].includes(hurdle[0]);

/** Why this device has nothing to take part with; null if it has.
 * @type {(device: Device) => Promise<Said | null>} */
export async function hurdleOf(device) {
  const { pi, sharing, messages = null } = device.policy;
  // A message that the server could read must never go where people were promised that it cannot.
  if (isPlain(device.facts) && device.kept.sums) return ["hurdle.would-read"];
  if (!isPlain(device.facts) && !isSummed(device.facts)) return ["hurdle.unknown-kind"];
  if (messages !== null && device.spent >= messages) {
    // Where no single server reads a message, one that is discarded with its round may turn out not to be charged.
    if (isSummed(device.facts) && isWaiting(device.kept.rounds)) return ["hurdle.last-waits"];
    return ["hurdle.spent", { count: messages }];
  }
  if (!device.history.length) return [device.method.scale ? "hurdle.unrated" : "hurdle.empty"];
  if (pi === 0) return ["hurdle.nothing"];
  const isAlone = device.method.scale !== undefined && isSummed(device.facts); // compared with nothing, hidden among nothing
  if (device.history.length === device.shape.items && !isAlone)
    return [device.method.scale ? "hurdle.all-rated" : "hurdle.whole"];
  if (sharing === "randomized-response" && device.kept.joined && device.kept.joined !== device.catalogue.digest)
    return ["hurdle.changed"];
  const { profile, allowed } = await device.outward();
  if (!allowed.includes(true)) {
    if ((await device.outward({ withWaiting: true })).allowed.includes(true)) return ["hurdle.waits"];
    const never = new Set(device.policy.neverItems);
    if (sharing === "randomized-response") return ["hurdle.draw"];
    if (device.history.every((item) => never.has(item))) return ["hurdle.never"];
    return ["hurdle.used-up"];
  }
  return isAlone || profile.length < device.shape.items ? null : ["hurdle.covers"];
}

/** @type {(device: Device, token: string, task: Task, signal: AbortSignal, leaving: AbortSignal, say: Say) => Promise<void>} */
async function takeTask(device, token, task, signal, leaving, say) {
  if (task.ticket === device.kept.answered) return undefined;
  if (task.items !== undefined && task.items > device.shape.items) {
    say(["doing.working"], "learning");
    await followGrowth(device, task.items);
  }
  const have = device.model.version;
  device.olderInARow = have !== null && task.version < have ? device.olderInARow + 1 : 0;
  if (device.olderInARow && device.olderInARow < MOST_OLDER_OFFERS) return say(["doing.waiting"], "waiting");
  say(["doing.working"], "learning");
  try {
    await device.take(await fetchRows(token, task, device.shape, have, signal));
  } catch (fault) {
    if (!(fault instanceof Refused) || (fault.status !== 410 && fault.status !== 404)) throw fault;
    return say(["doing.waiting"], "waiting");
  }
  const { revision } = device.kept;
  await keep(device, task, await play(device, task, signal), revision);
  return sendPending(device, token, leaving, say);
}

/** Keep all that a round leaves, unless the owner has made a choice since it began.
 * @type {(device: Device, task: Task, played: Played, revision: number) => Promise<void>} */
async function keep(device, { ticket, round }, played, revision) {
  const { body, before, compared, liked, vector, from, changed, noise, pairs, offer } = played;
  const { items } = device.catalogue;
  const at = Date.now();
  const ids = liked.map((item) => items[item].id);
  /** @type {(entry: Entry) => [string, object]} */
  const entryOf = ({ item, ...entry }) => [items[item].id, { ...entry, id: items[item].id, title: items[item].title }];
  const kept = {
    ticket,
    round,
    at,
    liked: ids,
    compared,
    bytes: body.length,
    outcome: "on its way",
    ...(device.method.messages === null ? {} : { number: device.spent + 1, of: device.policy.messages }),
    ...(noise ? { noise } : {}),
    ...(offer ? { offer } : {}),
  };
  const changes = {
    facts: { vector: { values: vector, ...from }, answered: ticket },
    ledger: Object.fromEntries(changed.map(entryOf)),
    rounds: { [ticket]: kept },
    pending: { [ticket]: { ticket, liked: ids, from, body, at, pairs } },
    last: { message: { round, at, body, before: before && before.length <= MOST_KEPT ? before : null } },
  };
  await write(device.database, changes, { revision });
  await device.reload();
}

/** Drop what is on its way if its owner no longer allows what is in it, or so much of it, or has taken back what it was computed from.
 * @type {(device: Device, say: Say) => Promise<void>} */
async function holdBack(device, say) {
  const { pending, identity } = device.kept;
  const { profile, allowed } = await device.outward();
  const { items } = device.catalogue;
  const may = new Set(
    Array.from(
      profile.filter((_, index) => allowed[index]),
      (item) => items[item].id,
    ),
  );
  const most = device.method.pairs ? ownTriples(device.method.pairs, device.policy.triples) : Infinity;
  for (const { ticket, liked, from, pairs = 0 } of pending)
    if (!device.stands(from, profile) || !liked.every((id) => may.has(id)) || pairs > most)
      await finish(device, identity, ticket, { outcome: "held back" }, say);
}

/** Send what is on its way, as long as its owner still allows it.
 * @type {(device: Device, token: string, leaving: AbortSignal, say: Say) => Promise<void>} */
async function sendPending(device, token, leaving, say) {
  await holdBack(device, say);
  const { pending, identity } = device.kept;
  for (const { ticket, body } of pending) {
    /** @type {Became} */
    let became = { outcome: "received" };
    try {
      await sendUpdate(token, ticket, body, leaving);
    } catch (fault) {
      if (!(fault instanceof Refused) || isUnknown(fault)) throw fault;
      became = { outcome: "not used", why: fault.said };
    }
    await finish(device, identity, ticket, became, say);
  }
}

/** What became of a message, and why where it was not used.
 * @typedef {Pick<KeptRound, "outcome" | "why">} Became */

/** Write down what became of a message: it is no longer on its way. Nothing is written once the device has left.
 * @type {(device: Device, identity: Identity | undefined, ticket: string, became: Became, say: Say) => Promise<void>} */
async function finish(device, identity, ticket, became, say) {
  const round = device.kept.rounds.find((kept) => kept.ticket === ticket);
  const rounds = round && { [ticket]: { ...round, ...became } };
  const changes = { pending: { [ticket]: undefined }, ...(rounds && { rounds }) };
  await write(device.database, changes, { device: identity?.device });
  await device.reload();
  return say([became.outcome === "received" ? "doing.received" : "doing.waiting"], "sent");
}

/** Whether the server no longer knows this device.
 * @type {(fault: Refused) => boolean} */
function isUnknown({ status }) {
  return status === 401; // a device that is banned (403) is known, and does not join again
}

/** Say what went wrong; how many seconds to wait before the next try.
 * @type {(device: Device, fault: unknown, backoff: number, say: Say) => Promise<number>} */
async function afterFault(device, fault, backoff, say) {
  if (fault instanceof Refused && isUnknown(fault)) {
    await forgetToken(device);
    say(["doing.waiting"], "trouble");
    return backoff;
  }
  if (fault instanceof NoAnswer) say(["doing.retrying", { reason: fault.said }], "trouble");
  else if (fault instanceof Refused || fault instanceof BadAnswer || fault instanceof BadMessage)
    say(fault.said, "trouble");
  else throw fault;
  const retryAfter = fault instanceof NoAnswer ? (fault.retryAfter ?? 0) : 0;
  // Jitter, so that devices that failed together do not come back together.
  return Math.max(retryAfter, backoff * (0.5 + 0.5 * Math.random()));
}

/** A token that the server refuses is dropped, and with it what was on its way under it.
 * @type {(device: Device) => Promise<void>} */
async function forgetToken(device) {
  const { identity, pending, rounds } = device.kept;
  const waiting = new Set(pending.map(({ ticket }) => ticket));
  const dropped = rounds
    .filter(({ ticket }) => waiting.has(ticket))
    .map((round) => [round.ticket, { ...round, outcome: "not used", why: ["detail.unknown-client"] }]);
  const changes = {
    facts: { identity: { ...identity, device: null, token: null } },
    pending: Object.fromEntries(pending.map(({ ticket }) => [ticket, undefined])),
    rounds: Object.fromEntries([...ended(rounds), ...dropped]),
  };
  await write(device.database, changes, { device: identity?.device });
}

/** @type {(seconds: number, signal: AbortSignal) => Promise<void>} */
function sleep(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
