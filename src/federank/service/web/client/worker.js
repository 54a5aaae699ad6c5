/* The worker: the device's own thread. The page asks and is informed; learning, storage and the network are all here.

A question is {id, call, given}, its answer {id, answer} or {id, fault}. What changes by itself (a round, another tab) is sent
unasked, as {event, ...}. Of several tabs, the one that holds the lock takes part; the others watch, and one takes over when
it goes.
*/

import { backup, isBackup, restored } from "./backup.js";
import { find, matched } from "./catalogue.js";
import { leave, meetAgain, wake } from "./enrolment.js";
import { fetchStatus, isHelperAway } from "./federation.js";
import { guesses } from "./guesses.js";
import { namesInFile, starsInFile, textOf } from "./history_file.js";
import { askOutcomes, isWaiting } from "./outcomes.js";
import { blockedBy, takePart } from "./participation.js";
import { seasonOf } from "./seasons.js";
import { shelves } from "./shelves.js";
import { noteShown, read, write } from "./store.js";
import { described, viewOf } from "./view.js";
import { Fault, saidOf } from "../faults.js";

const LOCK = "federank-rounds";
const others = new BroadcastChannel("federank");

/** @type {Client} */
let client;
/** @type {AbortController | null} */
let running = null;
let leaving = new AbortController();
let ended = Promise.resolve(); // settled when the rounds that ran last have come to their end
/** @type {Progress} */
let progress = { says: ["doing.away"], state: "resting" };

/** @type {(says: Said, state: string) => void} */
const say = (says, state) => {
  progress = { says, state };
  if (state === "sent") others.postMessage("changed");
  report();
};

/** @type {ReturnType<typeof setTimeout> | null} */
let reporting = null;
/** Report to the page how things stand; several changes at once are reported once. */
function report() {
  reporting ??= setTimeout(async () => {
    reporting = null;
    self.postMessage({ event: "view", view: await viewOf(client, progress) });
  });
}

function run() {
  if (running || !client.stored.taking) return;
  if (!navigator.locks) {
    say(["doing.insecure"], "stopped");
    return;
  }
  running = new AbortController();
  ended = playRounds(running, ended);
}

/** @type {(mine: AbortController, before: Promise<void>) => Promise<void>} */
async function playRounds(mine, before) {
  try {
    await before; // a message that was being sent when rounds were paused
    const { held } = await navigator.locks.query();
    if (held?.some(({ name }) => name === LOCK)) say(["doing.other-tab"], "other tab");
    await navigator.locks.request(LOCK, { signal: mine.signal }, () =>
      takePart(client, mine.signal, leaving.signal, say),
    );
  } catch (fault) {
    if (!mine.signal.aborted) say(["doing.stopped", { reason: saidOf(fault) }], "stopped");
  } finally {
    if (running === mine) running = null;
  }
}

/** @type {(says: Said) => void} */
function stop(says) {
  running?.abort();
  running = null;
  say(says, "resting");
}

/** Whether rounds can go on, or a message must be looked at first that is still on its way or whose round has not ended. */
async function canGoOn() {
  const { taking, pending, rounds } = client.stored;
  return taking && (pending.length > 0 || isWaiting(rounds) || !(await blockedBy(client)));
}

/** A choice of the owner: write it, look at the world again, and see whether rounds can go on.
 * @param {Changes} changes */
async function choose(changes) {
  // Who chooses has read the notice.
  const records = { ...changes.records, restarted: undefined, seasonBegun: undefined };
  await write(client.database, { ...changes, records }, { choice: true });
  if (!client.met.isAway) client.met.complaint = null;
  if (client.isErased) {
    client.isErased = false;
    await client.keepModel();
  }
  await client.reload();
  others.postMessage("changed");
  await goOn();
  return viewOf(client, progress);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let settling;
/** Go on with rounds if that is possible, and look again when what was just added may leave. */
async function goOn() {
  clearTimeout(settling);
  const next = Math.min(...client.stored.history.map((owned) => client.waitsUntil(owned)).filter(Boolean));
  if (Number.isFinite(next)) settling = setTimeout(() => goOn().then(report), next - Date.now() + 1);
  if (await canGoOn()) run();
}

/** The database is gone, as where a user clears what pages have stored: nothing can be written down, so nothing is sent. */
function storageGone() {
  client.met.complaint = ["fault.storage-gone"];
  client.stored.taking = false;
  stop(["fault.storage-gone"]);
}

/** @type {(ids: string[], more?: { how: string }) => Record<string, object>} */
const recordsOf = (ids, more) => {
  const { items, numberOf } = client.catalogue;
  const known = ids.flatMap((id) => numberOf.get(id) ?? []).map((number) => items[number]);
  return Object.fromEntries(known.map(({ id, title }) => [id, { id, title, at: Date.now(), ...more }]));
};

/** @type {(ids: string[]) => Record<string, undefined>} */
const nothing = (ids) => Object.fromEntries(ids.map((id) => [id, undefined]));

/** A backup is JSON; what only begins like it is read as a list of names.
 * @type {(text: string) => any} */
const jsonIn = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** An item as the page shows it, with what its visitor would give it where items are rated and it is not theirs.
 * @param {number} number */
const withPrediction = async (number) => {
  const item = described(client, number);
  return { ...item, predicted: item.has ? null : await client.predicted(number) };
};

/** Ask what became of the last message of a device that takes no part now; one that does asks by itself (participation.js). */
async function askWhileResting() {
  const { identity, rounds } = client.stored;
  if (running || !identity?.token || !isWaiting(rounds)) return;
  try {
    await askOutcomes(client, identity.token, leaving.signal, () => {});
    report();
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault; // whatever it is, taking part meets it too
  }
}

/** @typedef {typeof calls} Calls */

const calls = {
  async wake() {
    client = await wake();
    client.database.addEventListener("close", storageGone);
    if (client.stored.taking) run();
    await goOn();
    return viewOf(client, progress);
  },
  /** Up to `most` items from a place on, best match first.
   * @param {Query & { from?: number, most: number }} given */
  async find({ from = 0, most, ...query }) {
    const { numbers, nearest } = find(client.catalogue, query, client.method.popularity(client.model));
    const items = numbers.slice(from, from + most);
    return { total: numbers.length, nearest, items: await Promise.all(items.map((number) => withPrediction(number))) };
  },
  async recommend() {
    const { shelves: rows, reasons } = await shelves(client);
    /** @type {(number: number) => Promise<ShownItem & { reason: ShownItem | null }>} */
    const shown = async (number) => {
      const own = reasons.get(number);
      return { ...(await withPrediction(number)), reason: own === undefined ? null : described(client, own) };
    };
    return Promise.all(
      rows.map(async ({ kind, own, items }) => ({
        kind,
        own: own === undefined ? null : described(client, own),
        items: await Promise.all(items.map(shown)),
      })),
    );
  },
  /** What a file of the user's holds: a backup, or names with or without ratings.
   * @param {{ file: File }} given */
  async readFile({ file }) {
    const text = await textOf(file);
    if (text.startsWith("{") && isBackup(jsonIn(text)))
      return { backup: restored(client, jsonIn(text)).count, items: [], unmatched: [], rated: true, named: 0, left: 0 };
    const { scale } = client.method;
    const { stars, unrated } = scale ? starsInFile(text, scale) : { stars: null, unrated: 0 };
    const { names, low, rated } = stars
      ? { names: stars.map(([name]) => name), low: unrated, rated: true }
      : namesInFile(text);
    const { numbers, unmatched, meant } = matched(client.catalogue, names);
    const given = new Map(stars);
    const items = numbers
      .map((number) => ({ ...described(client, number), name: meant.get(number) ?? "" }))
      .map((item) => ({ ...item, given: given.get(item.name) ?? null }));
    return { backup: null, items, unmatched: unmatched.slice(0, 200), rated, named: names.length, left: low };
  },
  /** @param {{ file: File }} given */
  async restore({ file }) {
    return choose(restored(client, JSON.parse(await textOf(file))).changes);
  },
  backup: async () => JSON.stringify(backup(client), null, 1),
  /** @param {{ ids: string[], how: string }} given */
  add: ({ ids, how }) => choose({ history: recordsOf(ids, { how }), dismissed: nothing(ids) }),
  /** The same with stars, as a file gave them.
   * @param {{ ratings: { id: string, rating: number }[], how: string }} given */
  addRated({ ratings, how }) {
    const ids = ratings.map(({ id }) => id);
    const records = recordsOf(ids, { how });
    const rated = ratings.map(({ id, rating }) => [id, { ...records[id], rating }]);
    return choose({ history: Object.fromEntries(rated), dismissed: nothing(ids) });
  },
  /** What waits has been shown to its owner: from now on it waits no longer than half a minute.
   * @param {{ ids: string[] }} given */
  async shown({ ids }) {
    await noteShown(client.database, ids);
    await client.reload();
    await goOn(); // nothing to report: what is shown stays as it is
  },
  /** Give an item stars; null takes them back. What was rated before waits no longer than it did.
   * @param {{ id: string, rating: number | null, how: string }} given */
  rate({ id, rating, how }) {
    if (rating === null) return choose({ history: nothing([id]) });
    const before = client.stored.history.find((owned) => owned.id === id);
    const [record] = Object.values(recordsOf([id], { how }));
    const at = before ? { at: before.at, shown: before.shown, how: before.how } : {};
    return choose({ history: { [id]: { ...record, ...at, rating } }, dismissed: nothing([id]) });
  },
  /** @param {{ id: string }} given */
  remove: ({ id }) => choose({ history: nothing([id]) }),
  /** Turn items down, or say that they are known: nothing of it is ever sent.
   * @param {{ ids: string[], how: "seen" | "no" | "known" }} given */
  dismiss: ({ ids, how }) => choose({ dismissed: recordsOf(ids, { how }), history: nothing(ids) }),
  /** @param {{ id: string }} given */
  undismiss: ({ id }) => choose({ dismissed: nothing([id]) }),
  /** @param {{ id: string, on: boolean }} given */
  async later({ id, on }) {
    const rest = (client.stored.later ?? []).filter((other) => other !== id);
    return choose({ records: { later: on ? [...rest, id] : rest } });
  },
  /** Change what may leave. What leaves for the first time by it waits, as what is added does.
   * @param {{ change: Partial<Choice> }} given */
  async setPolicy({ change }) {
    const agreed = client.stored.taking ? { agreed: Date.now() } : {};
    return choose({ records: { policy: { ...client.choice, ...change }, ...agreed } });
  },
  /** Keep items here though they were about to leave.
   * @param {{ ids: string[] }} given */
  async keepHere({ ids }) {
    const { byHand = null, neverIds, ...choice } = client.choice;
    const change = byHand
      ? { byHand: byHand.filter((id) => !ids.includes(id)), neverIds }
      : { neverIds: [...new Set([...neverIds, ...ids])] };
    return choose({ records: { policy: { ...choice, ...change } } });
  },
  async takePart() {
    // The policy in force is written down as the owner's own: what a server suggests later changes nothing.
    const view = await choose({ records: { policy: client.choice, taking: true, agreed: Date.now() } });
    if (!running) progress = { says: (await blockedBy(client)) ?? progress.says, state: "resting" };
    return running ? view : viewOf(client, progress);
  },
  async pause() {
    const view = await choose({ records: { taking: false } });
    stop(["doing.paused"]);
    return { ...view, progress };
  },
  async leave() {
    stop(["doing.away"]);
    leaving.abort();
    await ended;
    leaving = new AbortController();
    const isKnown = await leave(client);
    others.postMessage("changed");
    return { isKnown, view: await viewOf(client, progress) };
  },
  guesses: async () => guesses(client),
  /** The message that was made last, as it is sent, and where it is split the items with its largest numbers before that.
   * @returns {Promise<{ at: number, body: Uint8Array<ArrayBuffer>, columns: number, covered: number,
   *   rows: { item: ShownItem, numbers: number[] }[] } | undefined>} */
  async lastMessage() {
    const message = await read(client.database, "last", "message");
    if (!message?.before) return message && { ...message, columns: 0, covered: 0, rows: [] };
    const { values, columns, items } = message.before;
    const rows = Array.from(items ?? client.catalogue.items.keys(), (item, row) => ({
      item: described(client, item),
      numbers: Array.from(values.subarray(row * columns, (row + 1) * columns)),
    }));
    rows.sort((one, other) => Math.hypot(...other.numbers) - Math.hypot(...one.numbers));
    const largest = rows.slice(0, 6).filter(({ numbers }) => numbers.some(Boolean));
    return { ...message, columns, covered: rows.length, rows: largest };
  },
  async status() {
    const status = await fetchStatus();
    const wasAway = client.helperAway;
    client.helperAway = isHelperAway(status);
    await askWhileResting();
    const isLater = (status.season ?? 1) > seasonOf(client.info);
    if (status.federation_id !== client.info.federation_id || client.met.isAway || isLater) {
      await meetAgain(client);
      if (!client.stored.taking && running) stop(client.notice ?? ["doing.away"]);
      else if (isLater) await goOn();
    } else if (status.version > (client.model.version ?? -1) && !running) await client.refreshModel();
    else if (wasAway === client.helperAway) return status;
    report();
    return status;
  },
};

others.onmessage = async () => {
  if (!client) return;
  await client.reload();
  if (!client.stored.taking && running) stop(["doing.paused"]);
  else await goOn();
  report();
};

/** @type {(message: MessageEvent<{ id: number, call: keyof Calls, given?: any }>) => Promise<void>} */
self.onmessage = async ({ data: { id, call, given } }) => {
  try {
    self.postMessage({ id, answer: await calls[call](given ?? {}) });
  } catch (fault) {
    self.postMessage({ id, fault: saidOf(fault) });
  }
};
