/* What a history file says: `node reading.mjs HISTORY FILE...` prints what is read from each file, or the sentence of its fault. */

import { readFile } from "node:fs/promises";

const { namesInFile } = await import(process.argv[2]);
const answers = [];
for (const path of process.argv.slice(3)) {
  const file = new File([await readFile(path)], path);
  answers.push(await namesInFile(file).catch((fault) => ({ fault: fault.message })));
}
console.log(JSON.stringify(answers));
