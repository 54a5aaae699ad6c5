/* What the page says: `node sentences.mjs SENTENCES` is asked {language, questions}, and answers what each function makes of its
arguments in that language. */

import { converse } from "./conversing.mjs";

const sentences = await import(process.argv[2]);
const { speak } = await import(new URL("language.js", process.argv[2]).href);

await converse(async ({ language, questions }) => {
  await speak(language);
  return questions.map(([name, ...given]) => sentences[name](...given));
});
