/* The offer (protocol/sums/offer.py): what the helper signs once a round, the same for everybody.

A device takes it if the key that it pinned has signed it, if the charter is the one that it pinned, and if model and block are
those in its hands. So a leader cannot single a person out by another model, another block or another key.
*/

import { BadMessage } from "../wire.js";
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
import { PUBLIC_BYTES, SIGNATURE_BYTES, publicKey, verify } from "./identities.js";

/** @import { Bytes } from "./canonical.js" */
/** @import { SumsCharter } from "./charter.js" */

/** @typedef {{ charter: string, round: number, version: number, model: string, block: string, length: number, key: string,
 *   expires: number }} Offer */

export const CLOCKS_APART = 600; // seconds by which a device's clock may be ahead of the helper's

const FIELDS = {
  charter: "string",
  round: "number",
  version: "number",
  model: "string",
  block: "string",
  length: "number",
  key: "string",
  expires: "number",
};

/** What every report of the round is tied to.
 * @type {(offer: Offer) => Promise<Bytes>} */
export const offerDigest = (offer) => digest("offer", bytesOf(canonical(offer)));

/** An offer from the wire, if the helper has signed it.
 * @type {(bytes: Uint8Array, helper: Bytes) => Promise<Offer>} */
export async function readOffer(bytes, helper) {
  const told = readCanonical(bytes, "An offer");
  hasFields(told, "An offer", { offer: "object", signature: "string" });
  const { offer } = told;
  hasFields(offer, "An offer", FIELDS);
  const signature = hexadecimal(told.signature, SIGNATURE_BYTES, "The signature of an offer");
  await verify(helper, "offer", bytesOf(canonical(offer)), signature);
  for (const name of ["charter", "model", "block"]) hexadecimal(offer[name], 32, `The ${name} of an offer`);
  await publicKey(hexadecimal(offer.key, PUBLIC_BYTES, "The key of an offer"), "ECDH", []);
  if (Math.min(offer.round, offer.version, offer.expires) < 0 || offer.length < 1)
    throw new BadMessage(
      "The round, the version and the time of an offer are not negative, and its length is above 0.",
    );
  return /** @type {Offer} */ (offer);
}

/** d: a row for each item of the block, and the square of a row.
 * @type {(block: number, columns: number) => number} */
export const messageLength = (block, columns) => (block + columns) * columns;

/** Which items a round's messages cover.
 * @type {(block: Int32Array) => Promise<Bytes>} */
export const blockDigest = (block) => digest("block", inMemory(block));

/** The model as devices read it: every row, every item's weight, and lambda.
 * @type {(version: number, regulariser: number, weights: Float32Array, vectors: Float32Array) => Promise<Bytes>} */
export function modelDigest(version, regulariser, weights, vectors) {
  const about = new DataView(new ArrayBuffer(16));
  about.setBigUint64(0, BigInt(version), true);
  about.setFloat64(8, regulariser, true);
  return digest("model", joined(new Uint8Array(about.buffer)), inMemory(weights), inMemory(vectors));
}

/** Refuse an offer that is not about this charter, this model and this block, or that has expired.
 * @type {(offer: Offer, charter: SumsCharter, model: Uint8Array, block: Int32Array, now: number) => Promise<void>} */
export async function checkOffer(offer, charter, model, block, now) {
  if (offer.charter !== hexOf(await digest("charter", bytesOf(canonical(charter)))))
    throw new BadMessage("The offer belongs to another charter than the one that was pinned; nothing is sent.");
  if (offer.model !== hexOf(model))
    throw new BadMessage("The offer is about another model than the one that the leader gave; nothing is sent.");
  const covered = hexOf(await blockDigest(block));
  if (offer.block !== covered || offer.length !== messageLength(block.length, charter.columns))
    throw new BadMessage("The offer is about another block of the catalogue than the round's; nothing is sent.");
  if (now > offer.expires + CLOCKS_APART)
    throw new BadMessage("The offer has expired; nothing is sent. The next round has another one.");
}
