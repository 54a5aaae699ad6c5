/* Masks (secagg/ring.py): from 32 bytes, as many words of the ring as a message has, by AES-128 in counter mode.

The ring is the integers mod 2^32. The AES key comes from seed and context by HKDF-SHA256; it is used once, so its counter
starts at zero.
*/

import { BadMessage } from "../federation/wire.js";
import { C_INT } from "../schemas.js";
import { bytesOf } from "./canonical.js";

export const SEED_BYTES = 32;

const BLOCK = 16;

/** The bytes that follow from a secret in one context for one purpose, as they are asked for. */
export class KeyStream {
  #key;
  #at = 0;

  /** @param {CryptoKey} key */
  constructor(key) {
    this.#key = key;
  }

  /** @type {(secret: Bytes, context: Bytes, purpose: string) => Promise<KeyStream>} */
  static async from(secret, context, purpose) {
    const material = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
    const how = { name: "HKDF", hash: "SHA-256", salt: context, info: bytesOf(`federank sums 1 ${purpose}`) };
    const kind = { name: "AES-CTR", length: 128 };
    return new KeyStream(await crypto.subtle.deriveKey(how, material, kind, false, ["encrypt"]));
  }

  /** @type {(length: number) => Promise<Bytes>} */
  async next(length) {
    const over = this.#at % BLOCK;
    const counter = new Uint8Array(BLOCK);
    new DataView(counter.buffer).setUint32(BLOCK - 4, (this.#at - over) / BLOCK);
    this.#at += length;
    const counting = { name: "AES-CTR", counter, length: 128 };
    const stream = await crypto.subtle.encrypt(counting, this.#key, new Uint8Array(over + length));
    return new Uint8Array(over ? stream.slice(over) : stream);
  }
}

/** The mask of this seed in this context: so many elements of the ring.
 * @type {(seed: Bytes, context: Bytes, length: number) => Promise<Uint32Array<ArrayBuffer>>} */
export async function mask(seed, context, length) {
  const stream = await KeyStream.from(seed, context, "mask");
  return new Uint32Array((await stream.next(4 * length)).buffer);
}

// Rounding (secagg/ring.py): a message becomes integers of bounded length.

const SHRINKING = 1 - 2 ** -12;

/** The message as integers of norm at most C_INT; `chances` are uniform 16-bit words, one for each number.
 * @type {(values: Float64Array | Float32Array, clip: number, chances: Uint16Array) => Int32Array<ArrayBuffer>} */
export function roundMessage(values, clip, chances) {
  let squares = 0;
  for (let index = 0; index < values.length; index++) squares += values[index] * values[index];
  const norm = Math.sqrt(squares);
  if (!Number.isFinite(norm)) throw new BadMessage(["upload.finite"]);
  return rounded(values, C_INT / Math.max(clip, norm), chances);
}

/** The values times a factor, up or down by their chances, and shorter until their norm is at most C_INT.
 * @type {(values: Float64Array | Float32Array, first: number, chances: Uint16Array) => Int32Array<ArrayBuffer>} */
export function rounded(values, first, chances) {
  const integers = new Int32Array(values.length);
  for (let factor = first; ;) {
    let length = 0;
    for (let index = 0; index < values.length; index++) {
      integers[index] = Math.floor(values[index] * factor + chances[index] * 2 ** -16);
      length += integers[index] * integers[index];
    }
    if (length <= C_INT * C_INT) return integers;
    factor *= (C_INT / Math.sqrt(length)) * SHRINKING;
  }
}
