/* Every language's words: `node words.mjs WORDS...` prints what each file holds, as JSON. */

const languages = [];
for (const address of process.argv.slice(2)) languages.push((await import(address)).default);
console.log(JSON.stringify(languages));
