/* Item-item weights on the page: `node item_weights.mjs METHODS` is asked {recipe, items, model, weights}, where weights are the bytes of
a message or null; or {recipe, items, broadcast, catalogue}, where the broadcast has them. It answers with the score of each item, null where it is not recommended, or with the name of what was refused. */

import { converse } from "./conversing.mjs";

const { decodeItemWeights, frugal } = await import(`${process.argv[2]}/frugal.js`);
const { BadMessage } = await import(`${process.argv[2]}/../federation/wire.js`);

await converse(({ recipe, items, model, weights, broadcast, catalogue }) => {
  const method = frugal(recipe);
  if (broadcast) {
    const rows = method.decode(Uint8Array.from(broadcast).buffer, catalogue);
    const all = { ...rows, biases: new Float32Array(catalogue) };
    return [...method.scores(method.foldIn(null, Int32Array.from(items), all), all)];
  }
  const tables = {
    ...model,
    vectors: Float32Array.from(model.vectors),
    weights: Float32Array.from(model.weights),
    biases: new Float32Array(model.weights.length),
  };
  try {
    if (weights) tables.itemWeights = decodeItemWeights(Uint8Array.from(weights).buffer, model.weights.length);
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    return { refused: true };
  }
  return [...method.scores(method.foldIn(null, Int32Array.from(items), tables), tables)];
});
