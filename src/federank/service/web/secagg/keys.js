/* Identities (secagg/keys.py): whether a server's key has signed a statement. ECDSA on P-256 with SHA-256.

A device signs nothing. It compares fingerprints, and follows from an old key to a new one if the old one has signed for it.
*/

import { BadMessage } from "../federation/wire.js";
import { PUBLIC_BYTES } from "../schemas.js";
import { bytesOf, digest, hexOf, joined } from "./canonical.js";

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
    // Reported below.
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

// Sealing (secagg/keys.py): HPKE's base mode, RFC 9180, with WebCrypto alone.

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
