/* Meeting a federation, joining it, finding it begun again, and leaving it. Without a network it is met as it was last.

A federation says which one it is by its federation_id. Of one that was begun again at the same address
the list, the choices and the ledger stay; what belonged to the old one (keys, vector, messages on their way) is dropped, and
nothing is sent until the owner takes part again.
*/

import { indexed } from "./catalogue.js";
import { Client, emptyModel, layOver, older, refuseAnother } from "./client.js";
import { fetchCatalogue, fetchInfo, fetchModel, isSecure, register, shapeOf, unregister } from "./federation.js";
import { BadAnswer, NoAnswer, sleep } from "./http.js";
import { dropped } from "./outcomes.js";
import { MOST_OLDER_OFFERS } from "../schemas.js";
import { followSeason, hasNewSeason, seasonTerms, seasonOf } from "./seasons.js";
import { StorageFull, eraseEverything, openStore, read, readEverything, write } from "./store.js";
import { Fault } from "../faults.js";

/** @typedef {Rows & { federation_id: string | null }} Fetched */

/** @type {Said} */
const AWAY = ["notice.away"];
const MOMENT = 1; // s in which a worker that lags behind the others has caught up

/** What only federations of sums need, and so only they load. */
const sums = () => import("./secure.js");

/** @type {(items: Item[], first: Item[]) => boolean} */
const beginsWith = (items, first) => first.every(({ id }, number) => items[number]?.id === id);

/** Another federation is at the address now, and has been met. */
export class Restarted extends Fault {}

/** @type {() => Promise<Client>} */
export async function wake() {
  const opening = openStore();
  const met = await meet(opening).catch((fault) => {
    if (!(fault instanceof BadAnswer)) throw fault;
    return meet(opening); // one of its answers may be the browser's copy of an earlier federation; no second one is
  });
  const client = new Client(await opening, met);
  await settle(client);
  return client;
}

/** @type {(client: Client) => Promise<void>} */
export async function meetAgain(client) {
  client.met = await meet(Promise.resolve(client.database));
  await settle(client);
}

/** What the federation is, its catalogue and its model; as they were last where the server cannot be reached.
 * @type {(opening: Promise<IDBDatabase>) => Promise<Met>} */
async function meet(opening) {
  try {
    const met = await meetNow(opening);
    return { ...met, keeping: keepMet(await opening, met) }; // while the page is already in use
  } catch (fault) {
    const met = fault instanceof NoAnswer ? await metLast(await opening) : null;
    if (!met) throw fault;
    return met;
  }
}

/** The federation as this browser keeps it; null where it does not, or not all of it.
 * @type {(database: IDBDatabase) => Promise<Met | null>} */
async function metLast(database) {
  const [known, listed, stored] = await Promise.all(
    ["federation", "catalogue", "model"].map((key) => read(database, "model", key)),
  );
  if (!known || !listed || !stored) return null;
  const { info, config } = known;
  const shape = await shapeOf(info);
  if (!isOf(info, shape, stored) || listed.items.length !== shape.items) return null;
  const model = { ...emptyModel(shape), ...stored };
  return { info, shape, catalogue: indexed(listed), model, config, complaint: AWAY, isAway: true };
}

/** Keep what the federation is, if there is room; its catalogue only where it is another. Answers that were drawn per client lifetime are
tied to the items' numbers: they stand where the catalogue begins with the one that they were drawn for.
 * @type {(database: IDBDatabase, met: Met) => Promise<void>} */
async function keepMet(database, { info, config, catalogue: { digest, items } }) {
  try {
    const before = await read(database, "model", "catalogue");
    const isSame = before?.digest === digest && before.items.length === items.length;
    const listed = isSame ? {} : { catalogue: { digest, items } };
    const joined = await read(database, "records", "joined");
    const hasGrown =
      !isSame && before?.digest === joined && joined !== undefined && beginsWith(items, before?.items ?? []);
    const tied = hasGrown ? { joined: digest } : {};
    await write(database, { model: { federation: { info, config }, ...listed }, records: tied });
  } catch (fault) {
    if (!(fault instanceof StorageFull)) throw fault;
  }
}

/** Another season has begun: meet the federation as it is now. A worker of the server that does not know it yet is given a moment.
 * @type {(client: Client, season: number) => Promise<void>} */
export async function followTo(client, season) {
  for (let tries = 1; seasonOf(client.info) < season; tries++) {
    try {
      await meetAgain(client);
    } catch (fault) {
      if (!(fault instanceof BadAnswer) || tries >= MOST_OLDER_OFFERS) throw fault;
    }
    if (seasonOf(client.info) >= season) return;
    if (tries >= MOST_OLDER_OFFERS) throw new BadAnswer(["detail.season-late", { number: season }]);
    await sleep(MOMENT);
  }
}

/** @type {(opening: Promise<IDBDatabase>) => Promise<Met>} */
async function meetNow(opening) {
  // Everything is asked for at once; answers are checked against what the federation says it is when that has come.
  const informed = fetchInfo();
  const shaped = informed.then(shapeOf);
  const listed = fetchCatalogue(shaped);
  const agreed = informed.then(async (info) => (isSecure(info) ? (await sums()).fetchConfig(info) : null));
  for (const early of [shaped, listed, agreed]) early.catch(() => {}); // awaited below, after what may fail before them
  /** @type {StoredModel | undefined} */
  const stored = await read(await opening, "model", "model");
  const changed = fetchModel(shaped, stored?.version ?? null);
  changed.catch(() => {});
  const [info, shape] = await Promise.all([informed, shaped]);
  const mine = stored && isOf(info, shape, stored) ? stored : null;
  const { model, complaint } = await upToDate(info, shape, mine, stored && !mine ? fetchModel(shape) : changed);
  const [catalogue, config] = await Promise.all([listed, agreed]);
  if (config) await (await sums()).refuseAnotherList(config, catalogue.content);
  return { info, shape, catalogue: indexed(catalogue), model, config, complaint };
}

/** @type {(info: FederationInfo, shape: Shape, stored: StoredModel) => boolean} */
function isOf(info, shape, stored) {
  const { federation_id, catalogue, vectors } = stored;
  const isSame = federation_id === info.federation_id && catalogue === info.catalogue;
  return isSame && vectors.length === shape.items * shape.factors;
}

/** The model that is stored, or an empty one, with the rows that have come laid over it. One that is older even after a
moment is not taken: the one at hand is used, and the user informed.
 * @typedef {{ model: Model, complaint: Said | null }} UpToDate
 * @type {(info: FederationInfo, shape: Shape, stored: StoredModel | null, changed: Promise<Fetched>) => Promise<UpToDate>} */
async function upToDate(info, shape, stored, changed) {
  const have = stored?.version ?? null;
  let rows = await changed;
  if (have !== null && rows.version < have) {
    await sleep(MOMENT);
    rows = await fetchModel(shape, have);
  }
  refuseAnother(info, rows);
  const model = stored ? { ...emptyModel(shape), ...stored } : emptyModel(shape);
  if (have !== null && rows.version < have) return { model, complaint: older(rows.version, have) };
  layOver(model, shape, rows);
  return { model, complaint: null };
}

/** @type {(client: Client) => Promise<void>} */
async function settle(client) {
  client.keepModel(); // while the page is already in use
  const joined = await read(client.database, "records", "federation_id");
  if (joined !== undefined && joined !== client.info.federation_id) await partFromTheOldOne(client.database);
  if (joined === client.info.federation_id) await client.met.keeping; // what was drawn per client lifetime may have to be tied again
  await client.reload();
  if (hasNewSeason(client)) {
    await followSeason(client);
    await client.reload();
  }
}

/** The federation that was joined is no more: its keys, its vector and what was on its way to it are dropped.
 * @type {(database: IDBDatabase) => Promise<void>} */
async function partFromTheOldOne(database) {
  const stored = await readEverything(database);
  const records = {
    identity: stored.identity && { ...stored.identity, device: null, token: null },
    federation_id: undefined,
    vector: undefined,
    answered: undefined,
    taking: false,
    restarted: true,
  };
  await write(database, { records, ...dropped(stored, ["detail.restarted"]) }, { choice: true });
}

/** @type {(client: Client) => Promise<string>} */
export async function enrolled(client) {
  const identity = await client.identity();
  if (identity.token) return identity.token;
  const { federation_id } = await fetchInfo();
  if (federation_id !== client.info.federation_id) {
    await meetAgain(client);
    throw new Restarted(["notice.restarted"]);
  }
  // The helper is asked who it is before this client registers.
  const { config } = client.met;
  const pinned = config && (await (await sums()).pinned(config, client.stored.sums));
  const { device: id, token } = await register();
  const joined = client.stored.joined ?? client.catalogue.digest;
  const seasons = client.stored.seasons ?? [seasonTerms(client, config)];
  const records = { identity: { ...identity, device: id, token }, joined, federation_id, seasons };
  const changes = { records: pinned ? { ...records, sums: pinned } : records };
  await write(client.database, changes, { revision: client.stored.revision });
  await client.reload();
  return token;
}

/** Forget everything, here and (if it can be reached) on the server; whether the server knows that this device is gone.
 * @type {(client: Client) => Promise<boolean>} */
export async function leave(client) {
  const { identity } = await readEverything(client.database);
  let isKnown = true;
  if (identity?.token)
    try {
      await unregister(identity.token);
    } catch {
      isKnown = false;
    }
  client.isErased = true; // a newer model that is just being fetched is not written down after it
  await eraseEverything(client.database);
  await client.reload();
  client.stored.identity = undefined;
  return isKnown;
}
