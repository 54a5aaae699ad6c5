/* Sealing (protocol/sums/sealing.py): HPKE's base mode, RFC 9180, with WebCrypto alone.

The suite is DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. What comes out is the encapsulated key (65 bytes) and then the
ciphertext. Everything that HKDF gives here is at most as long as one HMAC, so its second half is one HMAC.
*/

import { bytesOf, joined } from "./canonical.js";
import { publicKey } from "./identities.js";

/** @import { Bytes } from "./canonical.js" */

export const SUITE = "DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM";
export const OVERHEAD = 65 + 16;

const KEM = joined(bytesOf("KEM"), [0, 0x10]);
const HPKE = joined(bytesOf("HPKE"), [0, 0x10, 0, 1, 0, 1]);
const NOTHING = new Uint8Array(0);

/** @type {(key: Bytes, content: Bytes) => Promise<Bytes>} */
async function hmac(key, content) {
  // An empty key is the same as one of zeros, and WebCrypto takes only the second.
  const raw = key.length ? key : new Uint8Array(32);
  const made = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, content));
}

/** @type {(suite: Bytes, salt: Bytes, label: string, secret: Bytes) => Promise<Bytes>} */
const labeledExtract = (suite, salt, label, secret) =>
  hmac(salt, joined(bytesOf("HPKE-v1"), suite, bytesOf(label), secret));

/** @type {(suite: Bytes, secret: Bytes, label: string, about: Bytes, length: number) => Promise<Bytes>} */
async function labeledExpand(suite, secret, label, about, length) {
  const named = joined([length >> 8, length & 255], bytesOf("HPKE-v1"), suite, bytesOf(label), about, [1]);
  return (await hmac(secret, named)).slice(0, length);
}

/** Content that only the holder of this public key's private key can open. `ephemeral` is the sender's own pair of keys for this
 * one time; it is handed in by tests alone.
 * @type {(key: Bytes, info: Bytes, content: Bytes, ephemeral?: CryptoKeyPair, aad?: Bytes) => Promise<Bytes>} */
export async function seal(key, info, content, ephemeral, aad = NOTHING) {
  const theirs = await publicKey(key, "ECDH", []);
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const mine = ephemeral ?? (await crypto.subtle.generateKey(curve, true, ["deriveBits"]));
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", mine.publicKey));
  const agreed = await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, mine.privateKey, 256);
  const extracted = await labeledExtract(KEM, NOTHING, "eae_prk", new Uint8Array(agreed));
  const shared = await labeledExpand(KEM, extracted, "shared_secret", joined(enc, key), 32);
  const about = joined(
    [0],
    await labeledExtract(HPKE, NOTHING, "psk_id_hash", NOTHING),
    await labeledExtract(HPKE, NOTHING, "info_hash", info),
  );
  const secret = await labeledExtract(HPKE, shared, "secret", NOTHING);
  const raw = await labeledExpand(HPKE, secret, "key", about, 16);
  const iv = await labeledExpand(HPKE, secret, "base_nonce", about, 12);
  const aes = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: aad }, aes, content);
  return joined(enc, new Uint8Array(sealed));
}
