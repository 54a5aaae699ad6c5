/* The device's message (secagg/upload.py): integers in, an upload out that neither server can read alone.

    context  H("report", round config, id)                  what everything else of the report is tied to
    share    x - mask(seed, context)                 for the leader: uniform, whatever x is
    part_L   H("leader", context, blind, share)      what the leader can recompute; the blind defeats guesses
    part_H   H("helper", context, seed)              what the helper can recompute
    sealed   HPKE(seed || part_L)                    for the helper, with info H("seal", round config, id)

An upload has the same length for every client. From the same inputs it is the same bytes as Python's.
*/

import { BadMessage } from "../federation/wire.js";
import { bytesOf, digest, hexadecimal, inMemory, joined } from "./canonical.js";
import { C_INT, PUBLIC_BYTES } from "../schemas.js";
import { seal } from "./keys.js";
import { SEED_BYTES, mask } from "./ring.js";
import { roundConfigDigest } from "./round_config.js";

/** What a device draws for one report; it is stored nowhere and never disclosed.
 * @typedef {{ id: Bytes, seed: Bytes, blind: Bytes }} Secrets */

export const ID_BYTES = 16;
const BLIND_BYTES = 16;
const NO_PROOF = { share: new Uint32Array(0), partWires: new Uint8Array(0) };
const MOST_AT_ONCE = 65_536; // bytes that a browser draws in one go

/** @type {(length: number) => Bytes} */
export function systemRandom(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += MOST_AT_ONCE) crypto.getRandomValues(bytes.subarray(at, at + MOST_AT_ONCE));
  return bytes;
}

/** @type {() => Secrets} */
export const newSecrets = () => ({
  id: systemRandom(ID_BYTES),
  seed: systemRandom(SEED_BYTES),
  blind: systemRandom(BLIND_BYTES),
});

/** @type {(length: number) => Uint16Array} */
export const roundingChances = (length) => new Uint16Array(systemRandom(2 * length).buffer);

/** A message in two, and what everything else of its report is tied to.
 * @typedef {{ context: Bytes, mask: Uint32Array<ArrayBuffer>, share: Uint32Array<ArrayBuffer>, partLeader: Bytes,
 *   partHelper: Bytes, key: Bytes, info: Bytes }} Split */

/** What the leader gets of a proof of the norm (proof.js), and what is sealed for the helper.
 * @typedef {{ share: Uint32Array<ArrayBuffer>, partWires: Bytes }} Proof */

/** Split a message of integers in two; it is refused where its norm is more than the bound.
 * @type {(roundConfig: RoundConfig, message: Int32Array, secrets: Secrets) => Promise<Split>} */
export async function splitMessage(roundConfig, message, { id, seed, blind }) {
  if (message.length !== roundConfig.length)
    throw new BadMessage(["upload.length", { needed: roundConfig.length, actual: message.length }]);
  let squares = 0;
  for (let index = 0; index < message.length; index++) squares += message[index] * message[index];
  if (squares > C_INT * C_INT) throw new BadMessage(["upload.norm", { most: C_INT }]);
  const terms = await roundConfigDigest(roundConfig);
  const context = await digest("report", terms, id);
  const hidden = await mask(seed, context, roundConfig.length);
  const share = new Uint32Array(roundConfig.length);
  for (let index = 0; index < share.length; index++) share[index] = message[index] - hidden[index];
  return {
    context,
    mask: hidden,
    share,
    partLeader: await digest("leader", context, blind, inMemory(share)),
    partHelper: await digest("helper", context, seed),
    key: hexadecimal(roundConfig.key, PUBLIC_BYTES, "round-config.key"),
    info: await digest("seal", terms, id),
  };
}

/** A message of integers as the bytes of an upload; it is refused where its norm is more than the bound.
 * @type {(roundConfig: RoundConfig, message: Int32Array, secrets: Secrets, ephemeral?: CryptoKeyPair) => Promise<Bytes>} */
export const makeUpload = async (roundConfig, message, secrets, ephemeral) =>
  assembled("FRSUMS01", secrets, await splitMessage(roundConfig, message, secrets), ephemeral);

/** The bytes of an upload: a header with what is sealed for the helper, then what the leader reads, from a multiple of four bytes on.
 * @type {(magic: string, secrets: Secrets, split: Split, ephemeral?: CryptoKeyPair, proof?: Proof) => Promise<Bytes>} */
export async function assembled(magic, { id, seed, blind }, split, ephemeral, proof = NO_PROOF) {
  const sealed = await seal(split.key, split.info, joined(seed, split.partLeader, proof.partWires), ephemeral);
  const header = joined(bytesOf(magic), id, blind, split.partHelper, sealed);
  return joined(header, new Uint8Array(-header.length & 3), inMemory(split.share), inMemory(proof.share));
}
