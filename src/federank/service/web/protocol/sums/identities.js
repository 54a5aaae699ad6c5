/* Identities (protocol/sums/identities.py): whether a server's key has signed a statement. ECDSA on P-256 with SHA-256.

A device signs nothing. It compares fingerprints, and follows from an old key to a new one if the old one has signed for it.
*/

import { BadMessage } from "../wire.js";
import { digest, hexOf, joined } from "./canonical.js";

/** @import { Bytes } from "./canonical.js" */

export const PUBLIC_BYTES = 65;
export const SIGNATURE_BYTES = 64;

/** Refuse a signature that this key has not made of this content for this purpose.
 * @type {(key: Bytes, purpose: string, content: Uint8Array, signature: Bytes) => Promise<void>} */
export async function verify(key, purpose, content, signature) {
  const theirs = await publicKey(key, "ECDSA", ["verify"]);
  const signed = await digest(`sign ${purpose}`, content);
  if (!(await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, theirs, signature, signed)))
    throw new BadMessage(["key.signature", { purpose, key: await fingerprint(key) }]);
}

/** A public key as WebCrypto wants it, if it is a point of the curve.
 * @type {(key: Bytes, name: "ECDSA" | "ECDH", uses: KeyUsage[]) => Promise<CryptoKey>} */
export async function publicKey(key, name, uses) {
  try {
    if (key.length === PUBLIC_BYTES && key[0] === 4)
      return await crypto.subtle.importKey("raw", key, { name, namedCurve: "P-256" }, true, uses);
  } catch {
    // Told below.
  }
  throw new BadMessage(["key.point"]);
}

/** What people compare: 128 bits of a digest of the key, in groups of four digits.
 * @type {(key: Uint8Array) => Promise<string>} */
export async function fingerprint(key) {
  const digits = hexOf(await digest("fingerprint", key)).slice(0, 32);
  return digits.match(/.{4}/g)?.join(" ") ?? "";
}

/** Refuse a new key that the old one has not signed for.
 * @type {(old: Bytes, successor: Bytes, signature: Bytes) => Promise<void>} */
export async function verifySuccessor(old, successor, signature) {
  await publicKey(successor, "ECDSA", ["verify"]);
  await verify(old, "successor", joined(old, successor), signature);
}

/** The key that stands for a pinned one now: from old to new, by what each old key has signed, in this order.
 * @type {(pinned: Bytes, successions: [old: Bytes, successor: Bytes, signature: Bytes][]) => Promise<Bytes>} */
export async function follow(pinned, successions) {
  let now = pinned;
  for (const [old, successor, signature] of successions)
    if (hexOf(old) === hexOf(now)) {
      await verifySuccessor(old, successor, signature);
      now = successor;
    }
  return now;
}
