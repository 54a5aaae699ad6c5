/* Meeting a federation, joining it, finding it begun anew, and leaving it.

A federation says which one it is by a word that is another for every founding. Of one that was begun anew at the same address
the list, the choices and the ledger stay; what belonged to the old one (keys, vector, messages on their way) is dropped, and
nothing is sent until the owner takes part again.
*/

import { indexed } from "./catalogue.js";
import { Device, emptyModel, layOver, older, refuseAnother } from "./device.js";
import { fetchCatalogue, fetchFacts, fetchModel, register, shapeOf, unregister } from "./federation.js";
import { eraseEverything, openStore, read, readEverything, write } from "./store.js";

/** @import { Met, Model } from "./device.js" */
/** @import { Facts, Rows, Shape } from "./federation.js" */
/** @import { KeptModel } from "./store.js" */

/** @typedef {Rows & { founding: string | null }} Fetched */

const MOMENT = 1000; // ms in which a worker that lags behind the others has caught up

/** Somebody else's federation is at the address now, and has been met. */
export class BegunAnew extends Error {}

/** Open the database, ask the federation what it is, and bring the model up to date.
 * @type {() => Promise<Device>} */
export async function wake() {
  const opening = openStore();
  const met = await meet(opening);
  const device = new Device(await opening, met);
  await settle(device);
  return device;
}

/** Meet the federation that is at the address now, and see whether it is still the one that was joined.
 * @type {(device: Device) => Promise<void>} */
export async function meetAgain(device) {
  device.met = await meet(Promise.resolve(device.database));
  await settle(device);
}

/** What the federation is, its catalogue and its model.
 * @type {(opening: Promise<IDBDatabase>) => Promise<Met>} */
async function meet(opening) {
  // Everything is asked for at once; answers are checked against what the federation says it is when that has come.
  const asked = fetchFacts();
  const shaped = asked.then(shapeOf);
  const listed = fetchCatalogue(shaped);
  for (const early of [shaped, listed]) early.catch(() => {}); // awaited below, after what may fail before them
  /** @type {KeptModel | undefined} */
  const kept = await read(await opening, "model", "model");
  const changed = fetchModel(shaped, kept?.version ?? null);
  changed.catch(() => {});
  const [facts, shape] = await Promise.all([asked, shaped]);
  const mine = kept && isOf(facts, shape, kept) ? kept : null;
  const { model, complaint } = await upToDate(facts, shape, mine, kept && !mine ? fetchModel(shape) : changed);
  return { facts, shape, catalogue: indexed(await listed), model, complaint };
}

/** Whether the model that is kept belongs to this federation.
 * @type {(facts: Facts, shape: Shape, kept: KeptModel) => boolean} */
function isOf(facts, shape, kept) {
  const { founding, catalogue, vectors } = kept;
  const isSame = founding === facts.founding && catalogue === facts.catalogue;
  return isSame && vectors.length === shape.items * shape.factors;
}

/** The model that is kept, or an empty one, with the rows that have come laid over it. One that is older even after a
moment is not taken: the one at hand is used, and the person told.
 * @typedef {{ model: Model, complaint: string | null }} UpToDate
 * @type {(facts: Facts, shape: Shape, kept: KeptModel | null, changed: Promise<Fetched>) => Promise<UpToDate>} */
async function upToDate(facts, shape, kept, changed) {
  const have = kept?.version ?? null;
  let rows = await changed;
  if (have !== null && rows.version < have) {
    await new Promise((resolve) => {
      setTimeout(resolve, MOMENT);
    });
    rows = await fetchModel(shape, have);
  }
  refuseAnother(facts, rows);
  const model = kept ? { ...emptyModel(shape), ...kept } : emptyModel(shape);
  if (have !== null && rows.version < have) return { model, complaint: older(rows.version, have) };
  layOver(model, shape, rows);
  return { model, complaint: null };
}

/** Take the federation that was met for what it is: the one that was joined, or another.
 * @type {(device: Device) => Promise<void>} */
async function settle(device) {
  device.keepModel(); // while the page is already in use
  const joined = await read(device.database, "facts", "founding");
  if (joined !== undefined && joined !== device.facts.founding) await partFromTheOldOne(device.database);
  await device.reload();
}

/** The federation that was joined is no more: its keys, its vector and what was on its way to it are dropped.
 * @type {(database: IDBDatabase) => Promise<void>} */
async function partFromTheOldOne(database) {
  const { identity, pending, rounds } = await readEverything(database);
  const waiting = new Set(pending.map(({ ticket }) => ticket));
  const ended = rounds
    .filter(({ ticket }) => waiting.has(ticket))
    .map((round) => [round.ticket, { ...round, outcome: "not used: the federation was begun anew" }]);
  const facts = {
    identity: identity && { ...identity, device: null, token: null },
    founding: undefined,
    vector: undefined,
    answered: undefined,
    taking: false,
    begunAnew: true,
  };
  const dropped = Object.fromEntries(pending.map(({ ticket }) => [ticket, undefined]));
  await write(database, { facts, pending: dropped, rounds: Object.fromEntries(ended) }, { choice: true });
}

/** The token of this device, which joins if it has none.
 * @type {(device: Device) => Promise<string>} */
export async function enrolled(device) {
  const identity = await device.identity();
  if (identity.token) return identity.token;
  const { founding } = await fetchFacts();
  if (founding !== device.facts.founding) {
    await meetAgain(device);
    throw new BegunAnew();
  }
  const { device: id, token } = await register();
  const joined = device.kept.joined ?? device.catalogue.digest;
  await write(
    device.database,
    { facts: { identity: { ...identity, device: id, token }, joined, founding } },
    { revision: device.kept.revision },
  );
  await device.reload();
  return token;
}

/** Forget everything, here and (if it can be reached) on the server; whether the server knows that this device is gone.
 * @type {(device: Device) => Promise<boolean>} */
export async function leave(device) {
  const { identity } = await readEverything(device.database);
  let isKnown = true;
  if (identity?.token)
    try {
      await unregister(identity.token);
    } catch {
      isKnown = false;
    }
  await eraseEverything(device.database);
  await device.reload();
  device.kept.identity = undefined;
  return isKnown;
}
