/* What the page's device sends where pairs are learnt: `node fpl.mjs REGISTRY` is asked {recipe, policy, person, broadcast},
and answers with the message of the round and what the device writes down of it. */

import { converse } from "./conversing.mjs";

const { methodOf } = await import(process.argv[2]);

/** A round of a device that has played none yet. */
async function message(method, { policy, person, broadcast }) {
  const { round, vectors, biases } = broadcast;
  const model = { vectors: Float32Array.from(vectors), biases: Float32Array.from(biases) };
  const client = { policy, model, entries: new Map(), shape: { items: biases.length }, roundVector: () => null };
  const outward = { ...person, profile: Int32Array.from(person.profile) };
  const { body, changed, vector, ...told } = await method.clientUpdate(client, { round }, person, outward);
  return { ...told, body: [...body], vector: [...vector], changed };
}

await converse(async (question) => message(await methodOf("fpl", question.recipe), question));
