/* Messages that no single server can read, on this device: what it pins, what it checks, how a message is split.

The charter of sums comes from the leader, which is the server that this page came from. When the owner takes part, the helper's key
is fetched from the helper's own address; it must be the charter's, and from then on no other charter is trusted. Before a message is
made, the round's offer is checked: signed by the helper, about this charter, about the very model at hand. What is kept until it is
sent is already the upload, which the leader cannot read. The twin of this file is service/device/requests/sums.py.

A federation that is begun anew must name the same helper and promise no less: no more messages, no less noise, no smaller cohorts.
*/

import { BadAnswer, NoAnswer, bytesOf, jsonOf, request } from "./http.js";
import { MOST_SMALL_BYTES } from "./rules.js";
import { seasonOf, untilOf } from "./seasons.js";
import { BadMessage } from "../federation/wire.js";
import { columnsOfGradients } from "../methods/fedrec.js";
import { directionsOf, privateMessage } from "../methods/frugal_private.js";
import { epsilonOfMu, muOfNoise } from "../privacy/accountant.js";
import { canonical, digest, hexOf, hexadecimal, readCanonical } from "../secagg/canonical.js";
import { countUnit, coveredBy, rowsOfItems, supportedItems } from "../methods/frugal.js";
import {
  GRADIENTS,
  PRIVATE,
  SPECTRAL,
  checkFollows,
  checkParameters,
  checkSigned,
  columnsOf,
  configFrom,
  isCounting,
  mostTold,
} from "../secagg/config.js";
import { PUBLIC_BYTES, SIGNATURE_BYTES, fingerprint, follow } from "../secagg/keys.js";
import { sendChecked } from "../secagg/proof.js";
import { roundMessage } from "../secagg/ring.js";
import {
  ABANDONED,
  FOLDED,
  checkRoundConfig,
  methodModelDigest,
  modelDigest,
  roundConfigDigest,
  readRoundConfig,
  readRecord,
} from "../secagg/round_config.js";
import { ID_BYTES, makeUpload, newSecrets, roundingChances } from "../secagg/upload.js";

/** @import { Model } from "./client.js" */
/** @import { Facts, Task } from "./federation.js" */
/** @import { Said } from "../faults.js" */
/** @import { Bytes } from "../secagg/canonical.js" */
/** @import { SecureConfig } from "../secagg/config.js" */
/** @import { RoundConfig, RoundRecord } from "../secagg/round_config.js" */

const HERE = "localhost";
const OF_FRUGAL = ["factors", "messages", "alpha", "unobserved_weight", "activity", "clip", "min_support"];
/** @type {Record<string, number>} */
const UNSAID = { activity: 0, min_support: 1 }; // what a setting is where the settings have none

/** What a charter of sums must say of a method, which of its settings the leader tells (null: all of them), by what a round's offer
names a model, and how many items uploads on a model cover (null: all).
 * @typedef {{ told: string[] | null, recipe: string, columns: number, clip: number, messages: number, minSupport: number,
 *   rows: (model: Model) => number | null, digest: (model: Model) => Promise<Bytes> }} MethodTerms */

/** On what terms a round's messages are split.
 * @typedef {{ charter: SecureConfig, offer: RoundConfig }} Terms */

/** Who the two servers are and what their noise is worth, as the page tells it.
 * @typedef {{ helper: string, fingerprint: string, together: "machine" | "host" | null, leastCohort: number,
 *   epsilon: number | null, delta: number }} Promised */

/** @type {(model: Model) => Promise<Bytes>} */
const frugalDigest = ({ version, regulariser, weights, vectors }) =>
  modelDigest(version ?? 0, regulariser, weights, vectors);

/** @type {(model: Model) => Promise<Bytes>} */
const fedrecDigest = ({ version, iteration, weights, vectors }) =>
  methodModelDigest(version ?? 0, { vectors, reported: Int8Array.from(weights), iteration: Int32Array.of(iteration) });

/** What the charter must say of the federation's method.
 * @type {(facts: Facts) => MethodTerms} */
function termsOf({ method, recipe }) {
  const { factors, messages, uploads_per_client: uploads, clip = null, min_support: minSupport = 1 } = recipe;
  if (method.startsWith("frugal")) {
    const rows = (/** @type {Model} */ { weights }) => supportedItems(minSupport, weights).length;
    const frugal = { told: OF_FRUGAL, messages, minSupport, rows, digest: frugalDigest };
    // Without a clip the plan's own messages are sent, of length 1; with one, Frugal's, clipped to it.
    return clip === null
      ? { ...frugal, recipe: PRIVATE, columns: factors - 1, clip: 1 }
      : { ...frugal, recipe: SPECTRAL, columns: factors + 1, clip };
  }
  const columns = columnsOfGradients(factors);
  const ofRatings = { told: null, minSupport: 1, rows: () => null, digest: fedrecDigest };
  return { ...ofRatings, recipe: GRADIENTS, columns, clip, messages: uploads };
}

/** The leader's charter, if it is of the federation that the leader says this is; null where the browser cannot check it
(WebCrypto is there on https and on this very machine alone), and then nothing is sent either.
 * @type {(facts: Facts) => Promise<SecureConfig | null>} */
export async function fetchConfig(facts) {
  if (!globalThis.crypto?.subtle) return null;
  const [content, told] = ["config", "settings"].map((name) => new TextEncoder().encode(String(facts.sums?.[name])));
  const charter = await read(() => configFrom(content));
  const settings = await read(async () => readCanonical(told, "settings"));
  const { recipe } = facts;
  const summed = termsOf(facts);
  /** @type {(name: string) => unknown} */
  const promised = (name) =>
    typeof settings[name] === "string" && typeof recipe[name] === "number"
      ? Number(settings[name])
      : (settings[name] ?? UNSAID[name] ?? null);
  const fits =
    hexOf(await digest("settings", told)) === charter.settings &&
    (summed.told ?? Object.keys(settings)).every((name) => promised(name) === (recipe[name] ?? UNSAID[name] ?? null)) &&
    charter.founding === facts.founding &&
    charter.season === seasonOf(facts) &&
    charter.until === untilOf(facts) &&
    charter.items === facts.items &&
    charter.recipe === summed.recipe &&
    charter.columns === summed.columns &&
    (charter.min_support ?? 1) === summed.minSupport &&
    charter.messages === summed.messages &&
    Number(charter.clip) === summed.clip;
  if (!fits) throw new BadAnswer(["sums.another-federation"]);
  return charter;
}

/** The items that this browser was told must be those of the charter: the same for everybody, to the last byte.
 * @type {(charter: SecureConfig, told: Uint8Array<ArrayBuffer>) => Promise<void>} */
export async function refuseAnotherList(charter, told) {
  const found = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", told));
  if (hexOf(found) !== charter.catalogue) throw new BadAnswer(["sums.another-list"]);
}

/** What this device pins when it joins: the charter, once it fits the helper, and the one that was pinned before.
 * @type {(charter: SecureConfig, before: SecureConfig | undefined) => Promise<SecureConfig>} */
export async function pinned(charter, before) {
  const now = await helperKey(charter);
  await refuseUnsigned(charter);
  if (!before || canonical(before) === canonical(charter)) return charter;
  const known = before.helper_key === charter.helper_key || hexOf(await helperKey(before)) === hexOf(now);
  if (!known || before.helper_origin !== charter.helper_origin)
    throw new BadAnswer(["fault.weaker", { code: "another-helper" }]);
  const weaker = [];
  if (charter.messages > before.messages) weaker.push("more-messages");
  if (mostTold(charter) > mostTold(before)) weaker.push("less-noise");
  if (charter.least_cohort < before.least_cohort) weaker.push("smaller-cohorts");
  if (weaker.length) throw new BadAnswer(["fault.weaker", { code: weaker.join(", ") }]);
  return charter;
}

/** Refuse a season that the leader's chain of configs does not lead to from the one that this device has pinned: each names the one
before it, and both servers have signed all of them.
 * @type {(before: SecureConfig, now: SecureConfig) => Promise<void>} */
export async function checkSeason(before, now) {
  const told = await signedSeasons();
  const keys = [hexadecimal(before.helper_key, PUBLIC_BYTES, "helper.key"), await helperKey(before)];
  await read(async () => {
    let known = before;
    for (const { charter, signatures } of told)
      if (charter.season > known.season && charter.season <= now.season) {
        await checkFollows(known, charter);
        await checkSigned(charter, signatures, keys);
        known = charter;
      }
    if (canonical(known) !== canonical(now)) throw new BadMessage(["charter.season"]);
  });
}

/** The charters of all seasons with both servers' signatures, as the leader publishes them; these are not checked yet.
 * @type {() => Promise<{ charter: SecureConfig, signatures: Bytes[] }[]>} */
async function signedSeasons() {
  const told = Object(await jsonOf(await request("seasons")));
  return read(async () => {
    if (!Array.isArray(told.seasons)) throw new BadMessage(["charter.season"]);
    const seasons = [];
    for (const one of told.seasons) {
      const { config = "", signatures = [] } = Object(one);
      const charter = await configFrom(new TextEncoder().encode(String(config)));
      const [leader, helper] = [0, 1].map((n) => hexadecimal(signatures[n], SIGNATURE_BYTES, "season.signature"));
      seasons.push({ charter, signatures: [leader, helper] });
    }
    return seasons;
  });
}

/** Refuse a charter that not both servers have signed.
 * @type {(charter: SecureConfig) => Promise<void>} */
async function refuseUnsigned(charter) {
  const found = (await signedSeasons()).find((one) => canonical(one.charter) === canonical(charter));
  const first = hexadecimal(charter.helper_key, PUBLIC_BYTES, "helper.key");
  await read(async () => {
    if (!found) throw new BadMessage(["charter.season"]);
    await checkSigned(charter, found.signatures, [first, await helperKey(charter)]);
  });
}

/** The helper's key of now, from the helper's own address: the charter's, or one that it has signed for.
 * @type {(charter: SecureConfig) => Promise<Bytes>} */
async function helperKey(charter) {
  const { helper_origin: origin } = charter;
  const first = hexadecimal(charter.helper_key, PUBLIC_BYTES, "helper.key");
  const told = await identityAt(origin);
  const { key, now } = await read(
    async () => {
      const steps = Array.isArray(told?.successions) ? told.successions : [];
      const chain = steps.map((/** @type {any} */ step) => [
        hexadecimal(step?.old, PUBLIC_BYTES, "successions.old"),
        hexadecimal(step?.new, PUBLIC_BYTES, "successions.new"),
        hexadecimal(step?.signature, SIGNATURE_BYTES, "successions.signature"),
      ]);
      return { key: hexadecimal(told?.key, PUBLIC_BYTES, "helper.key"), now: await follow(first, chain) };
    },
    (reason) => ["sums.helper-silent", { origin, reason }],
  );
  if (hexOf(now) !== hexOf(key))
    throw new BadAnswer([
      "sums.helper-other",
      { named: await fingerprint(first), origin, found: await fingerprint(key) },
    ]);
  return now;
}

/** @type {(origin: string) => Promise<any>} */
async function identityAt(origin) {
  try {
    return await jsonOf(await request("identity", { origin }));
  } catch (fault) {
    if (!(fault instanceof NoAnswer)) throw fault;
    throw new NoAnswer(["fault.helper-away"], fault.retryAfter);
  }
}

/** The offer of a round, if the helper has signed it and it is about this charter and this very model.
 * @type {(charter: SecureConfig, facts: Facts, model: Model, task: Task, signal: AbortSignal) => Promise<RoundConfig>} */
export async function fetchRoundConfig(charter, facts, model, { round, version }, signal) {
  const content = await bytesOf(await request(`sums/offer?round=${round}`, { signal }), MOST_SMALL_BYTES);
  return read(
    async () => {
      const offer = await signedRoundConfig(content, charter);
      const terms = termsOf(facts);
      await checkRoundConfig(offer, charter, await terms.digest(model), Date.now() / 1000, terms.rows(model));
      if (offer.round !== round || offer.version !== version || model.version !== version)
        throw new BadMessage(["sums.offer-other-round"]);
      return offer;
    },
    (reason) => ["sums.offer-untaken", { reason }],
  );
}

/** @type {(content: Uint8Array, charter: SecureConfig) => Promise<RoundConfig>} */
async function signedRoundConfig(content, charter) {
  try {
    return await readRoundConfig(content, hexadecimal(charter.helper_key, PUBLIC_BYTES, "helper.key"));
  } catch (fault) {
    if (!(fault instanceof BadMessage)) throw fault;
    return readRoundConfig(content, await helperKey(charter)); // perhaps the helper has a new key by now
  }
}

/** Whether this is the helper's signed record that the round of an offer has ended without a sum. The helper destroys a round's key
when it signs that: nothing can be learnt from the round's uploads any more.
 * @type {(charter: SecureConfig, record: string, offer: string | undefined, round: number) => Promise<boolean>} */
export async function showsNoSum(charter, record, offer, round) {
  return (await recordOf(charter, record, offer, round))?.state === ABANDONED;
}

/** Whether this is the helper's signed record of a sum, with the ids of all uploads in it, and this id is not one. The helper answers
once per round, so an upload that is not in this sum is in none.
 * @type {(charter: SecureConfig, record: string, members: string, offer: string | undefined, round: number, id: string | undefined) => Promise<boolean>} */
export async function showsAbsence(charter, record, members, offer, round, id) {
  const signed = await recordOf(charter, record, offer, round);
  if (signed?.state !== FOLDED || !id || !/^([0-9a-f]{32})*$/.test(members)) return false;
  const ids = (members.match(/.{32}/g) ?? []).toSorted();
  const set = await digest("set", ...ids.map((one) => hexadecimal(one, ID_BYTES, "id")));
  return hexOf(set) === signed.set && !ids.includes(id);
}

/** The helper's signed record of the round of an offer; null if this is not one.
 * @type {(charter: SecureConfig, record: string, offer: string | undefined, round: number) => Promise<RoundRecord | null>} */
async function recordOf(charter, record, offer, round) {
  try {
    const told = await signedRecord(new TextEncoder().encode(record), charter);
    const name = hexOf(await digest("charter", new TextEncoder().encode(canonical(charter))));
    return told.charter === name && told.offer === offer && told.round === round ? told : null;
  } catch (fault) {
    if (fault instanceof BadMessage) return null;
    throw fault;
  }
}

/** @type {(content: Uint8Array, charter: SecureConfig) => Promise<RoundRecord>} */
async function signedRecord(content, charter) {
  try {
    return await readRecord(content, hexadecimal(charter.helper_key, PUBLIC_BYTES, "helper.key"));
  } catch (fault) {
    if (!(fault instanceof BadMessage)) throw fault;
    return readRecord(content, await helperKey(charter)); // perhaps the helper has a new key by now
  }
}

/** The upload of a message: rounded, split in two, sealed, with a proof of its norm where the charter asks for one. The message itself goes no further than this. `values` are all numbers
of a message of Frugal's own recipe, or of ratings; the plan's are made here, from what the owner lets out.
 * @type {(terms: Terms, model: Model, profile: Int32Array, values: () => Float32Array) => Promise<{ body: Bytes, before: { values: Float32Array, columns: number } }>} */
export const split = ({ charter, offer }, model, profile, values) =>
  read(
    async () => {
      const chances = roundingChances(offer.length);
      const whole =
        charter.recipe === PRIVATE
          ? planned(charter, offer.stage, model, profile, chances)
          : isCounting(charter, offer.stage)
            ? Int32Array.from(values(), (count) => count * countUnit(charter.items))
            : roundMessage(values(), Number(charter.clip), chances);
      const body = charter.projections
        ? await sendChecked(checkParameters(charter.projections), offer, whole)
        : await makeUpload(offer, whole, newSecrets());
      const before = charter.recipe === PRIVATE ? Float32Array.from(whole, Number) : values();
      return { body, before: { values: before, columns: columnsOf(charter, offer.stage) } };
    },
    (reason) => ["sums.unsplit", { reason }],
  );

/** The message of the plan's stage; after the first it covers the supported items.
 * @type {(charter: SecureConfig, stage: number, model: Model, profile: Int32Array, chances: Uint16Array) => Int32Array<ArrayBuffer>} */
function planned(charter, stage, model, profile, chances) {
  if (!stage) return privateMessage(stage, charter.items, profile, null, chances);
  const items = supportedItems(charter.min_support ?? 1, model.weights);
  const rows = rowsOfItems(model, items);
  return privateMessage(stage, items.length, coveredBy(items, profile), directionsOf(rows), chances);
}

/** Whether a round's messages carry counts or popularity only.
 * @type {(terms: Terms) => boolean} */
export const asksForCounts = ({ charter, offer }) => isCounting(charter, offer.stage);

/** By what the helper's record of a round names its offer.
 * @type {(terms: Terms) => Promise<string>} */
export const roundConfigName = async ({ offer }) => hexOf(await roundConfigDigest(offer));

/** The random id of an upload, from its bytes.
 * @type {(body: Bytes) => string} */
export const idOf = (body) => hexOf(body.subarray(8, 8 + ID_BYTES));

/** Refuse a message that, with those before it, would tell more than was promised; `sent` are the noises on them.
 * @type {(terms: Terms, sent: number[]) => void} */
export function refuseBeyondPromise({ charter, offer }, sent) {
  const told = [...sent, offer.noise].reduce((sum, noise) => sum + (noise ? (charter.bound / noise) ** 2 : 0), 0);
  if (Number.isFinite(mostTold(charter)) && told > mostTold(charter) * (1 + 1e-9))
    throw new BadAnswer(["sums.beyond-promise"]);
}

/** What a charter promises somebody who sends so many messages, at a page of this address.
 * @type {(charter: SecureConfig, messages: number, page: string) => Promise<Promised>} */
export async function promisedBy(charter, messages, page) {
  const [mine, theirs] = [page, charter.helper_origin].map((address) => {
    const { hostname } = new URL(address);
    return ["localhost", "127.0.0.1", "[::1]"].includes(hostname) ? HERE : hostname;
  });
  // Whichever of the plan's messages they are: those with the least noise tell most.
  const quietest = charter.noises.map((noise) => noise / charter.bound).sort((one, other) => one - other);
  quietest.length = Math.min(messages, quietest.length);
  return {
    helper: charter.helper_origin,
    fingerprint: await fingerprint(hexadecimal(charter.helper_key, PUBLIC_BYTES, "helper.key")),
    together: mine !== theirs ? null : mine === HERE ? "machine" : "host",
    leastCohort: charter.least_cohort,
    epsilon: charter.noises.includes(0) ? null : epsilonOfMu(muOfNoise(quietest), Number(charter.delta)),
    delta: Number(charter.delta),
  };
}

/** What is read, or a sentence about why it cannot be used.
 * @template T
 * @param {() => Promise<T>} reading
 * @param {(reason: Said) => Said} [sentence]
 * @returns {Promise<T>} */
async function read(reading, sentence = (reason) => ["sums.charter-unusable", { reason }]) {
  try {
    return await reading();
  } catch (fault) {
    if (fault instanceof BadMessage) throw new BadAnswer(sentence(fault.said));
    throw fault;
  }
}
