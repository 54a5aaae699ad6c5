/* How large a norm check is (norm_check/parameters.py): everything follows from the number of projections. */

import { BadMessage } from "../federation/wire.js";
import { canonical, digest, hasFields, hexOf, hexadecimal, readCanonical } from "./canonical.js";
import { PUBLIC_BYTES, SUITE, publicKey, verify } from "./keys.js";
import { C_INT } from "./ring.js";

/** @import { Bytes } from "./canonical.js" */

export const RANGE_BITS = 16;
export const MOST_LENGTH = 2 ** 25;
/** @type {Record<number, number>} */
const LIMITS = { 64: 95, 128: 144 };

/** One size of the check.
 * @typedef {{ projections: number, limit: number, slackBits: number, wires: number, points: number, columns: number,
 *   coefficients: number, elements: number, proofBytes: number }} Parameters */

/** The sizes that follow from a number of projections.
 * @type {(projections: number) => Parameters} */
export function checkParameters(projections) {
  if (!Object.hasOwn(LIMITS, projections)) throw new BadMessage(["upload.projections", { found: projections }]);
  const limit = LIMITS[projections] * C_INT * C_INT;
  const slackBits = limit.toString(2).length;
  const wires = (RANGE_BITS + 1) * projections + slackBits;
  const points = projections / 2;
  const columns = Math.ceil((wires + projections) / (points - 1));
  const coefficients = 2 * points - 1;
  const elements = wires + 2 * columns + coefficients;
  return { projections, limit, slackBits, wires, points, columns, coefficients, elements, proofBytes: 8 * elements };
}

// The charter of sums (protocol/sums/charter.py): what a federation promised once; devices pin its digest when they enrol.

/** @typedef {{ founding: string, catalogue: string, settings: string, recipe: string, items: number, columns: number,
 *   clip: string, noises: number[], power: string, delta: string, messages: number,
 *   least_cohort: number, largest_cohort: number, helper_origin: string, helper_key: string, leader_key: string,
 *   season: number, before: string, starts_from: number, first: string, until: string, bound: number, ring: number, suite: string,
 *   projections: number, limit: number, proof_bytes: number, min_support?: number, format: string }} SecureConfig */

const WHOLE = ["items", "columns", "messages", "least_cohort", "largest_cohort", "season", "starts_from"];
const TEXT = [
  ...["founding", "catalogue", "settings", "recipe", "clip", "power", "delta"],
  ...["helper_origin", "helper_key", "leader_key", "before", "first", "until"],
];
export const PRIVATE = "private"; // the plan's own messages: what is popular first, then directions
export const SPECTRAL = "spectral"; // Frugal's message, the same at every stage
export const GRADIENTS = "gradients"; // ratings: gradients and a count for every item, the same at every stage
const RECIPES = [PRIVATE, SPECTRAL, GRADIENTS];
const FIXED = { bound: C_INT, ring: 32, suite: SUITE, format: "federank sums 1" };
const FARTHEST = 9.1;
const LEAST_DEVIATION = 64;
const MOST_DEVIATION = 2 ** 22;

/** @type {Record<string, string>} */
const FIELDS = Object.fromEntries([
  ...WHOLE.map((name) => [name, "number"]),
  ...TEXT.map((name) => [name, "string"]),
  ["noises", "list"],
  ...["projections", "limit", "proof_bytes"].map((name) => [name, "number"]),
  ...Object.entries(FIXED).map(([name, value]) => [name, typeof value]),
]);

/** A decimal text as a number, as Python writes numbers; not a number where it is none.
 * @type {(text: string) => number} */
const numberOf = (text) => (/^-?[0-9][0-9.e+-]*$/.test(text) ? Number(text) : NaN);

/** A charter from the wire, once it is sure to be one.
 * @type {(bytes: Uint8Array) => Promise<SecureConfig>} */
export async function configFrom(bytes) {
  const told = readCanonical(bytes, "charter");
  const hasSupport = Object.hasOwn(told, "min_support"); // named only where it is 2 or more
  hasFields(told, "charter", hasSupport ? { ...FIELDS, min_support: "number" } : FIELDS);
  if (hasSupport && !(Number.isInteger(told.min_support) && told.min_support >= 2))
    throw new BadMessage(["charter.least", { name: "min_support" }]);
  checkProof(told);
  for (const name of ["catalogue", "settings"]) hexadecimal(told[name], 32, `charter.${name}`);
  for (const name of ["helper_key", "leader_key"])
    await publicKey(hexadecimal(told[name], PUBLIC_BYTES, `charter.${name}`), "ECDSA", ["verify"]);
  for (const [name, needed] of Object.entries(FIXED))
    if (told[name] !== needed) throw new BadMessage(["charter.fixed", { needed: String(needed), name }]);
  for (const name of ["before", "first"]) if (told[name]) hexadecimal(told[name], 32, `charter.${name}`);
  const isFirst = told.season === 1;
  if (told.season < 1 || told.starts_from < 0 || isFirst !== (told.before === ""))
    throw new BadMessage(["charter.season"]);
  if (told.until && !/^\d{4}-\d\d-\d\d$/.test(told.until)) throw new BadMessage(["charter.season"]);
  for (const name of ["items", "columns", "messages"])
    if (told[name] < 1) throw new BadMessage(["charter.least", { name }]);
  if (!(2 <= told.least_cohort && told.least_cohort <= told.largest_cohort)) throw new BadMessage(["charter.cohort"]);
  if (!RECIPES.includes(told.recipe)) throw new BadMessage(["charter.recipe"]);
  checkNoises(told);
  const [clip, power, delta] = [told.clip, told.power, told.delta].map(numberOf);
  if (!(clip > 0 && clip < 1e30 && Math.abs(power) <= 1 && delta > 0 && delta < 1))
    throw new BadMessage(["charter.values"]);
  return /** @type {SecureConfig} */ (told);
}

/** What names a charter.
 * @type {(charter: SecureConfig) => Promise<Bytes>} */
export const configDigest = (charter) => digest("charter", new TextEncoder().encode(canonical(charter)));

/** Refuse a charter that is not of the season after this one, of the same federation and the same servers.
 * @type {(before: SecureConfig, now: SecureConfig) => Promise<void>} */
export async function checkFollows(before, now) {
  const same =
    now.founding === before.founding &&
    now.leader_key === before.leader_key &&
    now.helper_origin === before.helper_origin &&
    now.recipe === before.recipe &&
    now.items >= before.items;
  if (!same || now.season !== before.season + 1 || now.before !== hexOf(await configDigest(before)))
    throw new BadMessage(["charter.season"]);
}

/** Refuse a charter that not both servers have signed; `helperKeys` may be the helper's.
 * @type {(charter: SecureConfig, signatures: Bytes[], helperKeys: Bytes[]) => Promise<void>} */
export async function checkSigned(charter, [leader, helper], helperKeys) {
  const content = new TextEncoder().encode(canonical(charter));
  await verify(hexadecimal(charter.leader_key, PUBLIC_BYTES, "charter.leader_key"), "season", content, leader);
  for (const key of helperKeys.slice(1))
    try {
      return await verify(key, "season", content, helper);
    } catch (fault) {
      if (!(fault instanceof BadMessage)) throw fault;
    }
  return verify(helperKeys[0], "season", content, helper);
}

/** Refuse what cannot be said of a proof; all is 0 where there is none.
 * @type {(told: Record<string, any>) => void} */
function checkProof(told) {
  const check = told.projections ? checkParameters(told.projections) : { limit: 0, proofBytes: 0 };
  if (told.limit !== check.limit || told.proof_bytes !== check.proofBytes) throw new BadMessage(["charter.proof"]);
}

/** @type {(told: Record<string, any>) => void} */
function checkNoises({ noises, messages, largest_cohort: largest }) {
  if (noises.length !== messages) throw new BadMessage(["charter.noises"]);
  const most = Math.max(...noises);
  for (const noise of noises)
    if (!Number.isInteger(noise) || ((noise || most) && !(LEAST_DEVIATION <= noise && noise <= MOST_DEVIATION)))
      throw new BadMessage(["charter.noise"]);
  if (largest * C_INT + 2 * FARTHEST * most >= 2 ** 31) throw new BadMessage(["charter.wraps"]);
}

/** Whether items of few users are only in uploads of the first stage.
 * @type {(charter: SecureConfig) => boolean} */
const hasMinimum = ({ min_support: needed = 1 }) => needed > 1;

/** Whether a stage's uploads carry counts or popularity only: one number per item.
 * @type {(charter: SecureConfig, stage: number) => boolean} */
export const isCounting = (charter, stage) =>
  stage === 0 && (charter.recipe === PRIVATE || (charter.recipe === SPECTRAL && hasMinimum(charter)));

/** Numbers per row of a stage's uploads.
 * @type {(charter: SecureConfig, stage: number) => number} */
export const columnsOf = (charter, stage) => (isCounting(charter, stage) ? 1 : charter.columns);

/** d: numbers per upload of this stage that covers this many items (null: all); a spectral one has the square of a row besides.
 * @type {(charter: SecureConfig, stage: number, rows?: number | null) => number} */
export function lengthOf(charter, stage, rows = null) {
  const { items, columns, recipe } = charter;
  if (isCounting(charter, stage)) return items;
  const covered = hasMinimum(charter) ? (rows ?? items) : items;
  return recipe === SPECTRAL ? (covered + columns) * columns : covered * columns;
}

/** Whether uploads of this stage may have this many numbers, whichever items are supported.
 * @type {(charter: SecureConfig, stage: number, length: number) => boolean} */
export function allowsLength(charter, stage, length) {
  const most = lengthOf(charter, stage);
  if (isCounting(charter, stage) || !hasMinimum(charter)) return length === most;
  return lengthOf(charter, stage, 1) <= length && length <= most && length % charter.columns === 0;
}

/** What all messages of a life may tell together, squared; infinite where there is no noise.
 * @type {(charter: SecureConfig) => number} */
export const mostTold = ({ noises, bound }) => noises.reduce((sum, noise) => sum + (bound / noise) ** 2, 0);
