/* What a history file says: `node reading.mjs HISTORY SCALE FILE...` prints what is read from each file, or the sentence of its fault;
with a scale (JSON), what it gives stars to, and without (null) what it likes. */

import { readFile } from "node:fs/promises";

const { namesInFile, starsInFile } = await import(process.argv[2]);
const { told } = await import(new URL("../../show/language.js", process.argv[2]).href);
const scale = JSON.parse(process.argv[3]);
const answers = [];
for (const path of process.argv.slice(4)) {
  const file = new File([await readFile(path)], path);
  const reading = scale ? starsInFile(file, scale) : namesInFile(file);
  answers.push(await reading.catch((fault) => ({ fault: told(fault.said) })));
}
console.log(JSON.stringify(answers));
