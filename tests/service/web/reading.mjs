/* What a history file says: `node reading.mjs HISTORY SCALE FILE...` prints what is read from each file, or the code of its fault;
with a scale (JSON), what it gives stars to, and without (null) what it likes. */

import { readFile } from "node:fs/promises";

const { namesInFile, starsInFile, textOf } = await import(process.argv[2]);
const scale = JSON.parse(process.argv[3]);
const answers = [];
for (const path of process.argv.slice(4)) {
  const file = new File([await readFile(path)], path);
  try {
    const text = await textOf(file);
    answers.push(scale ? starsInFile(text, scale) : namesInFile(text));
  } catch (fault) {
    answers.push({ fault: fault.said[0] });
  }
}
console.log(JSON.stringify(answers));
