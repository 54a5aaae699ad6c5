/* The store: what this device keeps, in the browser's own database (IndexedDB), and nowhere else.

    records      one record each: identity (device, token, seed, user), policy, later (ids to watch later), vector (of the rounds), taking, agreed (when the owner
               last agreed to take part with the list as it was), answered,
               federation_id (of the federation that was joined), restarted (it is another by now, and the owner is to be informed), sums
               (the config that was pinned; it is stored when a federation is begun again, so that none may guarantee less), seasons
               (those that this device was in, and what each guaranteed), seasonBegun (its owner is to be informed in which ways it is weaker)
    history    what the user has, by the catalogue's id
    dismissed  what the user never wants to see again
    ledger     what has left this device, item by item
    rounds     the same, round by round
    pending    an Update that is on its way: its bytes and its ticket, until the server has given a receipt
    last       the message that was made last, as it is sent: for its owner to look at
    model      copies of what is public: the item factors, so that only changed rows are fetched; what the federation is and its
               catalogue, so that the page is of use without a network

Changes that belong together are one transaction: all of them are stored, or none. `revision` counts the owner's choices
(history and policy); a round's result is stored only if no choice was made since the round began.
*/

import { Fault } from "../faults.js";

const NAME = "federank";
const STORES = ["records", "history", "dismissed", "ledger", "rounds", "pending", "last", "model"];
const VERSION = 2; // of the stores above; what another version of the page has stored is refused

export class StorageFull extends Fault {}
export class Outdated extends Fault {}

/** @type {<T>(request: IDBRequest<T>) => Promise<T>} */
const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @type {(transaction: IDBTransaction) => Promise<unknown>} */
const completed = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error ?? new Outdated(["fault.outdated"]));
  });

/** @type {() => Promise<IDBDatabase>} */
export async function openStore() {
  const request = indexedDB.open(NAME, VERSION);
  request.onupgradeneeded = ({ oldVersion }) => {
    if (oldVersion) request.transaction?.abort();
    else for (const store of STORES) request.result.createObjectStore(store);
  };
  const database = await settled(request).catch((fault) => {
    throw ["AbortError", "VersionError"].includes(fault?.name) ? new Fault(["fault.storage-version"]) : fault;
  });
  // Cleared by the browser (it says so itself), or by another page: users of this one are informed in the same way.
  database.onversionchange = () => {
    database.close();
    database.dispatchEvent(new Event("close"));
  };
  return database;
}

/** @type {(database: IDBDatabase, store: string, key: string) => Promise<any>} */
export const read = (database, store, key) => settled(database.transaction(store).objectStore(store).get(key));

/** @type {(database: IDBDatabase) => Promise<Stored>} */
export async function readEverything(database) {
  const stores = ["records", "history", "dismissed", "ledger", "rounds", "pending"];
  const transaction = database.transaction(stores);
  const records = transaction.objectStore("records");
  const [keys, values, ...lists] = await Promise.all([
    settled(records.getAllKeys()),
    settled(records.getAll()),
    ...stores.slice(1).map((store) => settled(transaction.objectStore(store).getAll())),
  ]);
  const [history, dismissed, ledger, rounds, pending] = lists;
  const named = Object.fromEntries(keys.map((key, index) => [key, values[index]]));
  return { ...named, history, dismissed, ledger, rounds, pending };
}

/** Make these changes, all or none.

With `revision`, only if that is still the owner's latest choice; with `device`, only while the browser is still that device
(it may have left). A `choice` is one itself: the revision goes up.
 * @typedef {{ revision?: number | null, device?: string | null, choice?: boolean }} Only
 * @type {(database: IDBDatabase, changes: Changes, only?: Only) => Promise<void>} */
export async function write(database, changes, { revision = null, device: client = null, choice = false } = {}) {
  const stores = [...new Set(["records", ...Object.keys(changes)])];
  const transaction = database.transaction(stores, "readwrite", { durability: "strict" });
  const done = completed(transaction);
  done.catch(() => {}); // it is awaited below; a failure before that is not an unhandled one
  const records = transaction.objectStore("records");
  const [latest = 0, identity] = await Promise.all([
    settled(records.get("revision")),
    settled(records.get("identity")),
  ]);
  if ((revision !== null && latest !== revision) || (client !== null && identity?.device !== client)) {
    transaction.abort();
    await done;
  }
  if (choice) records.put(latest + 1, "revision");
  for (const [store, values] of Object.entries(changes))
    for (const [key, value] of Object.entries(values))
      if (value === undefined) transaction.objectStore(store).delete(key);
      else transaction.objectStore(store).put(value, key);
  try {
    await done;
  } catch (fault) {
    if (!(fault instanceof DOMException) || fault.name !== "QuotaExceededError") throw fault;
    throw new StorageFull(["fault.storage-full"]);
  }
}

/** Note that these have been shown to their owner; what was taken back meanwhile stays so.
 * @type {(database: IDBDatabase, ids: string[]) => Promise<void>} */
export async function noteShown(database, ids) {
  const history = database.transaction("history", "readwrite").objectStore("history");
  for (const id of ids) {
    const owned = await settled(history.get(id));
    if (owned) await settled(history.put({ ...owned, shown: true }, id));
  }
}

/** @type {(database: IDBDatabase) => Promise<void>} */
export async function eraseEverything(database) {
  const transaction = database.transaction(STORES, "readwrite", { durability: "strict" });
  STORES.forEach((store) => transaction.objectStore(store).clear());
  await completed(transaction);
}
