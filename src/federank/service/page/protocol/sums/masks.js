/* Masks (protocol/sums/masks.py): from 32 bytes, as many words of the ring as a message has, by AES-128 in counter mode.

The ring is the whole numbers mod 2^32. The AES key comes from seed and context by HKDF-SHA256; it is used once, so its counter
starts at zero.
*/

import { bytesOf } from "./canonical.js";

/** @import { Bytes } from "./canonical.js" */

export const SEED_BYTES = 32;

/** The mask of this seed in this context: so many elements of the ring.
 * @type {(seed: Bytes, context: Bytes, length: number) => Promise<Uint32Array<ArrayBuffer>>} */
export async function mask(seed, context, length) {
  const secret = await crypto.subtle.importKey("raw", seed, "HKDF", false, ["deriveKey"]);
  const how = { name: "HKDF", hash: "SHA-256", salt: context, info: bytesOf("federank sums 1 mask") };
  const key = await crypto.subtle.deriveKey(how, secret, { name: "AES-CTR", length: 128 }, false, ["encrypt"]);
  const counting = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  return new Uint32Array(await crypto.subtle.encrypt(counting, key, new Uint8Array(4 * length)));
}
