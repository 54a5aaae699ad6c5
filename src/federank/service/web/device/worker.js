/* The worker: the device's own thread. The page asks and is told; learning, storage and the network are all here.

A question is {id, call, given}, its answer {id, answer} or {id, fault}. What changes by itself (a round, another tab) is told
unasked, as {event, ...}. Of several tabs, the one that holds the lock takes part; the others watch, and one takes over when
it goes.
*/

import { Fault, saidOf } from "../faults.js";
import { find, matched } from "./catalogue.js";
import { leave, meetAgain, wake } from "./enrolment.js";
import { hurdleOf, takePart } from "./life.js";
import { askOutcomes, isWaiting } from "./outcomes.js";
import { guesses } from "./owner/guesses.js";
import { backup, isBackup, restored } from "./owner/backup.js";
import { namesInFile, starsInFile, textOf } from "./owner/history.js";
import { shelves } from "./owner/shelves.js";
import { fetchStatus, isHelperAway } from "./requests/federation.js";
import { noteShown, read, write } from "./store.js";
import { described, viewOf } from "./view.js";

/** @import { Said } from "../faults.js" */
/** @import { Device } from "./device.js" */
/** @import { Changes, Choice } from "./store.js" */
/** @import { Progress, ShownItem } from "./view.js" */

const LOCK = "federank-rounds";
const others = new BroadcastChannel("federank");

/** @type {Device} */
let device;
/** While rounds run, what ends them.
 * @type {AbortController | null} */
let running = null;
let leaving = new AbortController();
let ended = Promise.resolve(); // settled when the rounds that ran last have come to their end
/** @type {Progress} */
let progress = { says: ["doing.away"], state: "resting" };

/** @type {(says: Said, state: string) => void} */
const say = (says, state) => {
  progress = { says, state };
  if (state === "sent") others.postMessage("changed");
  tell();
};

/** @type {ReturnType<typeof setTimeout> | null} */
let telling = null;
/** Tell the page how things stand; several changes at once are told once. */
function tell() {
  telling ??= setTimeout(async () => {
    telling = null;
    self.postMessage({ event: "view", view: await viewOf(device, progress) });
  });
}

function run() {
  if (running || !device.kept.taking) return;
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
      takePart(device, mine.signal, leaving.signal, say),
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
  const { taking, pending, rounds } = device.kept;
  return taking && (pending.length > 0 || isWaiting(rounds) || !(await hurdleOf(device)));
}

/** A choice of the owner: write it, look at the world again, and see whether rounds can go on.
 * @param {Changes} changes */
async function choose(changes) {
  // Who chooses has read what there was to be told.
  await write(device.database, { ...changes, facts: { ...changes.facts, begunAnew: undefined } }, { choice: true });
  if (!device.met.isAway) device.met.complaint = null;
  if (device.isErased) {
    device.isErased = false;
    await device.keepModel();
  }
  await device.reload();
  others.postMessage("changed");
  await goOn();
  return viewOf(device, progress);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let settling;
/** Go on with rounds if that is possible, and look again when what was just added may leave. */
async function goOn() {
  clearTimeout(settling);
  const next = Math.min(...device.kept.history.map((owned) => device.waitsUntil(owned)).filter(Boolean));
  if (Number.isFinite(next)) settling = setTimeout(() => goOn().then(tell), next - Date.now() + 1);
  if (await canGoOn()) run();
}

/** The database is gone, as where somebody clears what pages have stored: nothing can be written down, so nothing is sent. */
function storageGone() {
  device.met.complaint = ["fault.storage-gone"];
  device.kept.taking = false;
  stop(["fault.storage-gone"]);
}

/** Records of items by their ids; ids that the catalogue does not have are left out.
 * @type {(ids: string[], more?: { how: string }) => Record<string, object>} */
const recordsOf = (ids, more) => {
  const { items, numberOf } = device.catalogue;
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
  const item = described(device, number);
  return { ...item, predicted: item.has ? null : await device.predicted(number) };
};

/** Ask what became of the last message of a device that takes no part now; one that does asks by itself (life.js). */
async function askWhileResting() {
  const { identity, rounds } = device.kept;
  if (running || !identity?.token || !isWaiting(rounds)) return;
  try {
    await askOutcomes(device, identity.token, leaving.signal, () => {});
    tell();
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault; // whatever it is, taking part meets it too
  }
}

/** @typedef {typeof calls} Calls */

const calls = {
  async wake() {
    device = await wake();
    device.database.addEventListener("close", storageGone);
    if (device.kept.taking) run();
    await goOn();
    return viewOf(device, progress);
  },
  /** Up to `most` items from a place on, best match first.
   * @param {{ text: string, category?: string, decade?: number, from?: number, most: number }} given */
  async find({ from = 0, most, ...query }) {
    const { numbers, nearest } = find(device.catalogue, query, device.method.popularity(device.model));
    const items = numbers.slice(from, from + most);
    return { total: numbers.length, nearest, items: await Promise.all(items.map((number) => withPrediction(number))) };
  },
  async recommend() {
    const { shelves: rows, reasons } = await shelves(device);
    /** @type {(number: number) => Promise<ShownItem & { reason: ShownItem | null }>} */
    const shown = async (number) => {
      const own = reasons.get(number);
      return { ...(await withPrediction(number)), reason: own === undefined ? null : described(device, own) };
    };
    return Promise.all(
      rows.map(async ({ kind, own, items }) => ({
        kind,
        own: own === undefined ? null : described(device, own),
        items: await Promise.all(items.map(shown)),
      })),
    );
  },
  /** What a file of the user's holds: a backup, or names with or without ratings.
   * @param {{ file: File }} given */
  async readFile({ file }) {
    const text = await textOf(file);
    if (text.startsWith("{") && isBackup(jsonIn(text)))
      return { backup: restored(device, jsonIn(text)).count, items: [], unmatched: [], rated: true, named: 0, left: 0 };
    const { scale } = device.method;
    const { stars, unrated } = scale ? starsInFile(text, scale) : { stars: null, unrated: 0 };
    const { names, low, rated } = stars
      ? { names: stars.map(([name]) => name), low: unrated, rated: true }
      : namesInFile(text);
    const { numbers, unmatched, meant } = matched(device.catalogue, names);
    const given = new Map(stars);
    const items = numbers
      .map((number) => ({ ...described(device, number), name: meant.get(number) ?? "" }))
      .map((item) => ({ ...item, given: given.get(item.name) ?? null }));
    return { backup: null, items, unmatched: unmatched.slice(0, 200), rated, named: names.length, left: low };
  },
  /** @param {{ file: File }} given */
  async restore({ file }) {
    return choose(restored(device, JSON.parse(await textOf(file))).changes);
  },
  backup: async () => JSON.stringify(backup(device), null, 1),
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
    await noteShown(device.database, ids);
    await device.reload();
    await goOn(); // nothing to tell: what is shown stays as it is
  },
  /** Give an item stars; null takes them back. What was rated before waits no longer than it did.
   * @param {{ id: string, rating: number | null, how: string }} given */
  rate({ id, rating, how }) {
    if (rating === null) return choose({ history: nothing([id]) });
    const before = device.kept.history.find((owned) => owned.id === id);
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
    const rest = (device.kept.later ?? []).filter((other) => other !== id);
    return choose({ facts: { later: on ? [...rest, id] : rest } });
  },
  /** Change what may leave. What leaves for the first time by it waits, as what is added does.
   * @param {{ change: Partial<Choice> }} given */
  async setPolicy({ change }) {
    const agreed = device.kept.taking ? { agreed: Date.now() } : {};
    return choose({ facts: { policy: { ...device.choice, ...change }, ...agreed } });
  },
  /** Keep items here though they were about to leave.
   * @param {{ ids: string[] }} given */
  async keepHere({ ids }) {
    const { byHand = null, neverIds, ...choice } = device.choice;
    const change = byHand
      ? { byHand: byHand.filter((id) => !ids.includes(id)), neverIds }
      : { neverIds: [...new Set([...neverIds, ...ids])] };
    return choose({ facts: { policy: { ...choice, ...change } } });
  },
  async takePart() {
    // The policy in force is written down as the owner's own: what a server suggests later changes nothing.
    const view = await choose({ facts: { policy: device.choice, taking: true, agreed: Date.now() } });
    if (!running) progress = { says: (await hurdleOf(device)) ?? progress.says, state: "resting" };
    return running ? view : viewOf(device, progress);
  },
  async pause() {
    const view = await choose({ facts: { taking: false } });
    stop(["doing.paused"]);
    return { ...view, progress };
  },
  async leave() {
    stop(["doing.away"]);
    leaving.abort();
    await ended;
    leaving = new AbortController();
    const isKnown = await leave(device);
    others.postMessage("changed");
    return { isKnown, view: await viewOf(device, progress) };
  },
  guesses: async () => guesses(device),
  /** The message that was made last, as it is sent.
   * @returns {Promise<{ round: number, at: number, body: Uint8Array<ArrayBuffer>, before?: Float32Array | null,
   *   rows?: { title: string, numbers: number[] }[], columns?: number } | undefined>} */
  async lastMessage() {
    const message = await read(device.database, "last", "message");
    if (!message?.before) return message;
    const { items } = device.catalogue;
    const columns = message.before.length / items.length;
    const rows = items.map(({ title }, item) => ({
      title,
      numbers: Array.from(message.before.subarray(item * columns, (item + 1) * columns)),
    }));
    rows.sort((one, other) => Math.hypot(...other.numbers) - Math.hypot(...one.numbers));
    return { ...message, columns, rows: rows.slice(0, 6) };
  },
  async status() {
    const status = await fetchStatus();
    const wasAway = device.helperAway;
    device.helperAway = isHelperAway(status);
    await askWhileResting();
    const hasGrown = (status.items ?? 0) > device.shape.items && !running; // rounds that run follow by themselves
    if (status.founding !== device.facts.founding || device.met.isAway || hasGrown) await meetAgain(device);
    else if (status.version > (device.model.version ?? -1) && !running) await device.refreshModel();
    else if (wasAway === device.helperAway) return status;
    tell();
    return status;
  },
};

others.onmessage = async () => {
  if (!device) return;
  await device.reload();
  if (!device.kept.taking && running) stop(["doing.paused"]);
  else await goOn();
  tell();
};

/** @type {(message: MessageEvent<{ id: number, call: keyof Calls, given?: any }>) => Promise<void>} */
self.onmessage = async ({ data: { id, call, given } }) => {
  try {
    self.postMessage({ id, answer: await calls[call](given ?? {}) });
  } catch (fault) {
    self.postMessage({ id, fault: saidOf(fault) });
  }
};
