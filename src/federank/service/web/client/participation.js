/* One round on this client, and how it takes part round after round. Computation and transmission are the method's own (methods/). Where
only sums of messages are ever read, a message is split before it is written down. service/client/client.py has the same in Python.
*/

import { Restarted, enrolled, followTo } from "./enrolment.js";
import { fetchRows, isPlain, isSecure, sendUpdate, waitForWork } from "./federation.js";
import { BadAnswer, NoAnswer, Refused, sleep } from "./http.js";
import { askOutcomes, dropped, isWaiting, waitAfter } from "./outcomes.js";
import { BETWEEN_POLLS, FIRST_BACKOFF, LONGEST_BACKOFF, LONG_POLL, MOST_OLDER_OFFERS } from "../schemas.js";
import { isOver, seasonOf, untilOf } from "./seasons.js";
import { Outdated, StorageFull, write } from "./store.js";
import { BadMessage } from "../federation/wire.js";

/** Whether the server no longer knows this device; one that is banned (403) is known, and does not join again. */
const isUnknown = (/** @type {Refused} */ { status }) => status === 401;

/** What a round leaves: a message, its numbers before it is split (for its owner to look at), what it was learnt from, and where only sums are read the noise on the sum that it goes into,
the digest of the round config that it was made for, and its random id.
 * @typedef {Message & { from: LearntFrom, before?: Before, noise?: number, roundConfig?: string, id?: string }} Played */

/** Play a task's round on the model at hand, and split the message on the terms of the round config where there is one.
 * @type {(client: Client, task: Task, signal: AbortSignal) => Promise<Played>} */
export async function play(client, task, signal) {
  const { info, model, stored } = client;
  const sums = isSecure(info) ? await import("./secure.js") : null;
  const roundConfig = sums && stored.sums && (await sums.fetchRoundConfig(stored.sums, info, model, task, signal));
  const terms = roundConfig && stored.sums ? { config: stored.sums, roundConfig } : null;
  if (sums && terms)
    sums.refuseBeyondGuarantee(
      terms,
      client.seasonRounds.map(({ noise }) => noise ?? 0),
    );
  const sharedProfile = await client.sharedProfile();
  const request = sums && terms ? { ...task, counts: sums.asksForCounts(terms) } : task;
  const message = await client.method.clientUpdate(client, request, await client.identity(), sharedProfile);
  const from = client.learntFrom(sharedProfile.profile);
  if (!sums) return { ...message, from };
  if (!terms || !message.values) throw new BadAnswer(["detail.unsplit"]);
  const { body, before } = await sums.split(terms, model, sharedProfile.profile, message.values);
  const { noise } = terms.roundConfig;
  return { ...message, from, body, before, noise, roundConfig: await sums.roundConfigName(terms), id: sums.idOf(body) };
}

// How this device takes part while the page is open, round after round.

const MOST_KEPT = 2 ** 20; // numbers of a message before it is split, which are stored for its owner to look at

/** Gets what is to be said to the user, and a word for the state of things.
 * @typedef {(says: Said, state: string) => void} Say */

/** Take part until stopped.

A pause (`signal`) lets a message that is being sent arrive; leaving (`leaving`) does not wait for it.
 * @type {(client: Client, signal: AbortSignal, leaving: AbortSignal, say: Say) => Promise<void>} */
export async function takePart(client, signal, leaving, say) {
  for (let failures = 0, polls = 0; !signal.aborted;) {
    try {
      await client.reload();
      if (!client.stored.taking) return say(client.notice ?? ["doing.away"], "resting");
      await holdBack(client, say);
      if (client.stored.pending.length) await sendPending(client, await enrolled(client), leaving, say);
      if (client.stored.identity?.token) await askOutcomes(client, client.stored.identity.token, signal, say);
      if (client.stored.identity?.token && isWaiting(client.stored.rounds)) {
        say(["doing.received"], "waiting");
        await sleep(Math.min(BETWEEN_POLLS * 2 ** polls++, LONG_POLL), signal);
        failures = 0;
        continue;
      }
      polls = 0;
      const blocked = await blockedBy(client);
      if (blocked) return say(blocked, "resting");
      const wait = waitAfter(client.stored.rounds, Date.now(), client.period);
      if (wait > 0) {
        say(["doing.waiting"], "waiting");
        await sleep(Math.min(wait / 1000, LONG_POLL), signal);
        continue;
      }
      const token = await enrolled(client);
      say(["doing.waiting"], "waiting");
      const task = await waitForWork(token, LONG_POLL, signal);
      if (task) await takeTask(client, token, task, signal, leaving, say);
      await sleep(BETWEEN_POLLS, signal);
      failures = 0;
    } catch (fault) {
      if (signal.aborted) return undefined;
      if (fault instanceof Outdated || fault instanceof Restarted) continue;
      if (fault instanceof StorageFull) return say(fault.said, "stopped");
      if (fault instanceof Refused && fault.slug === "spent") return say(["doing.enough"], "resting");
      const backoff = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** failures++);
      await sleep(await afterFault(client, fault, backoff, say), signal);
    }
  }
  return undefined;
}

/** The reasons that no choice of the owner takes away: behind them nothing leaves any more.
 * @type {(blocked: Said | null) => boolean} */
export const isFinal = (blocked) =>
  Array.isArray(blocked) &&
  ["blocked.would-read", "blocked.unknown-kind", "blocked.spent", "blocked.changed"].includes(blocked[0]);

/** Why this device has nothing to take part with; null if it has.
 * @type {(client: Client) => Promise<Said | null>} */
export async function blockedBy(client) {
  const { pi, sharing, messages = null } = client.policy;
  // A message that the server could read must never go where it was guaranteed that it cannot.
  if (isPlain(client.info) && client.stored.sums) return ["blocked.would-read"];
  if (!isPlain(client.info) && !isSecure(client.info)) return ["blocked.unknown-kind"];
  if (isOver(untilOf(client.info))) return ["blocked.season-over", { until: untilOf(client.info) }];
  if (messages !== null && client.spent >= messages) {
    // Where no single server reads a message, one that is discarded with its round may turn out not to be charged.
    if (isSecure(client.info) && isWaiting(client.stored.rounds)) return ["blocked.last-waits"];
    return ["blocked.spent", { count: messages }];
  }
  if (!client.history.length) return [client.method.scale ? "blocked.unrated" : "blocked.empty"];
  if (pi === 0) return ["blocked.nothing"];
  const isAlone = client.method.scale !== undefined && isSecure(client.info); // compared with nothing, hidden among nothing
  if (client.history.length === client.shape.items && !isAlone)
    return [client.method.scale ? "blocked.all-rated" : "blocked.complete"];
  if (sharing === "randomized-response" && client.stored.joined && client.stored.joined !== client.catalogue.digest)
    return ["blocked.changed"];
  const { profile, allowed } = await client.sharedProfile();
  if (!allowed.includes(true)) {
    if ((await client.sharedProfile({ withWaiting: true })).allowed.includes(true)) return ["blocked.waits"];
    const never = new Set(client.policy.neverItems);
    if (sharing === "randomized-response") return ["blocked.draw"];
    if (client.history.every((item) => never.has(item))) return ["blocked.never"];
    return ["blocked.used-up"];
  }
  return isAlone || profile.length < client.shape.items ? null : ["blocked.covers"];
}

/** @type {(client: Client, token: string, task: Task, signal: AbortSignal, leaving: AbortSignal, say: Say) => Promise<void>} */
async function takeTask(client, token, task, signal, leaving, say) {
  if (task.ticket === client.stored.answered) return undefined;
  if ((task.season ?? 1) > seasonOf(client.info)) {
    say(["doing.working"], "learning");
    await followTo(client, task.season ?? 1);
    if (!client.stored.taking) return undefined; // its owner is asked first
  }
  const have = client.model.version;
  client.olderInARow = have !== null && task.version < have ? client.olderInARow + 1 : 0;
  if (client.olderInARow && client.olderInARow < MOST_OLDER_OFFERS) return say(["doing.waiting"], "waiting");
  say(["doing.working"], "learning");
  try {
    await client.take(await fetchRows(token, task, client.shape, have, signal));
  } catch (fault) {
    if (!(fault instanceof Refused) || (fault.status !== 410 && fault.status !== 404)) throw fault;
    return say(["doing.waiting"], "waiting");
  }
  const { revision } = client.stored;
  await keep(client, task, await play(client, task, signal), revision);
  return sendPending(client, token, leaving, say);
}

/** Keep all that a round leaves, unless the owner has made a choice since it began.
 * @type {(client: Client, task: Task, played: Played, revision: number) => Promise<void>} */
async function keep(client, { ticket, round }, played, revision) {
  const { body, before, compared, liked, vector, from, changed, noise, pairs, roundConfig, id } = played;
  const { items } = client.catalogue;
  const at = Date.now();
  const ids = liked.map((item) => items[item].id);
  /** @type {(entry: Entry) => [string, object]} */
  const entryOf = ({ item, ...entry }) => [items[item].id, { ...entry, id: items[item].id, title: items[item].title }];
  const stored = {
    ticket,
    round,
    at,
    liked: ids,
    compared,
    bytes: body.length,
    outcome: "on its way",
    season: seasonOf(client.info),
    ...(client.method.messages === null ? {} : { number: client.spent + 1, of: client.policy.messages }),
    ...(noise ? { noise } : {}),
    ...(roundConfig ? { roundConfig, id } : {}),
  };
  const changes = {
    records: { vector: { values: vector, ...from }, answered: ticket },
    ledger: Object.fromEntries(changed.map(entryOf)),
    rounds: { [ticket]: stored },
    pending: { [ticket]: { ticket, liked: ids, from, body, at, pairs } },
    last: { message: { round, at, body, before: before && before.values.length <= MOST_KEPT ? before : null } },
  };
  await write(client.database, changes, { revision });
  await client.reload();
}

/** Drop what is on its way if its owner no longer allows what is in it, or so much of it, or has taken back what it was computed from.
 * @type {(client: Client, say: Say) => Promise<void>} */
async function holdBack(client, say) {
  const { pending, identity } = client.stored;
  const { profile, allowed } = await client.sharedProfile();
  const { items } = client.catalogue;
  const may = new Set([...profile].flatMap((item, index) => (allowed[index] ? items[item].id : [])));
  const most = client.method.pairs?.(client.policy) ?? Infinity;
  for (const { ticket, liked, from, pairs = 0 } of pending)
    if (!client.stands(from, profile) || !liked.every((id) => may.has(id)) || pairs > most)
      await finish(client, identity, ticket, { outcome: "held back" }, say);
}

/** @type {(client: Client, token: string, leaving: AbortSignal, say: Say) => Promise<void>} */
async function sendPending(client, token, leaving, say) {
  await holdBack(client, say);
  const { pending, identity } = client.stored;
  for (const { ticket, body } of pending) {
    /** @type {Became} */
    let became = { outcome: "received" };
    try {
      await sendUpdate(token, ticket, body, leaving);
    } catch (fault) {
      if (!(fault instanceof Refused) || isUnknown(fault)) throw fault;
      // The helper's record will show whether a sum has it (outcomes.js).
      const isLate = fault.slug === "late" && isSecure(client.info);
      if (!isLate) became = { outcome: "not used", why: fault.said };
    }
    await finish(client, identity, ticket, became, say);
  }
}

/** What became of a message, and why where it was not used.
 * @typedef {Pick<StoredRound, "outcome" | "why">} Became */

/** Write down what became of a message: it is no longer on its way. Nothing is written once the device has left.
 * @type {(client: Client, identity: Identity | undefined, ticket: string, became: Became, say: Say) => Promise<void>} */
async function finish(client, identity, ticket, became, say) {
  const round = client.stored.rounds.find((stored) => stored.ticket === ticket);
  const rounds = round && { [ticket]: { ...round, ...became } };
  const changes = { pending: { [ticket]: undefined }, ...(rounds && { rounds }) };
  await write(client.database, changes, { device: identity?.device });
  await client.reload();
  return say([became.outcome === "received" ? "doing.received" : "doing.waiting"], "sent");
}

/** Say what went wrong; how many seconds to wait before the next try.
 * @type {(client: Client, fault: unknown, backoff: number, say: Say) => Promise<number>} */
async function afterFault(client, fault, backoff, say) {
  if (fault instanceof Refused && isUnknown(fault)) {
    await forgetToken(client);
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
 * @type {(client: Client) => Promise<void>} */
async function forgetToken(client) {
  const { identity } = client.stored;
  const records = { identity: { ...identity, device: null, token: null } };
  const changes = { records, ...dropped(client.stored, ["detail.unknown-client"]) };
  await write(client.database, changes, { device: identity?.device });
}
