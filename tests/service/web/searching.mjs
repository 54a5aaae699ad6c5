/* What a search finds: `node searching.mjs CATALOGUE` is asked {titles, searches, names} (a title may have others beside it), and answers what each search finds and
which names of a file are matched. */

import { converse } from "./conversing.mjs";

const { find, indexed, matched } = await import(process.argv[2]);

await converse(({ titles, searches, names }) => {
  const items = titles.map((named, number) => {
    const [title, ...others] = [named].flat();
    const year = Number(/\((\d{4})\)$/.exec(title)?.[1] ?? 0) || null;
    return {
      id: `i${number}`,
      title: title.replace(/ \(\d{4}\)$/, ""),
      year,
      others: [title, ...others],
      categories: [],
    };
  });
  const catalogue = indexed({ digest: "", items });
  const popularity = Float32Array.from(items, (_, number) => -number);
  const found = searches.map((query) => {
    const { numbers, nearest } = find(catalogue, typeof query === "string" ? { text: query } : query, popularity);
    return { titles: numbers.map((number) => [titles[number]].flat()[0]), nearest };
  });
  const { numbers, unmatched } = matched(catalogue, names);
  return { found, matched: numbers.map((number) => [titles[number]].flat()[0]), unmatched };
});
