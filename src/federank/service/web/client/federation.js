/* The federation as this device sees it: every request there is, and what its answer must hold; what does not is refused.

Only `register`, `sendUpdate` and `unregister` send the server anything, and only `sendUpdate` carries something learnt from
the user.
*/

import { BadAnswer, bytesOf, jsonIn, jsonOf, needed, request, isIntegerIn } from "./http.js";
import { itemFrom } from "../federation/item.js";
import { BadMessage } from "../federation/wire.js";
import { methodOf } from "../methods/registry.js";
import * as rules from "../schemas.js";

const SUMS = "-sums"; // what a federation adds to the name of its method where no single server can read an upload

/** How many items there are, how many factors each has, and by which method they are learnt.
 * @typedef {{ factors: number, items: number, method: Method }} Shape */

/** Rows of the public model as of a round and a version; what goes with them depends on the method.
 * @typedef {{ roundNumber: number, version: number, items: Int32Array, vectors: Float32Array, biases?: Float32Array,
 *   weights?: Float32Array, regulariser?: number, iteration?: number,
 *   itemWeights?: import("../methods/frugal.js").ItemWeights }} Rows */

/** @type {() => Promise<FederationInfo>} */
export async function fetchInfo() {
  const info = await jsonOf(await request("federation"));
  const known = [...rules.METHODS, ...rules.SUMMED_METHODS.map((method) => method + SUMS)];
  const isKnown = info?.api === rules.API && known.includes(info.method);
  if (!isKnown) throw new BadAnswer(["fault.unknown-interface"]);
  needed(isIntegerIn(info.items, 2, rules.MOST_ITEMS), "items");
  return info;
}

/** Whether uploads are such that no single server can read one (secure.js).
 * @type {(info: FederationInfo) => boolean} */
export const isSecure = ({ method, uploads }) => method.endsWith(SUMS) && uploads === "sums";

/** Whether uploads are such that the server reads them. What is neither this nor summed is not for this page.
 * @type {(info: FederationInfo) => boolean} */
export const isPlain = ({ method, uploads = "plain" }) => !method.endsWith(SUMS) && uploads === "plain";

/** @type {(info: FederationInfo) => Promise<Shape>} */
export async function shapeOf({ method: name, recipe, items }) {
  const method = await methodOf(name.replace(SUMS, ""), recipe, name.endsWith(SUMS));
  return { factors: method.factors, items, method };
}

/** @type {() => Promise<Status>} */
export async function fetchStatus() {
  const status = await jsonOf(await request("status"));
  needed(isIntegerIn(status?.version, 0, rules.MOST_VERSION), "version");
  return status;
}

/** @type {(status: Status) => boolean} */
export const isHelperAway = ({ health }) =>
  Array.isArray(health?.reasons) && health.reasons.some((reason) => reason?.code === "helper-away");

/** The items, in the order of their numbers, and the bytes that they were sent in. `shape` may still be on its way: it is only needed to
check the answer.
 * @type {(shape: Promise<Shape>) => Promise<{ digest: string, items: Item[], content: Uint8Array<ArrayBuffer> }>} */
export async function fetchCatalogue(shape) {
  const content = await bytesOf(await request("catalogue"), rules.MOST_CATALOGUE_BYTES);
  const answer = jsonIn(content);
  const { items: count } = await shape;
  needed(Array.isArray(answer?.items) && answer.items.length === count, `catalogue (${count})`);
  for (const item of answer.items)
    needed(item !== null && typeof item === "object" && item.id !== undefined, "items.id");
  return { digest: String(answer.digest), items: answer.items.map(itemFrom), content };
}

/** @type {(response: Response, shape: Shape | Promise<Shape>) => Promise<Rows>} */
async function broadcastOf(response, shape) {
  const { factors, items, method } = await shape;
  const largest = 20_000 + items * (2 * factors + 3) * 4; // SVD++ has two vectors an item
  const { buffer } = await bytesOf(response, largest);
  try {
    return method.decode(buffer, items);
  } catch (fault) {
    if (fault instanceof BadMessage) throw new BadAnswer(fault.said);
    throw fault;
  }
}

/** The rows of the public model that changed since a version, and whose it is; all of them without one.
 * @type {(shape: Shape | Promise<Shape>, since?: number | null) => Promise<Rows & { federation_id: string | null }>} */
export async function fetchModel(shape, since = null) {
  const response = await request(since === null ? "model" : `model?since=${since}`, { timeout: 120_000 });
  return { ...(await broadcastOf(response, shape)), federation_id: response.headers.get("X-Federation-Id") };
}

/** Join: a device id and a token that the server makes up. Nothing about the user is sent but an invitation, where the
link to this page had one (#invitation=CODE).
 * @type {() => Promise<{ device: string, token: string }>} */
export async function register() {
  const headers = { "Content-Type": "application/json" };
  const invitation = new URLSearchParams(globalThis.location?.hash.slice(1)).get("invitation");
  const body = JSON.stringify(invitation === null ? {} : { invitation });
  const { client, token } = Object(await jsonOf(await request("clients", { method: "POST", body, headers })));
  needed(typeof client === "string" && typeof token === "string", "client/token");
  return { device: client, token };
}

/** @type {(token: string) => Promise<Response>} */
export const unregister = (token) => request("clients/me", { method: "DELETE", token });

/** Wait for something to do (a long poll); null if there is nothing for now.
 * @type {(token: string, seconds: number, signal: AbortSignal) => Promise<Task | null>} */
export async function waitForWork(token, seconds, signal) {
  const response = await request(`work?wait=${seconds}`, { token, signal, timeout: (seconds + 30) * 1000 });
  if (response.status === 204) return null;
  const task = await jsonOf(response);
  needed(typeof task?.ticket === "string" && /^[\w-]+$/.test(task.ticket), "ticket");
  needed(task.ticket.length <= rules.LONGEST_TEXT, "ticket");
  needed(task.season === undefined || isIntegerIn(task.season, 1, rules.MOST_ROUND), "season");
  needed(
    isIntegerIn(task.round, 0, rules.MOST_ROUND) && isIntegerIn(task.version, 0, rules.MOST_VERSION),
    "round/version",
  );
  return task;
}

/** @type {(token: string, task: Task, shape: Shape, have: number | null, signal: AbortSignal) => Promise<Rows>} */
export async function fetchRows(token, task, shape, have, signal) {
  const path = `tasks/${task.ticket}${have === null ? "" : `?have=${have}`}`;
  const rows = await broadcastOf(await request(path, { token, signal, timeout: 120_000 }), shape);
  needed(rows.roundNumber === task.round && rows.version === task.version, "round/version");
  return rows;
}

/** What became of an upload: a word, why where it was left out, how many uploads were aggregated with it, the helper's record where it
 * is in no sum, and the ids of the uploads in the sum where its round has ended without it.
 * @typedef {{ outcome: string, message: string, record: string, members: string, uploads: number | null }} Outcome
 * @type {(token: string, ticket: string, signal: AbortSignal) => Promise<Outcome>} */
export async function fetchOutcome(token, ticket, signal) {
  const answer = Object(await jsonOf(await request(`tasks/${ticket}/outcome`, { token, signal })));
  const { outcome, message = "", record = "", members = "" } = answer;
  needed(typeof outcome === "string" && outcome.length <= rules.LONGEST_TEXT, "outcome");
  needed(typeof message === "string" && message.length <= rules.LONGEST_TEXT, "outcome");
  needed(typeof record === "string" && typeof members === "string", "outcome");
  const uploads = isIntegerIn(answer.uploads, 1, rules.MOST_ROUND) ? answer.uploads : null;
  return { outcome, message, record, members, uploads };
}

/** Send an Update. Idempotent: the same bytes may be sent again with the same ticket, and the server keeps them once.
 * @type {(token: string, ticket: string, body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<void>} */
export async function sendUpdate(token, ticket, body, signal) {
  const headers = { "Content-Type": "application/octet-stream" };
  const options = { method: "POST", token, body, signal, headers, timeout: 60_000 };
  const answer = await jsonOf(await request(`tasks/${ticket}/update`, options));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  const expected = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  needed(answer?.receipt === expected, "receipt");
}
