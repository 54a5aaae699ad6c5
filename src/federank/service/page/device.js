/* The device: the person's history and choices, the public model, and what follows from them. Lives in the worker.

What is kept is in the database (storage.js); what is here is a copy of it, and numbers in the place of ids: histories are
kept by the catalogue's ids, so that they survive a catalogue that is put in another order. Another tab may change the
database at any time, so everything is read anew before a round.
*/

import { indexed } from "./catalogue.js";
import * as federation from "./federation.js";
import { WrongAnswer } from "./federation.js";
import { recipeFor } from "./protocol/computation.js";
import { USER_FACTORS, normalRow } from "./protocol/draws.js";
import { homeVector, scores, topN } from "./protocol/home.js";
import { reallyLiked } from "./protocol/ledger.js";
import { isPolicy, outward } from "./protocol/policy.js";
import { StorageFull, eraseEverything, openStorage, read, readEverything, write } from "./storage.js";

const FIRST_POLICY = { sharing: "sticky", pi: 0.3, basis: "shared" };

export class Device {
  /** Open the database, ask the federation what it is, and bring the model up to date. */
  static async wake() {
    const device = new Device();
    // Everything is asked for at once; answers are checked against what the federation says it is when that has come.
    const told = federation.about();
    const shape = told.then(({ recipe, items }) => ({ factors: recipe.factors, items }));
    const catalogue = federation.catalogue(shape);
    for (const early of [shape, catalogue]) early.catch(() => {}); // awaited below, after what may fail before them
    device.database = await openStorage();
    const kept = await read(device.database, "model", "model");
    const rows = federation.model(shape, kept?.version ?? null);
    rows.catch(() => {});
    device.told = await told;
    device.recipe = recipeFor(device.told.recipe);
    device.shape = await shape;
    await device.#wakeModel(kept, rows);
    device.catalogue = indexed(await catalogue);
    await device.reload();
    return device;
  }

  async #wakeModel(kept, rows) {
    const { factors, items } = this.shape;
    const usable = kept && kept.catalogue === this.told.catalogue && kept.vectors.length === items * factors;
    this.model = usable ? kept : { version: null, vectors: new Float32Array(items * factors), biases: new Float32Array(items) };
    this.take(await (usable || !kept ? rows : federation.model(this.shape)));
    this.keepModel(); // while the page is already in use
  }

  /** Fetch the rows that changed since the version this device has. */
  async refreshModel() {
    this.take(await federation.model(this.shape, this.model.version));
    await this.keepModel();
  }

  /** Lay the rows of a Broadcast over the model; an older model than the one at hand is refused. */
  take({ items, vectors, biases, version }) {
    const { factors } = this.shape;
    const have = this.model.version;
    if (have !== null && version < have)
      throw new WrongAnswer(
        `The server offers version ${version} of the model, but this device already has version ${have}. If this federation was started anew, leave and erase to join it afresh.`,
      );
    if (have === null && items.length !== this.shape.items)
      throw new WrongAnswer(`The server sent ${items.length} of the ${this.shape.items} rows of the model; all are needed at first.`);
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
      await write(this.database, { model: { model: { catalogue: this.told.catalogue, version, vectors, biases } } });
    } catch (fault) {
      if (!(fault instanceof StorageFull)) throw fault;
    }
  }

  /** Read everything from the database again. */
  async reload() {
    const kept = await readEverything(this.database);
    const numbers = (records) => Int32Array.from(records.map(({ id }) => this.catalogue.numberOf.get(id)).filter((n) => n !== undefined)).sort();
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
    for (const category of neverCategories) for (const item of this.catalogue.membersOf.get(category) ?? []) items.push(item);
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
