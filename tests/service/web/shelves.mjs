/* What is recommended: `node shelves.mjs SHELVES` is asked {vectors, home, history, down, stars, scale}, and answers with the shelves and
the reasons. */

import { converse } from "./conversing.mjs";

const { shelves, taught } = await import(process.argv[2]);

await converse(async ({ vectors, home, history, down = [], unsupported = [], popularity, categories = [] }) => {
  const factors = home.length;
  const flat = Float32Array.from(vectors.flat());
  const values = Float32Array.from(vectors, (row) => row.reduce((sum, value, f) => sum + value * home[f], 0));
  for (const item of unsupported) values[item] = -Infinity;
  const membersOf = new Map();
  categories.forEach((names, number) => {
    for (const name of names) membersOf.set(name, [...(membersOf.get(name) ?? []), number]);
  });
  const device = {
    history: Int32Array.from(history),
    model: { vectors: flat },
    method: { popularity: () => Float32Array.from(popularity) },
    shape: { items: vectors.length, factors },
    isFresh: false,
    left: new Set([...history, ...down]),
    starsOf: (items) => new Float32Array(items.length),
    stored: { history: history.map((number, at) => ({ id: String(number), at })) },
    catalogue: {
      membersOf,
      numberOf: new Map(vectors.map((_, number) => [String(number), number])),
      items: vectors.map((_, number) => ({ categories: categories[number] ?? [] })),
    },
    worth: async () => taught(values, flat, down),
  };
  const { shelves: rows, reasons } = await shelves(device);
  return { shelves: rows, reasons: [...reasons], worth: [...taught(values, flat, down)] };
});
