/* Uploads that carry a proof of their norm (norm_check/upload.py).

    8 bytes `FRSUMS02`, id (16), blind (16), part_H (32), sealed (177), 3 zero bytes, share (4 d), proof (8 an element)
    sealed   HPKE(seed || part_L || part_W), with the same info

From the same inputs it is the same bytes as Python's.
*/

import { BadMessage } from "../../wire.js";
import { bytesOf, inMemory, joined } from "../canonical.js";
import { SEED_BYTES } from "../masks.js";
import { OVERHEAD, seal } from "../sealing.js";
import { BLIND_BYTES, ID_BYTES, PART_BYTES, newSecrets, splitMessage, systemRandom } from "../upload.js";
import { MOST_LENGTH } from "./parameters.js";
import { prove } from "./proving.js";

/** @import { Bytes } from "../canonical.js" */
/** @import { Offer } from "../offer.js" */
/** @import { Secrets } from "../upload.js" */
/** @import { Parameters } from "./parameters.js" */

const MAGIC = bytesOf("FRSUMS02");
const SEALED_BYTES = SEED_BYTES + 2 * PART_BYTES + OVERHEAD;
const HEADER_BYTES = Math.ceil((MAGIC.length + ID_BYTES + BLIND_BYTES + PART_BYTES + SEALED_BYTES) / 4) * 4;
const MOST_DRAWS = 8;

/** How many bytes an upload of this many numbers has.
 * @type {(parameters: Parameters, length: number) => number} */
const checkedBytes = (parameters, length) => HEADER_BYTES + 4 * length + parameters.proofBytes;

/** A message with its proof, as the bytes of an upload. Where its projections are by chance outside of what can be proved, secrets
 * are drawn again.
 * @type {(parameters: Parameters, offer: Offer, message: Int32Array) => Promise<Bytes>} */
export async function sendChecked(parameters, offer, message) {
  for (let draw = 0; draw < MOST_DRAWS; draw++) {
    const upload = await makeCheckedUpload(parameters, offer, message, newSecrets(), systemRandom(SEED_BYTES));
    if (upload) return upload;
  }
  throw new BadMessage(["upload.no-proof"]);
}

/** A message with its proof from these secrets, or null where they give none.
 * @type {(parameters: Parameters, offer: Offer, message: Int32Array, secrets: Secrets, proofSeed: Bytes,
 *   ephemeral?: CryptoKeyPair) => Promise<Bytes | null>} */
export async function makeCheckedUpload(parameters, offer, message, secrets, proofSeed, ephemeral) {
  if (message.length > MOST_LENGTH)
    throw new BadMessage(["upload.proof-length", { most: MOST_LENGTH, found: message.length }]);
  const split = await splitMessage(offer, message, secrets);
  const proof = await prove(parameters, split, secrets, proofSeed);
  if (!proof) return null;
  const inside = joined(secrets.seed, split.partLeader, proof.partWires);
  const sealed = await seal(split.key, split.info, inside, ephemeral);
  const upload = new Uint8Array(checkedBytes(parameters, offer.length));
  upload.set(joined(MAGIC, secrets.id, secrets.blind, split.partHelper, sealed));
  upload.set(inMemory(split.share), HEADER_BYTES);
  upload.set(inMemory(proof.share), HEADER_BYTES + 4 * offer.length);
  return upload;
}
