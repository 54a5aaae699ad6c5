/* The page's device for norm_check.py: prints the median processor time, in milliseconds, that a proof adds to an upload.

`node norm_check.mjs SECAGG '{"offer": ..., "projections": 128, "runs": 7, "value": 14}'`
*/

const names = ["config", "upload", "proof"];
const secagg = Object.assign({}, ...(await Promise.all(names.map((name) => import(`${process.argv[2]}/${name}.js`)))));
const { offer, projections, runs, value } = JSON.parse(process.argv[3]);
const message = new Int32Array(offer.length).fill(value);
const parameters = secagg.checkParameters(projections);

async function milliseconds(work) {
  const found = [];
  for (let run = 0; run <= runs; run++) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    if (run) found.push((user + system) / 1000);
  }
  return found.sort((one, other) => one - other)[Math.floor(runs / 2)];
}

const plain = await milliseconds(() => secagg.makeUpload(offer, message, secagg.newSecrets()));
const checked = await milliseconds(() => secagg.sendChecked(parameters, offer, message));
process.stdout.write((checked - plain).toFixed(1));
