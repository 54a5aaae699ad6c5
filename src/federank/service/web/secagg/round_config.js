/* The offer (protocol/sums/offer.py): what the helper signs once a round, the same for everybody.

A device takes it if the key that it pinned has signed it, if the charter is the one that it pinned, if stage, clip, scale and noise
are of the charter's plan, and if the model is the one in its hands. So a leader cannot single a person out by another model,
another key or less noise.
*/

import { BadMessage } from "../federation/wire.js";
import {
  bytesOf,
  canonical,
  digest,
  hasFields,
  hexOf,
  hexadecimal,
  inMemory,
  joined,
  readCanonical,
} from "./canonical.js";
import { allowsLength, columnsOf, lengthOf } from "./config.js";
import { PUBLIC_BYTES, SIGNATURE_BYTES, publicKey, verify } from "./keys.js";

/** @import { Bytes } from "./canonical.js" */
/** @import { SecureConfig } from "./config.js" */

/** @typedef {{ charter: string, round: number, version: number, model: string, length: number, stage: number,
 *   columns: number, clip: string, scale: number, noise: number, key: string, expires: number }} RoundConfig */

export const CLOCKS_APART = 600; // seconds by which a device's clock may be ahead of the helper's

const FIELDS = {
  charter: "string",
  round: "number",
  version: "number",
  model: "string",
  length: "number",
  stage: "number",
  columns: "number",
  clip: "string",
  scale: "number",
  noise: "number",
  key: "string",
  expires: "number",
};

/** What every report of the round is tied to.
 * @type {(offer: RoundConfig) => Promise<Bytes>} */
export const roundConfigDigest = (offer) => digest("offer", bytesOf(canonical(offer)));

/** An offer from the wire, if the helper has signed it.
 * @type {(bytes: Uint8Array, helper: Bytes) => Promise<RoundConfig>} */
export async function readRoundConfig(bytes, helper) {
  const told = readCanonical(bytes, "offer");
  hasFields(told, "offer", { offer: "object", signature: "string" });
  const { offer } = told;
  hasFields(offer, "offer", FIELDS);
  const signature = hexadecimal(told.signature, SIGNATURE_BYTES, "offer.signature");
  await verify(helper, "offer", bytesOf(canonical(offer)), signature);
  for (const name of ["charter", "model"]) hexadecimal(offer[name], 32, `offer.${name}`);
  await publicKey(hexadecimal(offer.key, PUBLIC_BYTES, "offer.key"), "ECDH", []);
  if (Math.min(offer.round, offer.version, offer.stage, offer.noise, offer.expires) < 0 || offer.length < 1)
    throw new BadMessage(["offer.numbers"]);
  return /** @type {RoundConfig} */ (offer);
}

/** The model as devices read it: every row, every item's weight, and lambda.
 * @type {(version: number, regulariser: number, weights: Float32Array, vectors: Float32Array) => Promise<Bytes>} */
export function modelDigest(version, regulariser, weights, vectors) {
  const about = new DataView(new ArrayBuffer(16));
  about.setBigUint64(0, BigInt(version), true);
  about.setFloat64(8, regulariser, true);
  return digest("model", joined(new Uint8Array(about.buffer)), inMemory(weights), inMemory(vectors));
}

const DTYPES = { Int8Array: "int8", Int32Array: "int32", Float32Array: "float32" };

/** The model of any other method: every array by its name in Python.
 * @type {(version: number, arrays: Record<string, Int8Array | Int32Array | Float32Array>) => Promise<Bytes>} */
export function methodModelDigest(version, arrays) {
  const about = new DataView(new ArrayBuffer(8));
  about.setBigUint64(0, BigInt(version), true);
  const parts = Object.keys(arrays)
    .sort()
    .flatMap((name) => {
      const dtype = DTYPES[/** @type {keyof typeof DTYPES} */ (arrays[name].constructor.name)];
      return [bytesOf(name), bytesOf(dtype), inMemory(arrays[name])];
    });
  return digest("method-model", joined(new Uint8Array(about.buffer)), ...parts);
}

/** Refuse an offer that is not about this charter and this model, or that has expired. `rows` is how many items the model has that
uploads may cover; null where that is not known.
 * @type {(offer: RoundConfig, charter: SecureConfig, model: Uint8Array, now: number, rows?: number | null) => Promise<void>} */
export async function checkRoundConfig(offer, charter, model, now, rows = null) {
  if (offer.charter !== hexOf(await digest("charter", bytesOf(canonical(charter)))))
    throw new BadMessage(["offer.charter"]);
  if (offer.model !== hexOf(model)) throw new BadMessage(["offer.model"]);
  const planned = [columnsOf(charter, offer.stage), charter.clip, charter.bound, charter.noises[offer.stage]];
  const asked = [offer.columns, offer.clip, offer.scale, offer.noise];
  if (offer.stage >= charter.messages || asked.some((value, place) => value !== planned[place]))
    throw new BadMessage(["offer.plan"]);
  const fits = allowsLength(charter, offer.stage, offer.length);
  if (!fits || (rows !== null && offer.length !== lengthOf(charter, offer.stage, rows)))
    throw new BadMessage(["offer.length"]);
  if (now > offer.expires + CLOCKS_APART) throw new BadMessage(["offer.expired"]);
}

// Records (protocol/sums/records.py): what a server has signed of a round that has ended. A device reads the helper's.

/** @typedef {{ charter: string, offer: string, round: number, state: string, messages: number, set: string, sum: string,
 *   model: string, people: number }} RoundRecord */

export const FOLDED = "folded";
export const ABANDONED = "abandoned"; // it has ended without a sum, and there will never be one

const RECORD_FIELDS = {
  charter: "string",
  offer: "string",
  round: "number",
  state: "string",
  messages: "number",
  set: "string",
  sum: "string",
  model: "string",
  people: "number",
};

/** A record, if the server of this public key has signed it.
 * @type {(bytes: Uint8Array, server: Bytes) => Promise<RoundRecord>} */
export async function readRecord(bytes, server) {
  const told = readCanonical(bytes, "record");
  hasFields(told, "record", { record: "object", signature: "string" });
  const { record } = told;
  hasFields(record, "record", RECORD_FIELDS);
  const signature = hexadecimal(told.signature, SIGNATURE_BYTES, "record.signature");
  await verify(server, "record", bytesOf(canonical(record)), signature);
  if (![FOLDED, ABANDONED].includes(record.state)) throw new BadMessage(["statement.no-form"]);
  return /** @type {RoundRecord} */ (record);
}
