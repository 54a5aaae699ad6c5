/* A new user's vector on the page: `node fold_in.mjs REGISTRY` is asked {method, recipe, seed, user, items, ratings, model}, and
answers with the vector that the page recommends from. */

import { converse } from "./conversing.mjs";

const { methodOf } = await import(process.argv[2]);

await converse(async ({ method, recipe, seed, user, items, ratings, model }) => {
  const tables = Object.fromEntries(
    Object.entries(model).map(([name, values]) => [name, Array.isArray(values) ? Float32Array.from(values) : values]),
  );
  const stars = Float32Array.from(ratings);
  const { foldIn } = await methodOf(method, recipe);
  return [...foldIn({ seed, user }, Int32Array.from(items), tables, stars)];
});
