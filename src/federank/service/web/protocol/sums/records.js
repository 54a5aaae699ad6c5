/* Records (protocol/sums/records.py): what a server has signed of a round that has ended. A device reads the helper's. */

import { BadMessage } from "../wire.js";
import { bytesOf, canonical, hasFields, hexadecimal, readCanonical } from "./canonical.js";
import { SIGNATURE_BYTES, verify } from "./identities.js";

/** @import { Bytes } from "./canonical.js" */

/** @typedef {{ charter: string, offer: string, round: number, state: string, messages: number, set: string, sum: string,
 *   model: string, people: number }} RoundRecord */

export const FOLDED = "folded";
export const ABANDONED = "abandoned"; // it has ended without a sum, and there will never be one

const FIELDS = {
  charter: "string",
  offer: "string",
  round: "number",
  state: "string",
  messages: "number",
  set: "string",
  sum: "string",
  model: "string",
  people: "number",
};

/** A record, if the server of this public key has signed it.
 * @type {(bytes: Uint8Array, server: Bytes) => Promise<RoundRecord>} */
export async function readRecord(bytes, server) {
  const told = readCanonical(bytes, "record");
  hasFields(told, "record", { record: "object", signature: "string" });
  const { record } = told;
  hasFields(record, "record", FIELDS);
  const signature = hexadecimal(told.signature, SIGNATURE_BYTES, "record.signature");
  await verify(server, "record", bytesOf(canonical(record)), signature);
  if (![FOLDED, ABANDONED].includes(record.state)) throw new BadMessage(["statement.no-form"]);
  return /** @type {RoundRecord} */ (record);
}
