/* The federation over HTTP: every request this page ever makes, and how little it trusts the answers.

    Unreachable   no answer, or one that says "later": worth another try
    Refused       the server understood and said no, with a sentence
    WrongAnswer   what came back is not what the interface promises; nothing of it is used

Only `enrol`, `send` and `leave` tell the server anything, and only `send` carries something learnt from the person.
*/

import { BadMessage, decodeBroadcast } from "./protocol/messages.js";

const PREFIX = "api/v1";
const LARGEST_JSON = 64 * 2 ** 20;

export class Unreachable extends Error {
  constructor(message, retryAfter = null) {
    super(message);
    this.retryAfter = retryAfter;
  }
}
export class Refused extends Error {
  constructor(status, slug, message) {
    super(message);
    this.status = status;
    this.slug = slug;
  }
}
export class WrongAnswer extends Error {}

async function ask(path, { token, patience = 30_000, signal, ...options } = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const signals = [AbortSignal.timeout(patience), ...(signal ? [signal] : [])];
  let answer;
  try {
    answer = await fetch(new URL(`${PREFIX}/${path}`, self.location.origin), {
      ...options,
      headers,
      signal: AbortSignal.any(signals),
      credentials: "omit",
      cache: path === "catalogue" ? "default" : "no-store", // the model has a better place: storage.js
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (fault) {
    if (signal?.aborted) throw fault;
    throw new Unreachable("The server cannot be reached just now.");
  }
  if (answer.status === 429 || answer.status >= 500) {
    const seconds = Number(answer.headers.get("Retry-After"));
    throw new Unreachable("The server is busy just now.", seconds > 0 ? Math.min(seconds, 600) : null);
  }
  if (answer.status >= 400) throw await refusal(answer);
  return answer;
}

async function refusal(answer) {
  try {
    const { error, message } = JSON.parse(await textOf(answer, 10_000));
    return new Refused(answer.status, String(error), String(message).slice(0, 500));
  } catch {
    return new Refused(answer.status, "refused", `The server refused with status ${answer.status} and no reason.`);
  }
}

/** The body, as long as it is no larger than announced by nobody: reading stops at `largest` bytes. */
async function bytesOf(answer, largest) {
  const pieces = [];
  let size = 0;
  try {
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > largest) {
        reader.cancel();
        throw new WrongAnswer(`The server sent more than ${largest.toLocaleString("en")} bytes where that is the most there can be.`);
      }
      pieces.push(value);
    }
  } catch (fault) {
    if (fault instanceof WrongAnswer) throw fault;
    throw new Unreachable("The connection broke while the server was answering.");
  }
  const body = new Uint8Array(size);
  let place = 0;
  for (const piece of pieces) {
    body.set(piece, place);
    place += piece.length;
  }
  return body;
}

const textOf = async (answer, largest) => new TextDecoder().decode(await bytesOf(answer, largest));

async function jsonOf(answer, largest = LARGEST_JSON) {
  const text = await textOf(answer, largest);
  try {
    return JSON.parse(text);
  } catch {
    throw new WrongAnswer("The server's answer is not JSON.");
  }
}

function needed(holds, what) {
  if (!holds) throw new WrongAnswer(`The server's answer has no usable ${what}.`);
}
const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;
const positive = (value, high) => Number.isFinite(value) && value >= 0 && value <= high;

/** What the federation is: its name, its method, its limits and the policy it suggests. */
export async function about() {
  const told = await jsonOf(await ask("federation"), 100_000);
  needed(told?.api === 1 && told.method === "fpl", "version of the interface and method that this page knows");
  needed(whole(told.items, 2, 5_000_000), "number of items");
  const recipe = told.recipe ?? {};
  needed(whole(recipe.factors, 1, 1024) && whole(recipe.triples, 1, 100_000), "recipe");
  for (const name of ["learning_rate", "user_regulariser", "positive_regulariser", "negative_regulariser", "initial_scale"])
    needed(positive(recipe[name], 100), `recipe (${name})`);
  return told;
}

/** How the federation is doing; public. */
export async function status() {
  const told = await jsonOf(await ask("status"), 100_000);
  needed(whole(told?.version, 0, 1e15), "version");
  return told;
}

/** The items, in the order of their numbers. `shape` may still be on its way: it is only needed to check the answer. */
export async function catalogue(shape) {
  const told = await jsonOf(await ask("catalogue"));
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
    if (fault instanceof BadMessage) throw new WrongAnswer(fault.message);
    throw fault;
  }
}

/** The rows of the public model that changed since a version; all of them without one. */
export async function model(shape, since = null) {
  const answer = await ask(since === null ? "model" : `model?since=${since}`, { patience: 120_000 });
  return { ...(await tensors(answer, shape)), founding: answer.headers.get("X-Founding") };
}

/** Join: a device id and a token that the server makes up. Nothing about the person is told. */
export async function enrol() {
  const told = await jsonOf(await ask("devices", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }), 10_000);
  needed(typeof told?.device === "string" && typeof told?.token === "string", "device and token");
  return { device: told.device, token: told.token };
}

/** Leave: the token dies. */
export const leave = (token) => ask("devices/me", { method: "DELETE", token });

/** Wait for something to do; null if there is nothing for now. */
export async function work(token, seconds, signal) {
  const answer = await ask(`work?wait=${seconds}`, { token, signal, patience: (seconds + 30) * 1000 });
  if (answer.status === 204) return null;
  const task = await jsonOf(answer, 10_000);
  needed(typeof task?.ticket === "string" && /^[\w-]{1,200}$/.test(task.ticket), "ticket");
  needed(whole(task.round, 0, 2 ** 32 - 1) && whole(task.version, 0, 1e15), "round and version");
  return task;
}

/** The Broadcast of a task: the rows that changed since the version this device has. */
export async function broadcast(token, task, shape, have, signal) {
  const path = `tasks/${task.ticket}${have === null ? "" : `?have=${have}`}`;
  const rows = await tensors(await ask(path, { token, signal, patience: 120_000 }), shape);
  needed(rows.roundNumber === task.round && rows.version === task.version, "round and version: the task and its Broadcast differ");
  return rows;
}

/** Send an Update. The same bytes may be sent again with the same ticket: the server keeps them once. */
export async function send(token, ticket, body, signal) {
  const answer = await ask(`tasks/${ticket}/update`, {
    method: "POST",
    token,
    body,
    signal,
    headers: { "Content-Type": "application/octet-stream" },
    patience: 60_000,
  });
  const told = await jsonOf(answer, 10_000);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  const expected = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  needed(told?.receipt === expected, "receipt: it is not that of the bytes that were sent");
  return told;
}
