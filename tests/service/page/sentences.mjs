/* What the page says: `node sentences.mjs SENTENCES QUESTIONS LANGUAGE` prints what each function makes of its arguments, as JSON. */

import { readFile } from "node:fs/promises";

const sentences = await import(process.argv[2]);
const { speak } = await import(new URL("language.js", process.argv[2]).href);
await speak(process.argv[4]);
const questions = JSON.parse(await readFile(process.argv[3], "utf8"));
console.log(JSON.stringify(questions.map(([name, ...given]) => sentences[name](...given))));
