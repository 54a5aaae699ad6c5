/* What JavaScript makes of questions about sums that Python asks. Bytes travel as hexadecimal digits.

`node sums.mjs SUMS/INDEX.JS QUESTIONS.JSON` prints the answers; a refusal is an answer too.
*/

import { readFileSync } from "node:fs";

const sums = await import(process.argv[2]);
const { BadMessage } = await import(new URL("../wire.js", process.argv[2]).href);

const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("hex");

// WebCrypto reads a private key with its public one: both are told.
async function pair({ privateKey, publicKey }) {
  const part = (from, to) => Buffer.from(publicKey, "hex").subarray(from, to).toString("base64url");
  const told = { kty: "EC", crv: "P-256", x: part(1, 33), y: part(33, 65) };
  const d = Buffer.from(privateKey, "hex").toString("base64url");
  const curve = { name: "ECDH", namedCurve: "P-256" };
  return {
    privateKey: await crypto.subtle.importKey("jwk", { ...told, d }, curve, true, ["deriveBits"]),
    publicKey: await crypto.subtle.importKey("jwk", told, curve, true, []),
  };
}

const kinds = {
  canonical: ({ statement }) => sums.canonical(statement),
  read: ({ content }) => sums.canonical(sums.readCanonical(bytes(content), "It")),
  digest: async ({ label, parts }) => hex(await sums.digest(label, ...parts.map(bytes))),
  fingerprint: ({ key }) => sums.fingerprint(bytes(key)),
  verify: async ({ key, purpose, content, signature }) => {
    await sums.verify(bytes(key), purpose, bytes(content), bytes(signature));
    return "verified";
  },
  successor: async ({ old, successor, signature }) => {
    await sums.verifySuccessor(bytes(old), bytes(successor), bytes(signature));
    return "verified";
  },
  seal: async ({ key, info, content, ephemeral, aad }) =>
    hex(await sums.seal(bytes(key), bytes(info), bytes(content), ephemeral && (await pair(ephemeral)), bytes(aad))),
  mask: async ({ seed, context, length }) => hex(await sums.mask(bytes(seed), bytes(context), length)),
  round: ({ values, clip, chances }) => [
    ...sums.roundMessage(Float64Array.from(values, Number), clip, Uint16Array.from(chances)),
  ],
  charter: async ({ content }) => {
    const charter = await sums.charterFrom(bytes(content));
    return { charter, digest: hex(await sums.charterDigest(bytes(content))) };
  },
  offer: async ({ content, helper, charter, model, block, now }) => {
    const offer = await sums.readOffer(bytes(content), bytes(helper));
    const agreed = await sums.charterFrom(bytes(charter));
    await sums.checkOffer(offer, agreed, bytes(model), Int32Array.from(block), now);
    return { offer, digest: hex(await sums.offerDigest(offer)) };
  },
  model: async ({ version, regulariser, weights, vectors }) =>
    hex(await sums.modelDigest(version, regulariser, Float32Array.from(weights), Float32Array.from(vectors))),
  upload: async ({ offer, message, secrets, ephemeral }) => {
    const drawn = secrets
      ? { id: bytes(secrets.id), seed: bytes(secrets.seed), blind: bytes(secrets.blind) }
      : sums.newSecrets();
    return hex(await sums.makeUpload(offer, Int32Array.from(message), drawn, ephemeral && (await pair(ephemeral))));
  },
  chances: ({ length }) => [...sums.roundingChances(length)],
};

const answers = [];
for (const question of JSON.parse(readFileSync(process.argv[3], "utf8"))) {
  try {
    answers.push(await kinds[question.kind](question));
  } catch (fault) {
    if (!(fault instanceof BadMessage)) throw fault;
    answers.push({ refused: fault.message });
  }
}
process.stdout.write(JSON.stringify(answers));
