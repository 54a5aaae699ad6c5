/* The worker: the device's own thread. The page asks and is told; learning, storage and the network are all here.

A question is {id, call, given}, its answer {id, answer} or {id, fault}. What changes by itself (a round, another tab) is told
unasked, as {event, ...}. Of several tabs, the one that holds the lock takes part; the others watch, and one takes over when
it goes.
*/

import { find, matched } from "./catalogue.js";
import { Device } from "./device.js";
import * as federation from "./federation.js";
import { guesses } from "./guesses.js";
import { namesInFile } from "./history.js";
import { hurdleOf, takePart } from "./life.js";
import { write } from "./store.js";
import { described, viewOf } from "./view.js";

const LOCK = "federank-rounds";
const others = new BroadcastChannel("federank");

let device = null;
let running = null; // the AbortController of the rounds, while they run
let leaving = new AbortController();
let ended = Promise.resolve(); // settled when the rounds that ran last have come to their end
let progress = { says: "Not taking part.", state: "resting" };

const say = (says, state) => {
  progress = { says, state };
  if (state === "sent") others.postMessage("changed");
  tell();
};

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
    say("This browser lets a page take part only over https or on this very machine.", "stopped");
    return;
  }
  running = new AbortController();
  ended = playRounds(running, ended);
}

async function playRounds(mine, before) {
  try {
    await before; // a message that was being sent when rounds were paused
    const { held } = await navigator.locks.query();
    if (held.some(({ name }) => name === LOCK))
      say(
        "Another tab of this browser takes part. This one watches, and takes over when that one closes.",
        "other tab",
      );
    await navigator.locks.request(LOCK, { signal: mine.signal }, () =>
      takePart(device, mine.signal, leaving.signal, say),
    );
  } catch (fault) {
    if (!mine.signal.aborted) say(`Taking part has stopped: ${fault.message}`, "stopped");
  } finally {
    if (running === mine) running = null;
  }
}

function stop(says) {
  running?.abort();
  running = null;
  say(says, "resting");
}

/** Whether rounds can go on, or a message that is still on its way must be looked at first. */
async function canGoOn() {
  return device.kept.taking && (device.kept.pending.length > 0 || !(await hurdleOf(device)));
}

/** A choice of the owner: write it, look at the world again, and see whether rounds can go on. */
async function choose(changes) {
  // Who chooses has read what there was to be told.
  await write(device.database, { ...changes, facts: { ...changes.facts, begunAnew: undefined } }, { choice: true });
  device.complaint = null;
  await device.reload();
  others.postMessage("changed");
  if (await canGoOn()) run();
  return viewOf(device, progress);
}

const recordsOf = (ids, more) => {
  const known = ids.filter((id) => device.catalogue.numberOf.has(id));
  return Object.fromEntries(
    known.map((id) => [
      id,
      { id, title: device.catalogue.items[device.catalogue.numberOf.get(id)].title, at: Date.now(), ...more },
    ]),
  );
};
const nothing = (ids) => Object.fromEntries(ids.map((id) => [id, undefined]));

const calls = {
  async wake() {
    device = await Device.wake();
    if (device.kept.taking) run();
    return viewOf(device, progress);
  },
  async find({ text, category, most }) {
    const { total, numbers } = find(device.catalogue, text, category, most, device.model.biases);
    return { total, items: numbers.map((number) => described(device, number)) };
  },
  async recommend({ n }) {
    const numbers = await device.recommend(n);
    return numbers.map((number) => described(device, number));
  },
  async readFile({ file }) {
    const names = await namesInFile(file);
    const { numbers, unmatched } = matched(device.catalogue, names);
    return {
      named: names.length,
      items: numbers.map((number) => described(device, number)),
      unmatched: unmatched.slice(0, 200),
      unmatchedCount: unmatched.length,
    };
  },
  add: ({ ids, how }) => choose({ history: recordsOf(ids, { how }), dismissed: nothing(ids) }),
  remove: ({ id }) => choose({ history: nothing([id]) }),
  dismiss: ({ id }) => choose({ dismissed: recordsOf([id]) }),
  setPolicy: ({ change }) => choose({ facts: { policy: { ...device.choice, ...change } } }),
  async never({ id, category, on }) {
    const choice = device.choice;
    const [list, name] = id === undefined ? ["neverCategories", category] : ["neverIds", id];
    const rest = choice[list].filter((entry) => entry !== name);
    return choose({ facts: { policy: { ...choice, [list]: on ? [...rest, name] : rest } } });
  },
  async takePart() {
    // The policy in force is written down as the owner's own: what a server suggests later changes nothing.
    const view = await choose({ facts: { policy: device.choice, taking: true } });
    if (!running) progress = { says: (await hurdleOf(device)) ?? progress.says, state: "resting" };
    return running ? view : viewOf(device, progress);
  },
  async pause() {
    const view = await choose({ facts: { taking: false } });
    stop("Paused. Nothing is sent.");
    return { ...view, progress };
  },
  async leave() {
    stop("You have left.");
    leaving.abort();
    await ended;
    leaving = new AbortController();
    const { told } = await device.leave();
    others.postMessage("changed");
    return { told, view: await viewOf(device, progress) };
  },
  guesses: async () => guesses(device),
  async status() {
    const told = await federation.status();
    if (told.founding !== device.told.founding) await device.meet();
    else if (told.version > device.model.version && !running) await device.refreshModel();
    else return told;
    tell();
    return told;
  },
};

others.onmessage = async () => {
  if (!device) return;
  await device.reload();
  if (!device.kept.taking && running) stop("Paused. Nothing is sent.");
  else if (await canGoOn()) run();
  tell();
};

self.onmessage = async ({ data: { id, call, given } }) => {
  try {
    self.postMessage({ id, answer: await calls[call](given ?? {}) });
  } catch (fault) {
    self.postMessage({ id, fault: { message: fault.message } });
  }
};
