/* What scripts write as text: `node literals.mjs ACORN SCRIPT...` prints the strings and the pieces of templates of each, as JSON. What is
imported from where, and which classes an element has, is left out. */

import { readFile } from "node:fs/promises";

const { parse } = await import(process.argv[2]);

function texts(node, found = []) {
  if (!node || typeof node.type !== "string") return found;
  if (node.type.startsWith("Import") && node.source && node.type !== "ImportExpression") return found;
  if (node.type === "Property" && node.key.name === "class") return found;
  if (node.type === "Literal" && typeof node.value === "string") found.push(node.value);
  if (node.type === "TemplateElement") found.push(node.value.cooked);
  for (const held of Object.values(node)) for (const part of [held].flat()) texts(part, found);
  return found;
}

const answers = [];
for (const path of process.argv.slice(3))
  answers.push(texts(parse(await readFile(path, "utf8"), { ecmaVersion: "latest", sourceType: "module" })));
console.log(JSON.stringify(answers));
