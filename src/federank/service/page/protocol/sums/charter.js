/* The charter of sums (protocol/sums/charter.py): what a federation promised once; devices pin its digest when they enrol. */

import { BadMessage } from "../wire.js";
import { digest, hasFields, hexadecimal, readCanonical } from "./canonical.js";
import { PUBLIC_BYTES, publicKey } from "./identities.js";
import { C_INT } from "./rounding.js";
import { SUITE } from "./sealing.js";

/** @typedef {{ founding: string, catalogue: string, settings: string, items: number, columns: number, blocks: number,
 *   seed: number, clip: string, noise: number, messages: number, least_cohort: number, largest_cohort: number,
 *   helper_origin: string, helper_key: string, leader_key: string, bound: number, ring: number, suite: string,
 *   proof_bytes: number, format: string }} SumsCharter */

const WHOLE = ["items", "columns", "blocks", "seed", "noise", "messages", "least_cohort", "largest_cohort"];
const TEXT = ["founding", "catalogue", "settings", "clip", "helper_origin", "helper_key", "leader_key"];
const FIXED = { bound: C_INT, ring: 32, suite: SUITE, proof_bytes: 0, format: "federank sums 1" };
const FARTHEST = 9.1;
const LEAST_DEVIATION = 64;
const MOST_DEVIATION = 2 ** 22;

/** @type {Record<string, string>} */
const FIELDS = Object.fromEntries([
  ...WHOLE.map((name) => [name, "number"]),
  ...TEXT.map((name) => [name, "string"]),
  ...Object.entries(FIXED).map(([name, value]) => [name, typeof value]),
]);

/** What devices pin.
 * @type {(bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>} */
export const charterDigest = (bytes) => digest("charter", bytes);

/** A charter from the wire, once it is sure to be one.
 * @type {(bytes: Uint8Array) => Promise<SumsCharter>} */
export async function charterFrom(bytes) {
  const told = readCanonical(bytes, "The charter of sums");
  hasFields(told, "The charter of sums", FIELDS);
  for (const name of ["catalogue", "settings"]) hexadecimal(told[name], 32, `The ${name} of a charter`);
  for (const name of ["helper_key", "leader_key"])
    await publicKey(hexadecimal(told[name], PUBLIC_BYTES, `The ${name} of a charter`), "ECDSA", ["verify"]);
  for (const [name, needed] of Object.entries(FIXED))
    if (told[name] !== needed) throw new BadMessage(`The charter of sums has ${needed} as ${name}; this one has not.`);
  for (const name of ["items", "columns", "blocks", "messages"])
    if (told[name] < 1) throw new BadMessage(`The charter of sums needs ${name} of at least 1; this one has not.`);
  if (!(2 <= told.least_cohort && told.least_cohort <= told.largest_cohort))
    throw new BadMessage(
      "A cohort needs at least 2 people and at most the largest cohort; this charter allows others.",
    );
  if (told.noise !== 0 && !(LEAST_DEVIATION <= told.noise && told.noise <= MOST_DEVIATION))
    throw new BadMessage("The noise of a server is 0, or within what can be drawn exactly; this charter's is not.");
  if (told.largest_cohort * C_INT + 2 * FARTHEST * told.noise >= 2 ** 31)
    throw new BadMessage("A sum of the largest cohort's messages could wrap; such a charter promises nothing.");
  const clip = Number(told.clip);
  if (!(clip > 0 && clip < 1e30 && /^[0-9][0-9.e+-]*$/.test(told.clip)))
    throw new BadMessage("The charter of sums needs a clip above 0; this one has not.");
  return /** @type {SumsCharter} */ (told);
}
