/* A program that stays and answers: each line of its input is a question, each line of its output what `answer` makes of it.
Both are JSON. What `answer` does not catch ends the program, and is told on the way out. */

import { createInterface } from "node:readline";

/** @param {(question: any) => any} answer */
export async function converse(answer) {
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  }
}
