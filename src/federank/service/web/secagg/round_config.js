/* The round config (secagg/round_config.py; on the wire: the offer): what the helper signs once a round, the same for everybody.

A device takes it if the key that it pinned has signed it, if the config is the one that it pinned, if stage, clip, scale and noise
are of the config's plan, and if the model is the one in its hands. So a leader cannot single a user out by another model,
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
import { allowsLength, columnsOf, configDigest, lengthOf } from "./config.js";
import { CLOCKS_APART, PUBLIC_BYTES, SIGNATURE_BYTES, STATEMENTS } from "../schemas.js";
import { publicKey, verify } from "./keys.js";

/** What every report of the round is tied to.
 * @type {(roundConfig: RoundConfig) => Promise<Bytes>} */
export const roundConfigDigest = (roundConfig) => digest("offer", bytesOf(canonical(roundConfig)));

/** A statement of this kind, if the server of this public key has signed it.
 * @type {(kind: "offer" | "record", bytes: Uint8Array, server: Bytes) => Promise<any>} */
async function signedBy(kind, bytes, server) {
  const signed = readCanonical(bytes, kind);
  hasFields(signed, kind, { [kind]: "object", signature: "string" });
  const statement = signed[kind];
  hasFields(statement, kind, STATEMENTS[kind]);
  const signature = hexadecimal(signed.signature, SIGNATURE_BYTES, `${kind}.signature`);
  await verify(server, kind, bytesOf(canonical(statement)), signature);
  return statement;
}

/** @type {(bytes: Uint8Array, helper: Bytes) => Promise<RoundConfig>} */
export async function readRoundConfig(bytes, helper) {
  const roundConfig = await signedBy("offer", bytes, helper);
  const { round, version, stage, noise, expires, length } = roundConfig;
  for (const name of ["config", "model"]) hexadecimal(roundConfig[name], 32, `round-config.${name}`);
  await publicKey(hexadecimal(roundConfig.key, PUBLIC_BYTES, "round-config.key"), "ECDH", []);
  if (Math.min(round, version, stage, noise, expires) < 0 || length < 1) throw new BadMessage(["round-config.numbers"]);
  return roundConfig;
}

const DTYPES = { Int8Array: "int8", Int32Array: "int32", Float32Array: "float32", Float64Array: "float64" };

/** The model as devices read it: every array by its name in Python.
 * @type {(version: number, arrays: Record<string, Int8Array | Int32Array | Float32Array | Float64Array>) => Promise<Bytes>} */
export function modelDigest(version, arrays) {
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

/** Refuse a round config that is not about this config and this model, or that has expired. `rows` is how many items the model has that
uploads may cover; null where that is not known.
 * @type {(roundConfig: RoundConfig, config: SecureConfig, model: Uint8Array, now: number, rows?: number | null) => Promise<void>} */
export async function checkRoundConfig(roundConfig, config, model, now, rows = null) {
  if (roundConfig.config !== hexOf(await configDigest(config))) throw new BadMessage(["round-config.config"]);
  if (roundConfig.model !== hexOf(model)) throw new BadMessage(["round-config.model"]);
  const planned = [columnsOf(config, roundConfig.stage), config.clip, config.bound, config.noises[roundConfig.stage]];
  const offered = [roundConfig.columns, roundConfig.clip, roundConfig.scale, roundConfig.noise];
  if (roundConfig.stage >= config.messages || offered.some((value, place) => value !== planned[place]))
    throw new BadMessage(["round-config.plan"]);
  const fits = allowsLength(config, roundConfig.stage, roundConfig.length);
  if (!fits || (rows !== null && roundConfig.length !== lengthOf(config, roundConfig.stage, rows)))
    throw new BadMessage(["round-config.length"]);
  if (now > roundConfig.expires + CLOCKS_APART) throw new BadMessage(["round-config.expired"]);
}

// Records (secagg/exchange.py): what a server has signed of a round that has ended. A device reads the helper's.

export const AGGREGATED = "aggregated";
export const ABANDONED = "abandoned"; // it has ended without a sum, and there will never be one

/** @type {(bytes: Uint8Array, server: Bytes) => Promise<RoundRecord>} */
export async function readRecord(bytes, server) {
  const record = await signedBy("record", bytes, server);
  if (![AGGREGATED, ABANDONED].includes(record.state)) throw new BadMessage(["statement.no-form"]);
  return record;
}
