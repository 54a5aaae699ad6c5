/* How large a norm check is (secagg/proof/parameters.py): everything follows from the number of projections. */

import { BadMessage } from "../federation/wire.js";
import {
  C_INT,
  FARTHEST,
  FORMAT,
  LEAST_DEVIATION,
  LIMITS,
  MOST_DEVIATION,
  PUBLIC_BYTES,
  RANGE_BITS,
  RECIPES,
  RING_BITS,
  STATEMENTS,
  SUITE,
} from "../schemas.js";
import { canonical, digest, hasFields, hexOf, hexadecimal, readCanonical } from "./canonical.js";
import { publicKey, verify } from "./keys.js";

/** One size of the check.
 * @typedef {{ projections: number, limit: number, slackBits: number, wires: number, points: number, columns: number,
 *   coefficients: number, elements: number, proofBytes: number }} Parameters */

/** @type {(projections: number) => Parameters} */
export function checkParameters(projections) {
  const place = LIMITS.indexOf(projections); // sizes, each with its limit
  const limit = LIMITS[place + 1] * C_INT * C_INT;
  if (place % 2) throw new BadMessage(["upload.projections", { actual: projections }]);
  const slackBits = limit.toString(2).length;
  const wires = (RANGE_BITS + 1) * projections + slackBits;
  const points = projections / 2;
  const columns = Math.ceil((wires + projections) / (points - 1));
  const coefficients = 2 * points - 1;
  const elements = wires + 2 * columns + coefficients;
  return { projections, limit, slackBits, wires, points, columns, coefficients, elements, proofBytes: 8 * elements };
}

// The config of sums (secagg/config.py): what a federation guarantees; devices pin its digest when they enrol.

/** The plan's own messages (what is popular first, then directions); Frugal's message; and for ratings gradients and a count for every
item. The last two are the same at every stage. */
export const [PRIVATE, SPECTRAL, GRADIENTS] = RECIPES;
const FIXED = { bound: C_INT, ring: RING_BITS, suite: SUITE, format: FORMAT };

/** A decimal text as a number, as Python writes numbers; not a number where it is none.
 * @type {(text: string) => number} */
const numberOf = (text) => (/^-?[0-9][0-9.e+-]*$/.test(text) ? Number(text) : NaN);

/** @type {(bytes: Uint8Array) => Promise<SecureConfig>} */
export async function configFrom(bytes) {
  const config = readCanonical(bytes, "config");
  const hasSupport = Object.hasOwn(config, "min_support"); // named only where it is 2 or more
  const named = Object.entries(STATEMENTS.config).filter(([name]) => hasSupport || name !== "min_support");
  hasFields(config, "config", Object.fromEntries(named));
  if (hasSupport && !(Number.isInteger(config.min_support) && config.min_support >= 2))
    throw new BadMessage(["config.least", { name: "min_support" }]);
  checkProof(config);
  for (const name of ["catalogue", "settings"]) hexadecimal(config[name], 32, `config.${name}`);
  for (const name of ["helper_key", "leader_key"])
    await publicKey(hexadecimal(config[name], PUBLIC_BYTES, `config.${name}`), "ECDSA", ["verify"]);
  for (const [name, needed] of Object.entries(FIXED))
    if (config[name] !== needed) throw new BadMessage(["config.fixed", { needed: String(needed), name }]);
  for (const name of ["before", "first"]) if (config[name]) hexadecimal(config[name], 32, `config.${name}`);
  const isFirst = config.season === 1;
  if (config.season < 1 || config.starts_from < 0 || isFirst !== (config.before === ""))
    throw new BadMessage(["config.season"]);
  if (config.until && !/^\d{4}-\d\d-\d\d$/.test(config.until)) throw new BadMessage(["config.season"]);
  for (const name of ["items", "columns", "messages"])
    if (config[name] < 1) throw new BadMessage(["config.least", { name }]);
  if (!(2 <= config.least_cohort && config.least_cohort <= config.largest_cohort))
    throw new BadMessage(["config.cohort"]);
  if (!RECIPES.includes(config.recipe)) throw new BadMessage(["config.recipe"]);
  checkNoises(config);
  const [clip, power, delta] = [config.clip, config.power, config.delta].map(numberOf);
  if (!(clip > 0 && clip < 1e30 && Math.abs(power) <= 1 && delta > 0 && delta < 1))
    throw new BadMessage(["config.values"]);
  return /** @type {SecureConfig} */ (config);
}

/** @type {(config: SecureConfig) => Promise<Bytes>} */
export const configDigest = (config) => digest("federation config", new TextEncoder().encode(canonical(config)));

/** Refuse a config that is not of the season after this one, of the same federation and the same servers.
 * @type {(before: SecureConfig, now: SecureConfig) => Promise<void>} */
export async function checkFollows(before, now) {
  const same =
    now.federation_id === before.federation_id &&
    now.leader_key === before.leader_key &&
    now.helper_origin === before.helper_origin &&
    now.recipe === before.recipe &&
    now.items >= before.items;
  if (!same || now.season !== before.season + 1 || now.before !== hexOf(await configDigest(before)))
    throw new BadMessage(["config.season"]);
}

/** Refuse a config that not both servers have signed; `helperKeys` may be the helper's.
 * @type {(config: SecureConfig, signatures: Bytes[], helperKeys: Bytes[]) => Promise<void>} */
export async function checkSigned(config, [leader, helper], helperKeys) {
  const content = new TextEncoder().encode(canonical(config));
  await verify(hexadecimal(config.leader_key, PUBLIC_BYTES, "config.leader_key"), "season", content, leader);
  for (const key of helperKeys.slice(1))
    try {
      return await verify(key, "season", content, helper);
    } catch (fault) {
      if (!(fault instanceof BadMessage)) throw fault;
    }
  return verify(helperKeys[0], "season", content, helper);
}

/** @type {(config: Record<string, any>) => void} */
function checkProof(config) {
  const check = config.projections ? checkParameters(config.projections) : { limit: 0, proofBytes: 0 };
  if (config.limit !== check.limit || config.proof_bytes !== check.proofBytes) throw new BadMessage(["config.proof"]);
}

/** @type {(config: Record<string, any>) => void} */
function checkNoises({ noises, messages, largest_cohort: largest }) {
  if (noises.length !== messages) throw new BadMessage(["config.noises"]);
  const most = Math.max(...noises);
  for (const noise of noises)
    if (!Number.isInteger(noise) || ((noise || most) && !(LEAST_DEVIATION <= noise && noise <= MOST_DEVIATION)))
      throw new BadMessage(["config.noise"]);
  if (largest * C_INT + 2 * FARTHEST * most >= 2 ** (RING_BITS - 1)) throw new BadMessage(["config.wraps"]);
}

/** Whether items of few users are only in uploads of the first stage.
 * @type {(config: SecureConfig) => boolean} */
const hasMinimum = ({ min_support: needed = 1 }) => needed > 1;

/** Whether a stage's uploads carry counts or popularity only: one number per item.
 * @type {(config: SecureConfig, stage: number) => boolean} */
export const isCounting = (config, stage) =>
  stage === 0 && (config.recipe === PRIVATE || (config.recipe === SPECTRAL && hasMinimum(config)));

/** @type {(config: SecureConfig, stage: number) => number} */
export const columnsOf = (config, stage) => (isCounting(config, stage) ? 1 : config.columns);

/** d: numbers per upload of this stage that covers this many items (null: all); a spectral one has the square of a row besides.
 * @type {(config: SecureConfig, stage: number, rows?: number | null) => number} */
export function lengthOf(config, stage, rows = null) {
  const { items, columns, recipe } = config;
  if (isCounting(config, stage)) return items;
  const covered = hasMinimum(config) ? (rows ?? items) : items;
  return recipe === SPECTRAL ? (covered + columns) * columns : covered * columns;
}

/** Whether uploads of this stage may have this many numbers, whichever items are supported.
 * @type {(config: SecureConfig, stage: number, length: number) => boolean} */
export function allowsLength(config, stage, length) {
  const most = lengthOf(config, stage);
  if (isCounting(config, stage) || !hasMinimum(config)) return length === most;
  return lengthOf(config, stage, 1) <= length && length <= most && length % config.columns === 0;
}

/** What all messages of a lifetime may disclose together, squared; infinite where there is no noise.
 * @type {(config: SecureConfig) => number} */
export const mostDisclosed = ({ noises, bound }) => noises.reduce((sum, noise) => sum + (bound / noise) ** 2, 0);
