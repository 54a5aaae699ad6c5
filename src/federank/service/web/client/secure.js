/* Messages that no single server can read, on this device: what it pins, what it checks, how a message is split.

The config of sums comes from the leader, which is the server that this page came from. When the owner takes part, the helper's key
is fetched from the helper's own address; it must be the config's, and from then on no other config is trusted. Before a message is
made, the round config is checked: signed by the helper, about this config, about the model at hand. What is stored until it is
sent is already the upload, which the leader cannot read. The twin of this file is service/client/secure.py.

A federation that is begun again must name the same helper and guarantee no less: no more messages, no less noise, no smaller cohorts.
*/

import { BadAnswer, NoAnswer, bytesOf, jsonOf, request } from "./http.js";
import { MOST_SMALL_BYTES, PUBLIC_BYTES, SIGNATURE_BYTES } from "../schemas.js";
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
  configDigest,
  checkParameters,
  checkSigned,
  columnsOf,
  configFrom,
  isCounting,
  mostDisclosed,
} from "../secagg/config.js";
import { fingerprint, follow } from "../secagg/keys.js";
import { sendChecked } from "../secagg/proof.js";
import { roundMessage } from "../secagg/ring.js";
import {
  ABANDONED,
  AGGREGATED,
  checkRoundConfig,
  modelDigest,
  roundConfigDigest,
  readRoundConfig,
  readRecord,
} from "../secagg/round_config.js";
import { ID_BYTES, makeUpload, newSecrets, roundingChances } from "../secagg/upload.js";

const HERE = "localhost";
/** @type {Record<string, string | number>} */
const UNSAID = { activity: 0, item_weights: "none" }; // what is meant where a federation leaves it open
const OF_FRUGAL = [
  "factors",
  "messages",
  "alpha",
  "unobserved_weight",
  "activity",
  "clip",
  "min_support",
  "item_weights",
];

/** What a config of sums must say of a method, which of its settings are published (null: all of them), by what a round config
names a model, and how many items uploads on a model cover (null: all).
 * @typedef {{ published: string[] | null, recipe: string, columns: number, clip: number, messages: number, minSupport: number,
 *   rows: (model: Model) => number | null, digest: (model: Model) => Promise<Bytes> }} MethodTerms */

/** On what terms a round's messages are split.
 * @typedef {{ config: SecureConfig, roundConfig: RoundConfig }} Terms */

/** @type {(model: Model) => Promise<Bytes>} */
const frugalDigest = ({ version, regulariser, weights, vectors, itemWeights = {} }) => {
  const ridge = Object.entries(itemWeights).filter(([, values]) => values.length);
  const parts = { vectors, weights, regulariser: Float64Array.of(regulariser) };
  return modelDigest(version ?? 0, {
    ...parts,
    ...Object.fromEntries(ridge.map(([name, part]) => [`ridge_${name}`, part])),
  });
};

/** @type {(model: Model) => Promise<Bytes>} */
const fedrecDigest = ({ version, iteration, weights, vectors }) =>
  modelDigest(version ?? 0, { vectors, reported: Int8Array.from(weights), iteration: Int32Array.of(iteration) });

/** @type {(info: FederationInfo) => MethodTerms} */
function termsOf({ method, recipe }) {
  const { factors, messages, uploads_per_client: uploads, clip = null, min_support: minSupport = 1 } = recipe;
  if (method.startsWith("frugal")) {
    const rows = (/** @type {Model} */ { weights }) => supportedItems(minSupport, weights).length;
    const frugal = { published: OF_FRUGAL, messages, minSupport, rows, digest: frugalDigest };
    // Without a clip the plan's own messages are sent, of length 1; with one, Frugal's, clipped to it.
    return clip === null
      ? { ...frugal, recipe: PRIVATE, columns: factors - 1, clip: 1 }
      : { ...frugal, recipe: SPECTRAL, columns: factors + 1, clip };
  }
  const columns = columnsOfGradients(factors);
  const ofRatings = { published: null, minSupport: 1, rows: () => null, digest: fedrecDigest };
  return { ...ofRatings, recipe: GRADIENTS, columns, clip, messages: uploads };
}

/** The leader's config, if it is of the federation that the leader says this is; null where the browser cannot check it
(WebCrypto is there on https and on this very machine alone), and then nothing is sent either.
 * @type {(info: FederationInfo) => Promise<SecureConfig | null>} */
export async function fetchConfig(info) {
  if (!globalThis.crypto?.subtle) return null;
  const [content, text] = ["config", "settings"].map((name) => new TextEncoder().encode(String(info.sums?.[name])));
  const config = await read(() => configFrom(content));
  const settings = await read(async () => readCanonical(text, "settings"));
  const { recipe } = info;
  const summed = termsOf(info);
  /** @type {(name: string) => unknown} */
  const expected = (name) =>
    typeof settings[name] === "string" && typeof recipe[name] === "number"
      ? Number(settings[name])
      : (settings[name] ?? UNSAID[name] ?? null);
  const fits =
    hexOf(await digest("settings", text)) === config.settings &&
    (summed.published ?? Object.keys(settings)).every(
      (name) => expected(name) === (recipe[name] ?? UNSAID[name] ?? null),
    ) &&
    config.federation_id === info.federation_id &&
    config.season === seasonOf(info) &&
    config.until === untilOf(info) &&
    config.items === info.items &&
    config.recipe === summed.recipe &&
    config.columns === summed.columns &&
    (config.min_support ?? 1) === summed.minSupport &&
    config.messages === summed.messages &&
    Number(config.clip) === summed.clip;
  if (!fits) throw new BadAnswer(["sums.another-federation"]);
  return config;
}

/** The items that this browser has received must be those of the config: the same for every client, to the last byte.
 * @type {(config: SecureConfig, content: Uint8Array<ArrayBuffer>) => Promise<void>} */
export async function refuseAnotherList(config, content) {
  const sha256 = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", content));
  if (hexOf(sha256) !== config.catalogue) throw new BadAnswer(["sums.another-list"]);
}

/** What this device pins when it joins: the config, once it fits the helper, and the one that was pinned before.
 * @type {(config: SecureConfig, before: SecureConfig | undefined) => Promise<SecureConfig>} */
export async function pinned(config, before) {
  const now = await helperKey(config);
  await refuseUnsigned(config);
  if (!before || canonical(before) === canonical(config)) return config;
  const known = before.helper_key === config.helper_key || hexOf(await helperKey(before)) === hexOf(now);
  if (!known || before.helper_origin !== config.helper_origin)
    throw new BadAnswer(["fault.weaker", { code: "another-helper" }]);
  const weaker = [];
  if (config.messages > before.messages) weaker.push("more-messages");
  if (mostDisclosed(config) > mostDisclosed(before)) weaker.push("less-noise");
  if (config.least_cohort < before.least_cohort) weaker.push("smaller-cohorts");
  if (weaker.length) throw new BadAnswer(["fault.weaker", { code: weaker.join(", ") }]);
  return config;
}

/** Refuse a season that the leader's chain of configs does not lead to from the one that this device has pinned: each names the one
before it, and both servers have signed all of them.
 * @type {(before: SecureConfig, now: SecureConfig) => Promise<void>} */
export async function checkSeason(before, now) {
  const seasons = await signedSeasons();
  const keys = [hexadecimal(before.helper_key, PUBLIC_BYTES, "helper.key"), await helperKey(before)];
  await read(async () => {
    let known = before;
    for (const { config, signatures } of seasons)
      if (config.season > known.season && config.season <= now.season) {
        await checkFollows(known, config);
        await checkSigned(config, signatures, keys);
        known = config;
      }
    if (canonical(known) !== canonical(now)) throw new BadMessage(["config.season"]);
  });
}

/** The configs of all seasons with both servers' signatures, as the leader publishes them; these are not checked yet.
 * @type {() => Promise<{ config: SecureConfig, signatures: Bytes[] }[]>} */
async function signedSeasons() {
  const answer = Object(await jsonOf(await request("seasons")));
  return read(async () => {
    if (!Array.isArray(answer.seasons)) throw new BadMessage(["config.season"]);
    const seasons = [];
    for (const one of answer.seasons) {
      const { config: text = "", signatures = [] } = Object(one);
      const config = await configFrom(new TextEncoder().encode(String(text)));
      const [leader, helper] = [0, 1].map((n) => hexadecimal(signatures[n], SIGNATURE_BYTES, "season.signature"));
      seasons.push({ config, signatures: [leader, helper] });
    }
    return seasons;
  });
}

/** @type {(config: SecureConfig) => Promise<void>} */
async function refuseUnsigned(config) {
  const signed = (await signedSeasons()).find((one) => canonical(one.config) === canonical(config));
  const first = hexadecimal(config.helper_key, PUBLIC_BYTES, "helper.key");
  await read(async () => {
    if (!signed) throw new BadMessage(["config.season"]);
    await checkSigned(config, signed.signatures, [first, await helperKey(config)]);
  });
}

/** The helper's key of now, from the helper's own address: the config's, or one that it has signed for.
 * @type {(config: SecureConfig) => Promise<Bytes>} */
async function helperKey(config) {
  const { helper_origin: origin } = config;
  const first = hexadecimal(config.helper_key, PUBLIC_BYTES, "helper.key");
  const identity = await identityAt(origin);
  const { key, now } = await read(
    async () => {
      const steps = Array.isArray(identity?.successions) ? identity.successions : [];
      const chain = steps.map((/** @type {any} */ step) => [
        hexadecimal(step?.old, PUBLIC_BYTES, "successions.old"),
        hexadecimal(step?.new, PUBLIC_BYTES, "successions.new"),
        hexadecimal(step?.signature, SIGNATURE_BYTES, "successions.signature"),
      ]);
      return { key: hexadecimal(identity?.key, PUBLIC_BYTES, "helper.key"), now: await follow(first, chain) };
    },
    (reason) => ["sums.helper-silent", { origin, reason }],
  );
  if (hexOf(now) !== hexOf(key))
    throw new BadAnswer([
      "sums.helper-other",
      { named: await fingerprint(first), origin, actual: await fingerprint(key) },
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

/** The round config of a round, if the helper has signed it and it is about this config and this model.
 * @type {(config: SecureConfig, info: FederationInfo, model: Model, task: Task, signal: AbortSignal) => Promise<RoundConfig>} */
export async function fetchRoundConfig(config, info, model, { round, version }, signal) {
  const content = await bytesOf(await request(`sums/offer?round=${round}`, { signal }), MOST_SMALL_BYTES);
  return read(
    async () => {
      const roundConfig = await signedByHelper(readRoundConfig, content, config);
      const terms = termsOf(info);
      await checkRoundConfig(roundConfig, config, await terms.digest(model), Date.now() / 1000, terms.rows(model));
      if (roundConfig.round !== round || roundConfig.version !== version || model.version !== version)
        throw new BadMessage(["sums.other-round"]);
      return roundConfig;
    },
    (reason) => ["sums.round-config-untaken", { reason }],
  );
}

/** What the helper has signed, read with the key that it had when the config was made, or the one that it has now.
 * @type {<T>(reading: (content: Uint8Array, key: Bytes) => Promise<T>, content: Uint8Array, config: SecureConfig) => Promise<T>} */
async function signedByHelper(reading, content, config) {
  try {
    return await reading(content, hexadecimal(config.helper_key, PUBLIC_BYTES, "helper.key"));
  } catch (fault) {
    if (!(fault instanceof BadMessage)) throw fault;
    return reading(content, await helperKey(config));
  }
}

/** Whether this is the helper's signed record that the round of a round config has ended without a sum. The helper destroys a round's key
when it signs that: nothing can be learnt from the round's uploads any more.
 * @type {(config: SecureConfig, record: string, roundConfig: string | undefined, round: number) => Promise<boolean>} */
export async function showsNoSum(config, record, roundConfig, round) {
  return (await recordOf(config, record, roundConfig, round))?.state === ABANDONED;
}

/** Whether this is the helper's signed record of a sum, with the ids of all uploads in it, and this id is not one. The helper answers
once per round, so an upload that is not in this sum is in none.
 * @type {(config: SecureConfig, record: string, members: string, roundConfig: string | undefined, round: number, id: string | undefined) => Promise<boolean>} */
export async function showsAbsence(config, record, members, roundConfig, round, id) {
  const signed = await recordOf(config, record, roundConfig, round);
  if (signed?.state !== AGGREGATED || !id || !/^([0-9a-f]{32})*$/.test(members)) return false;
  const ids = (members.match(/.{32}/g) ?? []).toSorted();
  const set = await digest("set", ...ids.map((one) => hexadecimal(one, ID_BYTES, "id")));
  return hexOf(set) === signed.set && !ids.includes(id);
}

/** The helper's signed record of the round of a round config; null if this is not one.
 * @type {(config: SecureConfig, record: string, roundConfig: string | undefined, round: number) => Promise<RoundRecord | null>} */
async function recordOf(config, record, roundConfig, round) {
  try {
    const ended = await signedByHelper(readRecord, new TextEncoder().encode(record), config);
    const name = hexOf(await configDigest(config));
    return ended.config === name && ended.offer === roundConfig && ended.round === round ? ended : null;
  } catch (fault) {
    if (fault instanceof BadMessage) return null;
    throw fault;
  }
}

/** The upload of a message: rounded, split in two, sealed, with a proof of its norm where the config asks for one. The message itself goes no further than this. `values` are all numbers
of a message of Frugal's own recipe, or of ratings; the plan's are made here, from what the owner lets out.
 * @type {(terms: Terms, model: Model, profile: Int32Array, values: () => Float32Array) => Promise<{ body: Bytes, before: Before }>} */
export const split = ({ config, roundConfig }, model, profile, values) =>
  read(
    async () => {
      const chances = roundingChances(roundConfig.length);
      const integers =
        config.recipe === PRIVATE
          ? planned(config, roundConfig.stage, model, profile, chances)
          : isCounting(config, roundConfig.stage)
            ? Int32Array.from(values(), (count) => count * countUnit(config.items))
            : roundMessage(values(), Number(config.clip), chances);
      const body = config.projections
        ? await sendChecked(checkParameters(config.projections), roundConfig, integers)
        : await makeUpload(roundConfig, integers, newSecrets());
      const before = config.recipe === PRIVATE ? Float32Array.from(integers, Number) : values();
      const isPart = !isCounting(config, roundConfig.stage) && config.recipe !== GRADIENTS;
      const items = isPart ? supportedItems(config.min_support ?? 1, model.weights) : null;
      return { body, before: { values: before, columns: columnsOf(config, roundConfig.stage), items } };
    },
    (reason) => ["sums.unsplit", { reason }],
  );

/** The message of the plan's stage; after the first it covers the supported items.
 * @type {(config: SecureConfig, stage: number, model: Model, profile: Int32Array, chances: Uint16Array) => Int32Array<ArrayBuffer>} */
function planned(config, stage, model, profile, chances) {
  if (!stage) return privateMessage(stage, config.items, profile, null, chances);
  const items = supportedItems(config.min_support ?? 1, model.weights);
  const rows = rowsOfItems(model, items);
  return privateMessage(stage, items.length, coveredBy(items, profile), directionsOf(rows), chances);
}

/** @type {(terms: Terms) => boolean} */
export const asksForCounts = ({ config, roundConfig }) => isCounting(config, roundConfig.stage);

/** @type {(terms: Terms) => Promise<string>} */
export const roundConfigName = async ({ roundConfig }) => hexOf(await roundConfigDigest(roundConfig));

/** @type {(body: Bytes) => string} */
export const idOf = (body) => hexOf(body.subarray(8, 8 + ID_BYTES));

/** Refuse a message that, with those before it, would disclose more than was guaranteed; `sent` are the noises on them.
 * @type {(terms: Terms, sent: number[]) => void} */
export function refuseBeyondGuarantee({ config, roundConfig }, sent) {
  const disclosed = [...sent, roundConfig.noise].reduce(
    (sum, noise) => sum + (noise ? (config.bound / noise) ** 2 : 0),
    0,
  );
  if (Number.isFinite(mostDisclosed(config)) && disclosed > mostDisclosed(config) * (1 + 1e-9))
    throw new BadAnswer(["sums.beyond-guarantee"]);
}

/** What a config guarantees a client that sends n messages, at a page of this address.
 * @type {(config: SecureConfig, messages: number, page: string) => Promise<Guarantee>} */
export async function guaranteeOf(config, messages, page) {
  const [mine, theirs] = [page, config.helper_origin].map((address) => {
    const { hostname } = new URL(address);
    return ["localhost", "127.0.0.1", "[::1]"].includes(hostname) ? HERE : hostname;
  });
  // Whichever of the plan's messages they are: those with the least noise disclose most.
  const quietest = config.noises.map((noise) => noise / config.bound).sort((one, other) => one - other);
  quietest.length = Math.min(messages, quietest.length);
  return {
    helper: config.helper_origin,
    fingerprint: await fingerprint(hexadecimal(config.helper_key, PUBLIC_BYTES, "helper.key")),
    together: mine !== theirs ? null : mine === HERE ? "machine" : "host",
    leastCohort: config.least_cohort,
    epsilon: config.noises.includes(0) ? null : epsilonOfMu(muOfNoise(quietest), Number(config.delta)),
    delta: Number(config.delta),
  };
}

/** What is read, or a sentence about why it cannot be used.
 * @template T
 * @param {() => Promise<T>} reading
 * @param {(reason: Said) => Said} [sentence] */
async function read(reading, sentence = (reason) => ["sums.config-unusable", { reason }]) {
  try {
    return await reading();
  } catch (fault) {
    if (fault instanceof BadMessage) throw new BadAnswer(sentence(fault.said));
    throw fault;
  }
}
