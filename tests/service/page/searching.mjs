/* What a search finds: `node searching.mjs CATALOGUE QUESTION`, with {titles, searches, names} as JSON, prints what each search finds
and which names of a file are matched. */

import { readFile } from "node:fs/promises";

const { find, indexed, matched } = await import(process.argv[2]);
const { titles, searches, names } = JSON.parse(await readFile(process.argv[3], "utf8"));
const items = titles.map((title, number) => ({ id: `i${number}`, title, categories: [] }));
const catalogue = indexed({ digest: "", items });
const popularity = Float32Array.from(items, (_, number) => -number);
const found = searches.map((text) => find(catalogue, text, "", 10, popularity).numbers.map((number) => titles[number]));
const { numbers, unmatched } = matched(catalogue, names);
console.log(JSON.stringify({ found, matched: numbers.map((number) => titles[number]), unmatched }));
