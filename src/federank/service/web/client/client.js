/* The device: the user's history and choices, the public model, and what follows from them. Runs in the worker.

What is stored is in the database (store.js); what is here is a copy of it, and numbers instead of ids: histories are
stored by the catalogue's ids, so that they survive a catalogue that is put in another order. Another tab may change the
database at any time, so everything is read again before a round.
*/

import { fetchModel, isSecure } from "./federation.js";
import { BadAnswer } from "./http.js";
import { LONGEST_PERIOD } from "../schemas.js";
import { taught } from "./shelves.js";
import { noticeOf, seasonOf, seasonOfRound } from "./seasons.js";
import { StorageFull, readEverything, write } from "./store.js";
import { reallyLiked } from "../privacy/ledger.js";
import { NOTHING_HIDDEN, among, isPolicy, sharedProfile } from "../privacy/policy.js";

/** The public model as of a version; none before the first has come. Where pairs are learnt items have biases, where squares
are learnt weights; `gram` and `popular` are made of it when they are first needed.
 * @typedef {{ version: number | null, vectors: Float32Array, biases: Float32Array, weights: Float32Array,
 *   regulariser: number, iteration: number, gram?: Float64Array, popular?: Float32Array,
 *   itemWeights?: import("../methods/frugal.js").ItemWeights }} Model */

/** A federation that was met (enrolment.js): what it is, its items, its model, the config where uploads are sums, and what there
is to complain of; `keeping` ends when it is written down.
 * @typedef {{ info: FederationInfo, shape: Shape, catalogue: Catalogue, model: Model, config: SecureConfig | null,
 *   complaint: Said | null, isAway?: boolean, keeping?: Promise<void> }} Met */

export const WAIT = 30_000; // ms in which something that is added while taking part can be taken back before it may leave
const FIRST_POLICY = { sharing: "fixed-subset", pi: 0.3, basis: "shared" };

/** @type {(offered: number, have: number) => Said} */
export const older = (offered, have) => ["notice.older", { offered: String(offered), have: String(have) }];

/** @type {(shape: Shape) => Model} */
export const emptyModel = ({ factors, items }) => ({
  version: null,
  vectors: new Float32Array(items * factors),
  biases: new Float32Array(items),
  weights: new Float32Array(items).fill(1),
  regulariser: 0,
  iteration: 0,
});

/** Lay the rows of a Broadcast over the model; an older model than the one at hand is refused.
 * @type {(model: Model, shape: Shape, rows: Rows) => void} */
export function layOver(model, shape, rows) {
  const { items, vectors, biases, weights, regulariser, iteration, version } = rows;
  const { factors } = shape;
  const have = model.version;
  if (have !== null && version < have) throw new BadAnswer(older(version, have));
  if (have === null && items.length !== shape.items)
    throw new BadAnswer(["detail.rows", { sent: items.length, needed: shape.items }]);
  items.forEach((item, index) => {
    model.vectors.set(vectors.subarray(index * factors, (index + 1) * factors), item * factors);
    if (biases) model.biases[item] = biases[index];
    if (weights) model.weights[item] = weights[index];
  });
  model.regulariser = regulariser ?? model.regulariser;
  model.iteration = iteration ?? model.iteration;
  model.itemWeights = rows.itemWeights ?? model.itemWeights;
  model.gram = model.popular = undefined;
  model.version = version;
}

/** Rows of another federation's model are not for this one, however well they fit.
 * @type {(info: FederationInfo, rows: { federation_id: string | null }) => void} */
export function refuseAnother(info, rows) {
  if (rows.federation_id && rows.federation_id !== info.federation_id) throw new BadAnswer(["fault.just-restarted"]);
}

export class Client {
  /** @param {IDBDatabase} database
   * @param {Met} met */
  constructor(database, met) {
    this.database = database;
    this.met = met;
    /** @type {Stored & { revision: number, taking: boolean }} */
    this.stored = { revision: 0, taking: false, history: [], dismissed: [], ledger: [], rounds: [], pending: [] };
    this.history = new Int32Array(0);
    this.dismissed = new Int32Array(0);
    /** @type {Map<number, Entry>} */
    this.entries = new Map();
    /** @type {Map<number, number>} */
    this.stars = new Map();
    /** @type {Float32Array | null} */
    this.home = null;
    this.olderInARow = 0;
    /** Whether the helper does not answer the leader, where there is one. */
    this.helperAway = false;
    /** Whether everything here was erased and nothing chosen since; then nothing is stored either. */
    this.isErased = false;
  }

  // What belongs to the federation that was met: all of it to one, never to two.
  get info() {
    return this.met.info;
  }
  get shape() {
    return this.met.shape;
  }
  get method() {
    return this.met.shape.method;
  }
  get catalogue() {
    return this.met.catalogue;
  }
  get model() {
    return this.met.model;
  }

  /** Whether the model has learnt from no client yet, as far as the federation says; its numbers are drawn by chance then. */
  get isFresh() {
    return (
      this.info.trained === false && (!this.model.version || Boolean(this.method.hasLearnt?.(this.model) === false))
    );
  }

  /** What the user must know before their next choice; null if there is nothing.
   * @returns {Said | null} */
  get notice() {
    return this.stored.restarted ? ["notice.restarted"] : (noticeOf(this) ?? this.met.complaint);
  }

  /** Fetch the rows that changed since the version this device has. */
  async refreshModel() {
    const rows = await fetchModel(this.shape, this.model.version);
    refuseAnother(this.info, rows);
    await this.take(rows);
  }

  /** Lay the rows of a Broadcast over the model, and keep it.
   * @param {Rows} rows */
  async take(rows) {
    layOver(this.model, this.shape, rows);
    this.home = null;
    await this.keepModel();
  }

  /** Keep a copy of the model, if there is room: without one it is fetched completely next time. */
  async keepModel() {
    if (this.isErased) return;
    const { version, vectors, biases, weights, regulariser, iteration, itemWeights } = this.model;
    const model = { version, vectors, biases, weights, regulariser, iteration, itemWeights };
    const { federation_id, catalogue } = this.info;
    try {
      await write(this.database, { model: { model: { ...model, federation_id, catalogue } } });
    } catch (fault) {
      if (!(fault instanceof StorageFull)) throw fault;
    }
  }

  /** Read everything from the database again. */
  async reload() {
    const stored = await readEverything(this.database);
    const { numberOf } = this.catalogue;
    /** @type {(records: Owned[]) => Int32Array<ArrayBuffer>} */
    const numbers = (records) => Int32Array.from(records.flatMap(({ id }) => numberOf.get(id) ?? [])).sort();
    this.stored = { revision: 0, taking: false, ...stored };
    this.history = numbers(stored.history);
    this.dismissed = numbers(stored.dismissed);
    const rated = this.method.scale ? stored.history : [];
    this.stars = new Map(
      rated.flatMap(({ id, rating }) => (numberOf.has(id) && rating ? [[numberOf.get(id) ?? -1, rating]] : [])),
    );
    // What was only liked, before the federation was of ratings, is no rating.
    if (this.method.scale) this.history = this.history.filter((item) => this.stars.has(item));
    this.entries = new Map();
    for (const entry of stored.ledger) {
      const item = numberOf.get(entry.id);
      if (item !== undefined) this.entries.set(item, { ...entry, item });
    }
    this.home = null;
  }

  /** Who this device is in its own draws: 63 random bits that are never sent.
   * @returns {Promise<Identity>} */
  async identity() {
    if (this.stored.identity) return this.stored.identity;
    const [seed, user] = crypto.getRandomValues(new Uint32Array(2));
    const identity = { seed, user: user >>> 1, device: null, token: null };
    await write(this.database, { records: { identity } });
    this.stored.identity = identity;
    return identity;
  }

  /** The owner's policy, or before any choice what the federation suggests, or a careful one.
   * @returns {Choice} */
  get choice() {
    const { policy } = this.stored;
    if (policy && isPolicy(policy)) return this.understood({ neverIds: [], ...policy });
    const suggested = this.info.suggested_policy;
    const first = suggested && isPolicy(suggested) ? suggested : FIRST_POLICY;
    // What leaves follows from what may leave alone, and from a fixed part of it: never more than was suggested.
    const { sharing, ...suggestion } = /** @type {Policy} */ (first);
    const kind = sharing === "randomized-response" ? "randomized-response" : "fixed-subset";
    return this.understood({ ...suggestion, neverIds: [], sharing: kind, basis: "shared" });
  }

  /** A policy as the federation's method can follow it: where no coins are tossed, a fixed part per client lifetime stands for them,
  and never lets more leave.
   * @param {Choice} choice
   * @returns {Choice} */
  understood(choice) {
    const { messages, sharing, scale } = this.method;
    const most = messages === null ? choice.messages : Math.min(choice.messages ?? messages, messages);
    const fixed = { ...choice, sharing: "fixed-subset", basis: "shared", item_epsilon: null };
    // Nothing has to be hidden where no single server reads a message.
    if (scale && isSecure(this.info)) return { ...fixed, ...NOTHING_HIDDEN, messages: most };
    if (scale) {
      const from = choice.filling ? choice : (this.info.suggested_policy ?? {});
      return { ...fixed, filling: from.filling ?? "hybrid", rho: from.rho ?? 2, sampling: from.sampling ?? "fixed" };
    }
    if (messages === null) return choice;
    const kind = sharing.includes(choice.sharing) ? choice.sharing : "fixed-subset";
    return { ...choice, sharing: kind, basis: "shared", messages: most };
  }

  /** How many messages of this season are charged, whether or not they arrived. */
  get spent() {
    return Math.max(0, ...this.seasonRounds.map(({ number = 0 }) => number));
  }

  /** What was sent in this season. */
  get seasonRounds() {
    const now = seasonOf(this.info);
    return this.stored.rounds.filter((round) => seasonOfRound(round) === now);
  }

  /** @type {Set<number>} */
  get gone() {
    return new Set(this.catalogue.items.flatMap(({ ended }, number) => (ended ? [number] : [])));
  }

  /** The same with items instead of ids and categories.
   * @returns {Policy} */
  get policy() {
    const { neverIds, byHand = null, ...policy } = this.choice;
    const { numberOf, items } = this.catalogue;
    if (!byHand) return { ...policy, neverItems: neverIds.flatMap((id) => numberOf.get(id) ?? []) };
    const stored = this.history.filter((item) => !byHand.includes(items[item].id));
    const all = { sharing: "fixed-subset", pi: 1, item_epsilon: null, budget: null };
    return { ...policy, ...all, neverItems: Array.from(stored) };
  }

  /** What has left because it was its owner's, by number; what the catalogue no longer has gets a number that none has. */
  get sent() {
    const gone = this.stored.ledger.filter(({ id, real }) => real === true && !this.catalogue.numberOf.has(id));
    return [...gone.map((_, index) => -1 - index), ...reallyLiked(this.entries)];
  }

  /** Until when an item waits before it may leave: half a minute after its owner agreed or added it, and, where it was added later,
  until its owner has been shown that it waits. What has left before waits no longer.
   * @param {Owned} owned */
  waitsUntil({ id, at, shown }) {
    const { taking, agreed = 0, ledger } = this.stored;
    if (!taking || ledger.some((entry) => entry.id === id && entry.real)) return 0;
    if (at > agreed && !shown) return Infinity;
    const until = Math.max(at, agreed) + WAIT;
    return until > Date.now() ? until : 0;
  }

  /** Seconds between two uploads, as the federation asks. */
  get period() {
    const seconds = Number(this.info.upload_period_seconds ?? 0);
    return seconds > 0 ? Math.min(seconds, LONGEST_PERIOD) : 0;
  }

  /** The ids of what waits. */
  get waiting() {
    return new Set(this.stored.history.filter((owned) => this.waitsUntil(owned)).map(({ id }) => id));
  }

  /** What this device takes part with; what has already left stays chosen, ahead of what is new, and counts per client lifetime. What
  waits is not part of it yet, unless it is asked what will be.
   * @returns {Promise<SharedProfile>} */
  async sharedProfile({ withWaiting = false } = {}) {
    const waiting = withWaiting ? new Set() : this.waiting;
    const { gone } = this;
    const mine = this.history.filter((item) => !gone.has(item));
    const settled = mine.filter((item) => !waiting.has(this.catalogue.items[item].id));
    if (!settled.length) return { profile: settled, real: [], allowed: [], lifelong: true };
    const { seed, user } = await this.identity();
    const all = sharedProfile(this.policy, seed, user, settled, this.shape.items, this.sent);
    return gone.size ? among(all, (item) => !gone.has(item)) : all; // nor are decoys of items that are there no more
  }

  /** What the user has given items that are rated.
   * @param {Int32Array} items */
  starsOf(items) {
    return Float32Array.from(items, (item) => this.stars.get(item) ?? 0);
  }

  /** What this user would give an item, and whether that is only their own mean, because it has no ratings; null
  where items are not rated, or nothing is yet.
   * @param {number} item
   * @returns {Promise<{ rating: number, isMean: boolean } | null>} */
  async predicted(item) {
    const { scale, foldIn } = this.method;
    if (!scale || !this.history.length) return null;
    const stars = this.starsOf(this.history);
    const isMean = !this.model.version || !this.model.weights[item];
    let rating = stars.reduce((sum, star) => sum + star, 0) / stars.length;
    if (!isMean) {
      const { factors } = this.shape;
      this.home ??= foldIn(await this.identity(), this.history, this.model, stars);
      rating = this.home.reduce((sum, value, f) => sum + value * this.model.vectors[item * factors + f], 0);
    }
    return { rating: Math.min(Math.max(rating, scale.lowest), scale.highest), isMean };
  }

  /** What a round's vector and message are computed from, as it is stored beside them.
   * @param {Int32Array} profile
   * @returns {LearntFrom} */
  learntFrom(profile) {
    return { basis: this.policy.basis, ids: Array.from(profile, (item) => this.catalogue.items[item].id) };
  }

  /** Whether the owner still lets all of it be used: nothing that was learnt from it has been taken back since.
   * @param {LearntFrom | undefined} from
   * @param {Int32Array} profile */
  stands(from, profile) {
    const { basis, ids } = this.learntFrom(profile);
    const now = new Set(ids);
    return from !== undefined && from.basis === basis && from.ids.every((id) => now.has(id));
  }

  /** The vector of the rounds: the one of the last round; none if the owner has taken back what it was learnt from.
   * @param {Int32Array} profile */
  roundVector(profile) {
    const { vector } = this.stored;
    return vector && this.stands(vector, profile) && vector.values.length === this.shape.factors ? vector.values : null;
  }

  /** What each item is worth to this user: by the home vector, less where it resembles what was turned down. Nothing of it is sent.
   * @returns {Promise<Float32Array>} */
  async worth() {
    this.home ??= this.method.foldIn(await this.identity(), this.history, this.model, this.starsOf(this.history));
    const values = this.method.scores(this.home, this.model);
    const down = this.stored.dismissed
      .filter(({ how }) => how !== "known")
      .map(({ id }) => this.catalogue.numberOf.get(id));
    return taught(
      values,
      this.model.vectors,
      down.filter((item) => item !== undefined),
    );
  }

  /** What is never recommended: the user's own, what was turned down, and where items are rated what no rating can be predicted of. */
  get left() {
    const silent = this.method.scale ? [...this.model.weights.keys()].filter((item) => !this.model.weights[item]) : [];
    return new Set([...this.history, ...this.dismissed, ...silent, ...this.gone]);
  }
}
