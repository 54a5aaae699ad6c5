/* What a history file says: `node reading.mjs HISTORY FILE...` prints what is read from each file, or the sentence of its fault. */

import { readFile } from "node:fs/promises";

const { namesInFile } = await import(process.argv[2]);
const { told } = await import(new URL("../show/language.js", process.argv[2]).href);
const answers = [];
for (const path of process.argv.slice(3)) {
  const file = new File([await readFile(path)], path);
  answers.push(await namesInFile(file).catch((fault) => ({ fault: told(fault.said) })));
}
console.log(JSON.stringify(answers));
