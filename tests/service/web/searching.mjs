/* What a search finds: `node searching.mjs CATALOGUE` is asked {titles, searches, names}, and answers what each search finds and
which names of a file are matched. */

import { converse } from "./conversing.mjs";

const { find, indexed, matched } = await import(process.argv[2]);

await converse(({ titles, searches, names }) => {
  const items = titles.map((title, number) => ({ id: `i${number}`, title, categories: [] }));
  const catalogue = indexed({ digest: "", items });
  const popularity = Float32Array.from(items, (_, number) => -number);
  const found = searches.map((text) =>
    find(catalogue, text, "", 10, popularity).numbers.map((number) => titles[number]),
  );
  const { numbers, unmatched } = matched(catalogue, names);
  return { found, matched: numbers.map((number) => titles[number]), unmatched };
});
