/* What JavaScript makes of questions about sums that Python asks. Bytes travel as hexadecimal digits.

`node secagg.mjs FOLDER` answers lists of questions about the page's secure aggregation; a refusal is an answer too.
*/

import { converse } from "./conversing.mjs";

const load = (path) => import(`${process.argv[2]}/${path}`);
const names = ["canonical", "config", "keys", "ring", "round_config", "upload", "proof"];
const sums = Object.assign({}, ...(await Promise.all(names.map((name) => load(`secagg/${name}.js`)))));
const messages = await load("methods/frugal_private.js");
const { frugal, rowsOfItems, supportedItems, coveredBy, countUnit } = await load("methods/frugal.js");
const { BadMessage } = await load("federation/wire.js");
const { split } = await load("client/secure.js");

const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("hex");

const inWords = (text) => new Uint32Array(bytes(text).buffer);

// WebCrypto reads a private key with its public one: both are told.
async function pair({ privateKey, publicKey }) {
  const part = (from, to) => Buffer.from(publicKey, "hex").subarray(from, to).toString("base64url");
  const key = { kty: "EC", crv: "P-256", x: part(1, 33), y: part(33, 65) };
  const d = Buffer.from(privateKey, "hex").toString("base64url");
  const curve = { name: "ECDH", namedCurve: "P-256" };
  return {
    privateKey: await crypto.subtle.importKey("jwk", { ...key, d }, curve, true, ["deriveBits"]),
    publicKey: await crypto.subtle.importKey("jwk", key, curve, true, []),
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
  private: ({ stage, items, profile, vectors, weights, chances }) => {
    const model = { vectors: Float32Array.from(vectors), weights: Float32Array.from(weights) };
    const known = stage ? messages.directionsOf(model) : null;
    return [...messages.privateMessage(stage, items, Int32Array.from(profile), known, Uint16Array.from(chances))];
  },
  lengths: async ({ config, stage, rows, lengths }) => {
    const agreed = await sums.configFrom(bytes(config));
    return {
      columns: sums.columnsOf(agreed, stage),
      length: sums.lengthOf(agreed, stage, rows),
      allowed: lengths.filter((length) => sums.allowsLength(agreed, stage, length)),
      unit: countUnit(agreed.items),
    };
  },
  frugal: async ({ recipe, content, items, profile, spent, counts }) => {
    const method = frugal(recipe);
    const model = method.decode(bytes(content).buffer, items);
    const outward = {
      profile: Int32Array.from(profile),
      real: profile.map(() => true),
      allowed: profile.map(() => true),
      lifelong: true,
    };
    const client = { model, shape: { items }, entries: new Map(), spent };
    const message = await method.clientUpdate(
      client,
      { round: 1, ...(counts === null ? {} : { counts }) },
      null,
      outward,
    );
    const covered = supportedItems(recipe.min_support, model.weights);
    return {
      body: hex(message.body),
      values: [...message.values()],
      liked: message.liked,
      ledger: message.changed.map(({ item }) => item),
      scores: [...method.scores(message.vector, { ...model, biases: new Float32Array(items) })].map((score) =>
        Number.isFinite(score) ? score : null,
      ),
      learnt: method.hasLearnt(model),
      weights: [...model.weights],
      rows: [...rowsOfItems(model, covered).vectors],
      places: [...coveredBy(covered, outward.profile)],
    };
  },
  mostTold: ({ config }) => sums.mostDisclosed(config),
  round: ({ values, clip, chances }) => [
    ...sums.roundMessage(Float64Array.from(values, Number), clip, Uint16Array.from(chances)),
  ],
  config: async ({ content }) => {
    const config = await sums.configFrom(bytes(content));
    return { config, digest: hex(await sums.digest("federation config", bytes(content))) };
  },
  follows: async ({ before, now, signatures, helperKeys }) => {
    const [known, next] = [await sums.configFrom(bytes(before)), await sums.configFrom(bytes(now))];
    await sums.checkFollows(known, next);
    await sums.checkSigned(next, signatures.map(bytes), helperKeys.map(bytes));
    return "follows";
  },
  offer: async ({ content, helper, config, model, now, rows = null }) => {
    const offer = await sums.readRoundConfig(bytes(content), bytes(helper));
    const agreed = await sums.configFrom(bytes(config));
    await sums.checkRoundConfig(offer, agreed, bytes(model), now, rows);
    return { offer, digest: hex(await sums.roundConfigDigest(offer)) };
  },
  record: async ({ content, server }) => sums.readRecord(bytes(content), bytes(server)),
  model: async ({ version, regulariser, iteration, reported, vectors }) =>
    hex(
      await sums.modelDigest(version, {
        vectors: Float32Array.from(vectors),
        reported: Int8Array.from(reported),
        iteration: Int32Array.of(iteration),
        regulariser: Float64Array.of(regulariser),
      }),
    ),
  upload: async ({ offer, message, secrets, ephemeral }) => {
    const drawn = secrets
      ? { id: bytes(secrets.id), seed: bytes(secrets.seed), blind: bytes(secrets.blind) }
      : sums.newSecrets();
    return hex(await sums.makeUpload(offer, Int32Array.from(message), drawn, ephemeral && (await pair(ephemeral))));
  },
  checked: async ({ projections, offer, message, secrets, proofSeed, ephemeral }) => {
    const parameters = sums.checkParameters(projections);
    if (!secrets) return hex(await sums.sendChecked(parameters, offer, Int32Array.from(message)));
    const drawn = { id: bytes(secrets.id), seed: bytes(secrets.seed), blind: bytes(secrets.blind) };
    const own = ephemeral && (await pair(ephemeral));
    const whole = Int32Array.from(message);
    return hex(await sums.makeCheckedUpload(parameters, offer, whole, drawn, bytes(proofSeed), own));
  },
  elements: async ({ words, count }) => {
    const stream = { at: 0, next: async (length) => bytes(words).slice(stream.at, (stream.at += length)) };
    return hex(await sums.randomElements(stream, count));
  },
  stream: async ({ secret, context, lengths }) => {
    const stream = await sums.KeyStream.from(bytes(secret), bytes(context), "mask");
    const found = [];
    for (const length of lengths) found.push(hex(await stream.next(length)));
    return found.join("");
  },
  field: ({ pairs }) =>
    pairs.map(([one, other]) =>
      [sums.add, sums.subtract, sums.multiply].map((act) => {
        const found = new Uint32Array(2);
        act(found, 0, inWords(one), 0, inWords(other), 0);
        return hex(found);
      }),
    ),
  split: async ({ config, offer, weights }) => {
    const agreed = { config: await sums.configFrom(bytes(config)), roundConfig: offer };
    const values = () => new Float32Array(offer.length);
    const { before } = await split(agreed, { weights: Float32Array.from(weights) }, Int32Array.of(0), values);
    return before.items && [...before.items];
  },
  chances: ({ length }) => [...sums.roundingChances(length)],
};

await converse(async (questions) => {
  const answers = [];
  for (const question of questions) {
    try {
      answers.push(await kinds[question.kind](question));
    } catch (fault) {
      if (!(fault instanceof BadMessage)) throw fault;
      answers.push({ refused: fault.said[0] });
    }
  }
  return answers;
});
