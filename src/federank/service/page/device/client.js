/* The client: one request at a time to the server that this page came from, and never more read than was asked for.

    NoAnswer    no answer, or one that says "later" (429, 5xx): worth a retry
    Refused     the server understood and said no, with a sentence
    BadAnswer   what came back is not what the interface promises; nothing of it is used

Retries and their backoff are life.js's business; which requests there are, federation.js's.
*/

import { LONGEST_RETRY_AFTER, MOST_SMALL_BYTES } from "./rules.js";

const PREFIX = "api/v1";

export class NoAnswer extends Error {
  /** `retryAfter` is how many seconds the server asked for, if it did.
   * @param {string} message
   * @param {number | null} retryAfter */
  constructor(message, retryAfter = null) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

export class Refused extends Error {
  /** `slug` is the reason in one word.
   * @param {number} status
   * @param {string} slug
   * @param {string} message */
  constructor(status, slug, message) {
    super(message);
    this.status = status;
    this.slug = slug;
  }
}

export class BadAnswer extends Error {}

/** What `fetch` takes, with a token, a timeout in milliseconds, and a signal that ends it.
 * @typedef {Omit<RequestInit, "headers" | "signal"> & { token?: string | null, timeout?: number,
 *   signal?: AbortSignal, headers?: Record<string, string> }} Options */

/** Make a request; the response, whose body is still to be read.
 * @type {(path: string, options?: Options) => Promise<Response>} */
export async function request(path, { token, timeout = 30_000, signal, ...options } = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const signals = [AbortSignal.timeout(timeout), ...(signal ? [signal] : [])];
  let response;
  try {
    response = await fetch(new URL(`${PREFIX}/${path}`, self.location.origin), {
      ...options,
      headers,
      signal: AbortSignal.any(signals),
      credentials: "omit",
      cache: path === "catalogue" ? "default" : "no-store", // the model is kept in store.js
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (fault) {
    if (signal?.aborted) throw fault;
    throw new NoAnswer("The server cannot be reached just now.");
  }
  if (response.status === 429 || response.status >= 500) {
    const seconds = Number(response.headers.get("Retry-After"));
    throw new NoAnswer("The server is busy just now.", seconds > 0 ? Math.min(seconds, LONGEST_RETRY_AFTER) : null);
  }
  if (response.status >= 400) throw await refusal(response);
  return response;
}

/** @type {(response: Response) => Promise<Refused>} */
async function refusal(response) {
  try {
    const { error, message } = JSON.parse(await textOf(response, MOST_SMALL_BYTES));
    return new Refused(response.status, String(error), String(message).slice(0, 500));
  } catch {
    return new Refused(response.status, "refused", `The server refused with status ${response.status} and no reason.`);
  }
}

/** The bytes of a body: reading stops at `largest` of them, whatever was announced.
 * @type {(response: Response, largest: number) => Promise<Uint8Array<ArrayBuffer>>} */
export async function bytesOf(response, largest) {
  const pieces = [];
  let size = 0;
  try {
    const reader = response.body?.getReader();
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      size += next.value.length;
      if (size > largest) {
        reader?.cancel();
        throw new BadAnswer(
          `The server sent more than ${largest.toLocaleString("en")} bytes where that is the most there can be.`,
        );
      }
      pieces.push(next.value);
    }
  } catch (fault) {
    if (fault instanceof BadAnswer) throw fault;
    throw new NoAnswer("The connection broke while the server was answering.");
  }
  const body = new Uint8Array(size);
  let index = 0;
  for (const piece of pieces) {
    body.set(piece, index);
    index += piece.length;
  }
  return body;
}

/** @type {(response: Response, largest: number) => Promise<string>} */
async function textOf(response, largest) {
  return new TextDecoder().decode(await bytesOf(response, largest));
}

/** The JSON of a body, which may be anything.
 * @type {(response: Response, largest?: number) => Promise<any>} */
export async function jsonOf(response, largest = MOST_SMALL_BYTES) {
  const text = await textOf(response, largest);
  try {
    return JSON.parse(text);
  } catch {
    throw new BadAnswer("The server's answer is not JSON.");
  }
}
