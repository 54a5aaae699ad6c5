/* The federation as this device sees it: every request there is, and what its answer must hold; what does not is refused.

Only `enrol`, `send` and `leave` tell the server anything, and only `send` carries something learnt from the person.
*/

import { BadMessage, decodeBroadcast } from "../protocol/messages.js";
import { BadAnswer, bytesOf, jsonOf, request } from "./client.js";
import * as rules from "./rules.js";

function needed(holds, what) {
  if (!holds) throw new BadAnswer(`The server's answer has no usable ${what}.`);
}
const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;
const positive = (value) => Number.isFinite(value) && value >= 0;

/** What the federation is: its name, its method, its limits and the policy it suggests. */
export async function about() {
  const told = await jsonOf(await request("federation"));
  needed(
    told?.api === rules.API && rules.METHODS.includes(told.method),
    "version of the interface and method that this page knows",
  );
  needed(whole(told.items, 2, rules.MOST_ITEMS), "number of items");
  const recipe = told.recipe ?? {};
  needed(whole(recipe.factors, 1, rules.MOST_FACTORS) && whole(recipe.triples, 1, rules.MOST_TRIPLES), "recipe");
  for (const name of [
    "learning_rate",
    "user_regulariser",
    "positive_regulariser",
    "negative_regulariser",
    "initial_scale",
  ])
    needed(positive(recipe[name]), `recipe (${name})`);
  return told;
}

/** How the federation is doing; public. */
export async function status() {
  const told = await jsonOf(await request("status"));
  needed(whole(told?.version, 0, rules.MOST_VERSION), "version");
  return told;
}

/** The items, in the order of their numbers. `shape` may still be on its way: it is only needed to check the answer. */
export async function catalogue(shape) {
  const told = await jsonOf(await request("catalogue"), rules.MOST_CATALOGUE_BYTES);
  const { items: count } = await shape;
  needed(Array.isArray(told?.items) && told.items.length === count, `catalogue of ${count} items`);
  return {
    digest: String(told.digest),
    items: told.items.map((item) => {
      needed(item !== null && typeof item === "object" && item.id !== undefined, "id of an item");
      const categories = Array.isArray(item.categories) ? item.categories.map(String) : [];
      return { id: String(item.id), title: String(item.title || item.id), categories };
    }),
  };
}

async function tensors(answer, shape) {
  const { factors, items } = await shape;
  const largest = 20_000 + items * (factors + 2) * 4;
  const { buffer } = await bytesOf(answer, largest);
  try {
    return decodeBroadcast(buffer, factors, items);
  } catch (fault) {
    if (fault instanceof BadMessage) throw new BadAnswer(fault.message);
    throw fault;
  }
}

/** The rows of the public model that changed since a version; all of them without one. */
export async function model(shape, since = null) {
  const answer = await request(since === null ? "model" : `model?since=${since}`, { timeout: 120_000 });
  return { ...(await tensors(answer, shape)), founding: answer.headers.get("X-Founding") };
}

/** Join: a device id and a token that the server makes up. Nothing about the person is told. */
export async function enrol() {
  const told = await jsonOf(
    await request("devices", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }),
  );
  needed(typeof told?.device === "string" && typeof told?.token === "string", "device and token");
  return { device: told.device, token: told.token };
}

/** Leave: the token dies. */
export const leave = (token) => request("devices/me", { method: "DELETE", token });

/** Wait for something to do; null if there is nothing for now. */
export async function work(token, seconds, signal) {
  const answer = await request(`work?wait=${seconds}`, { token, signal, timeout: (seconds + 30) * 1000 });
  if (answer.status === 204) return null;
  const task = await jsonOf(answer);
  needed(typeof task?.ticket === "string" && /^[\w-]+$/.test(task.ticket), "ticket");
  needed(task.ticket.length <= rules.LONGEST_TEXT, "ticket");
  needed(whole(task.round, 0, rules.MOST_ROUND) && whole(task.version, 0, rules.MOST_VERSION), "round and version");
  return task;
}

/** The Broadcast of a task: the rows that changed since the version this device has. */
export async function broadcast(token, task, shape, have, signal) {
  const path = `tasks/${task.ticket}${have === null ? "" : `?have=${have}`}`;
  const rows = await tensors(await request(path, { token, signal, timeout: 120_000 }), shape);
  needed(
    rows.roundNumber === task.round && rows.version === task.version,
    "round and version: the task and its Broadcast differ",
  );
  return rows;
}

/** Send an Update. The same bytes may be sent again with the same ticket: the server keeps them once. */
export async function send(token, ticket, body, signal) {
  const answer = await request(`tasks/${ticket}/update`, {
    method: "POST",
    token,
    body,
    signal,
    headers: { "Content-Type": "application/octet-stream" },
    timeout: 60_000,
  });
  const told = await jsonOf(answer);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  const expected = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  needed(told?.receipt === expected, "receipt: it is not that of the bytes that were sent");
  return told;
}
