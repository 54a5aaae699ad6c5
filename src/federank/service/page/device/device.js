/* The device: the person's history and choices, the public model, and what follows from them. Lives in the worker.

What is kept is in the database (store.js); what is here is a copy of it, and numbers in the place of ids: histories are
kept by the catalogue's ids, so that they survive a catalogue that is put in another order. Another tab may change the
database at any time, so everything is read anew before a round.
*/

import { indexed } from "./catalogue.js";
import { BadAnswer } from "./client.js";
import * as federation from "./federation.js";
import { recipeFor } from "../protocol/pairs/computation.js";
import { USER_FACTORS, normalRow } from "../protocol/draws.js";
import { homeVector, scores, topN } from "../protocol/pairs/home.js";
import { reallyLiked } from "../protocol/ledger.js";
import { isPolicy, outward } from "../protocol/policy.js";
import { StorageFull, eraseEverything, openStorage, read, readEverything, write } from "./store.js";

const FIRST_POLICY = { sharing: "sticky", pi: 0.3, basis: "shared" };

const BEGUN_ANEW =
  "This federation was begun anew since you were here. Your list, your choices and the record of what has left are still yours; what belonged to the old one is gone. Nothing is sent unless you take part in the new one.";
const older = (offered, have) =>
  `The server offers version ${offered} of the model, but this device already has version ${have} and keeps it. If it stays so, ask the operator whether a backup was put back.`;
const MOMENT = 1000; // ms in which a worker that lags behind the others has caught up

export class Device {
  /** Open the database, ask the federation what it is, and bring the model up to date. */
  static async wake() {
    const device = new Device();
    await device.meet();
    return device;
  }

  /** Meet the federation: what it is, its catalogue and its model; and whether it is still the one that was joined. */
  async meet() {
    // Everything is asked for at once; answers are checked against what the federation says it is when that has come.
    const about = federation.about();
    const shape = about.then(({ recipe, items }) => ({ factors: recipe.factors, items }));
    const items = federation.catalogue(shape);
    for (const early of [shape, items]) early.catch(() => {}); // awaited below, after what may fail before them
    this.database ??= await openStorage();
    const [kept, joined] = await Promise.all([
      read(this.database, "model", "model"),
      read(this.database, "facts", "founding"),
    ]);
    const rows = federation.model(shape, kept?.version ?? null);
    rows.catch(() => {});
    const told = await about;
    const fetched = await this.#fetched(told, await shape, kept, rows);
    const catalogue = indexed(await items);
    const { factors, items: count } = await shape;
    const empty = { version: null, vectors: new Float32Array(count * factors), biases: new Float32Array(count) };
    // All at once: the device is of one federation or of the other, never of both.
    Object.assign(this, {
      told,
      catalogue,
      recipe: recipeFor(told.recipe),
      shape: { factors, items: count },
      model: fetched.have === null ? empty : kept,
      complaint: null,
    });
    if (fetched.have !== null && fetched.rows.version < fetched.have)
      this.complaint = older(fetched.rows.version, fetched.have);
    else this.take(fetched.rows);
    this.keepModel(); // while the page is already in use
    if (joined !== undefined && joined !== told.founding) await this.#partFromTheOldOne();
    await this.reload();
  }

  /** The rows that are needed, and the version that they are to be laid over: none if what is kept is of another federation. */
  async #fetched(told, shape, kept, rows) {
    const isOurs = kept && kept.founding === told.founding && kept.catalogue === told.catalogue;
    const have = isOurs && kept.vectors.length === shape.items * shape.factors ? kept.version : null;
    let fetched = await (kept && have === null ? federation.model(shape) : rows);
    if (have !== null && fetched.version < have) {
      await new Promise((resolve) => {
        setTimeout(resolve, MOMENT);
      });
      fetched = await federation.model(shape, have);
    }
    refuseAnother(told, fetched);
    return { have, rows: fetched };
  }

  /** The federation that was joined is no more: its keys, its vector and what was on its way to it are dropped. */
  async #partFromTheOldOne() {
    const { identity, pending, rounds } = await readEverything(this.database);
    const waiting = new Set(pending.map(({ ticket }) => ticket));
    const ended = rounds
      .filter(({ ticket }) => waiting.has(ticket))
      .map((story) => [story.ticket, { ...story, outcome: "not used: the federation was begun anew" }]);
    const facts = {
      identity: identity && { ...identity, device: null, token: null },
      founding: undefined,
      vector: undefined,
      answered: undefined,
      taking: false,
      begunAnew: true,
    };
    await write(
      this.database,
      {
        facts,
        pending: Object.fromEntries(pending.map(({ ticket }) => [ticket, undefined])),
        rounds: Object.fromEntries(ended),
      },
      { choice: true },
    );
  }

  /** What the person must know before their next choice, as a sentence; null if there is nothing. */
  get notice() {
    return this.kept.begunAnew ? BEGUN_ANEW : this.complaint;
  }

  /** Whether the federation at this address is another one by now; if so, it has been met. */
  async meetsAnother() {
    const { founding } = await federation.about();
    if (founding === this.told.founding) return false;
    await this.meet();
    return true;
  }

  /** Fetch the rows that changed since the version this device has. */
  async refreshModel() {
    const rows = await federation.model(this.shape, this.model.version);
    refuseAnother(this.told, rows);
    this.take(rows);
    await this.keepModel();
  }

  /** Lay the rows of a Broadcast over the model; an older model than the one at hand is refused. */
  take({ items, vectors, biases, version }) {
    const { factors } = this.shape;
    const have = this.model.version;
    if (have !== null && version < have) throw new BadAnswer(older(version, have));
    if (have === null && items.length !== this.shape.items)
      throw new BadAnswer(
        `The server sent ${items.length} of the ${this.shape.items} rows of the model; all are needed at first.`,
      );
    items.forEach((item, place) => {
      this.model.vectors.set(vectors.subarray(place * factors, (place + 1) * factors), item * factors);
      this.model.biases[item] = biases[place];
    });
    this.model.version = version;
    this.home = null;
  }

  /** Keep a copy of the model, if there is room: without one it is fetched whole next time. */
  async keepModel() {
    const { version, vectors, biases } = this.model;
    try {
      await write(this.database, {
        model: { model: { founding: this.told.founding, catalogue: this.told.catalogue, version, vectors, biases } },
      });
    } catch (fault) {
      if (!(fault instanceof StorageFull)) throw fault;
    }
  }

  /** Read everything from the database again. */
  async reload() {
    const kept = await readEverything(this.database);
    const numbers = (records) =>
      Int32Array.from(records.map(({ id }) => this.catalogue.numberOf.get(id)).filter((n) => n !== undefined)).sort();
    this.kept = { revision: 0, taking: false, ...kept };
    this.history = numbers(kept.history);
    this.dismissed = numbers(kept.dismissed);
    this.entries = new Map();
    for (const entry of kept.ledger) {
      const item = this.catalogue.numberOf.get(entry.id);
      if (item !== undefined) this.entries.set(item, { ...entry, item });
    }
    this.home = null;
  }

  /** Who this device is in its own draws: 63 random bits that nobody else ever learns. */
  async identity() {
    if (!this.kept.identity) {
      const [seed, user] = crypto.getRandomValues(new Uint32Array(2));
      const identity = { seed, user: user >>> 1, device: null, token: null };
      await write(this.database, { facts: { identity } });
      this.kept.identity = identity;
    }
    return this.kept.identity;
  }

  /** The owner's policy, or before any choice what the federation suggests, or a careful one. */
  get choice() {
    const { policy } = this.kept;
    if (policy && isPolicy(policy)) return { neverIds: [], neverCategories: [], ...policy };
    const suggested = this.told.suggested_policy;
    const first = suggested && isPolicy(suggested) ? suggested : FIRST_POLICY;
    const { sharing, pi, basis, epsilon = null, budget = null } = first;
    return { sharing, pi, basis, epsilon, budget, neverIds: [], neverCategories: [] };
  }

  /** The same with items in the place of ids and categories. */
  get policy() {
    const { neverIds, neverCategories, ...policy } = this.choice;
    const items = neverIds.map((id) => this.catalogue.numberOf.get(id)).filter((item) => item !== undefined);
    for (const category of neverCategories)
      for (const item of this.catalogue.membersOf.get(category) ?? []) items.push(item);
    return { ...policy, neverItems: items };
  }

  /** What has left because it was its owner's, by number; what the catalogue no longer has gets a number that none has. */
  get sent() {
    const gone = this.kept.ledger.filter(({ id, real }) => real === true && !this.catalogue.numberOf.has(id));
    return [...gone.map((_, place) => -1 - place), ...reallyLiked(this.entries)];
  }

  /** What this device takes part with; what has already left stays chosen, ahead of what is new, and counts for life. */
  async outward() {
    if (!this.history.length) return { profile: this.history, real: [], allowed: [], lifelong: true };
    const { seed, user } = await this.identity();
    return outward(this.policy, seed, user, this.history, this.shape.items, this.sent);
  }

  /** What a round's vector and message are computed from, as it is kept beside them. */
  learntFrom(profile) {
    return { basis: this.policy.basis, ids: Array.from(profile, (item) => this.catalogue.items[item].id) };
  }

  /** Whether the owner still lets all of it be used: nothing that was learnt from it has been taken back since. */
  stands(from, profile) {
    const { basis, ids } = this.learntFrom(profile);
    const now = new Set(ids);
    return Boolean(from) && from.basis === basis && from.ids.every((id) => now.has(id));
  }

  /** The vector of the rounds: the one of the last round, unless the owner has taken back what it was learnt from. */
  async roundVector(profile) {
    const { vector } = this.kept;
    if (this.stands(vector, profile) && vector.values.length === this.shape.factors) return vector.values;
    const { seed, user } = await this.identity();
    return normalRow(this.shape.factors, seed, user, USER_FACTORS, this.recipe.initialScale);
  }

  /** The best items for this person, by the home vector, and by it alone. */
  async recommend(n) {
    if (!this.history.length) return [];
    if (!this.home) {
      const { seed, user } = await this.identity();
      this.home = homeVector(this.recipe, seed, user, this.history, this.model);
    }
    return topN(scores(this.home, this.model), n, new Set([...this.history, ...this.dismissed]));
  }

  /** Forget everything, here and (if it can be reached) on the server, which then knows that this device is gone. */
  async leave() {
    const { identity } = await readEverything(this.database);
    let told = true;
    if (identity?.token)
      try {
        await federation.leave(identity.token);
      } catch {
        told = false;
      }
    await eraseEverything(this.database);
    await this.reload();
    this.kept.identity = undefined;
    return { told };
  }
}

/** Rows of another federation's model are not for this one, however well they fit. */
function refuseAnother(told, rows) {
  if (rows.founding && rows.founding !== told.founding)
    throw new BadAnswer("The federation at this address has just been begun anew; try again.");
}
