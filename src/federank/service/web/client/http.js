/* The client: one request at a time, and never more read than was asked for. It goes to the server that this page came from; only
who a helper is (secure.js) is asked at the helper's own address.

    NoAnswer    no answer, or one that says "later" (429, 5xx): worth a retry
    Refused     the server understood and said no, with a sentence
    BadAnswer   what came back is not what the interface declares; nothing of it is used

Retries and their backoff are participation.js's business; which requests there are, federation.js's.
*/

import { LONGEST_RETRY_AFTER, MOST_SMALL_BYTES } from "../schemas.js";
import { Fault } from "../faults.js";

// The HTML has these fetched while scripts are on their way: the first request takes what is there, later ones do not.
const BESIDE_THE_PAGE = new Set(["catalogue", "model"]);
const PREFIX = "api/v1";
/** What refusals mean to a user, by the server's word for them; of others its own words are shown.
 * @type {Record<string, Key>} */
const REFUSALS = { banned: "fault.banned", "not-invited": "fault.not-invited" };

export class NoAnswer extends Fault {
  /** `retryAfter` is how many seconds the server asked for, if it did.
   * @param {Said} said
   * @param {number | null} retryAfter */
  constructor(said, retryAfter = null) {
    super(said);
    this.retryAfter = retryAfter;
  }
}

export class Refused extends Fault {
  /** `slug` is the reason in one word.
   * @param {number} status
   * @param {string} slug
   * @param {Said} said */
  constructor(status, slug, said) {
    super(said);
    this.status = status;
    this.slug = slug;
  }
}

export class BadAnswer extends Fault {}

/** What `fetch` takes, with a token, a timeout in milliseconds, a signal that ends it, and another origin than the page's.
 * @typedef {Omit<RequestInit, "headers" | "signal"> & { token?: string | null, timeout?: number,
 *   signal?: AbortSignal, headers?: Record<string, string>, origin?: string }} Options */

/** @type {(path: string, options?: Options) => Promise<Response>} */
export async function request(path, { token, timeout = 30_000, signal, origin, ...options } = {}) {
  if (path.startsWith("model?")) BESIDE_THE_PAGE.clear(); // a client that has a model may know an older federation
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const signals = [AbortSignal.timeout(timeout), ...(signal ? [signal] : [])];
  let response;
  try {
    response = await fetch(new URL(origin ? path : `${PREFIX}/${path}`, origin ?? self.location.origin), {
      ...options,
      headers,
      signal: AbortSignal.any(signals),
      credentials: "omit",
      cache: BESIDE_THE_PAGE.delete(path) ? "default" : "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (fault) {
    if (signal?.aborted) throw fault;
    throw new NoAnswer(["fault.unreachable"]);
  }
  if (response.status === 429 || response.status >= 500) {
    const seconds = Number(response.headers.get("Retry-After"));
    throw new NoAnswer(["fault.busy"], seconds > 0 ? Math.min(seconds, LONGEST_RETRY_AFTER) : null);
  }
  if (response.status >= 400) throw await refusal(response);
  return response;
}

/** @type {(response: Response) => Promise<Refused>} */
async function refusal(response) {
  try {
    const { error, message } = await jsonOf(response);
    const [slug, reason] = [String(error), String(message).slice(0, 500)];
    const isKnown = Object.hasOwn(REFUSALS, slug);
    return new Refused(response.status, slug, isKnown ? [REFUSALS[slug]] : ["fault.refused", { reason }]);
  } catch {
    return new Refused(response.status, "refused", ["fault.refused", { reason: String(response.status) }]);
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
        throw new BadAnswer(["detail.too-much", { most: largest }]);
      }
      pieces.push(next.value);
    }
  } catch (fault) {
    if (fault instanceof BadAnswer) throw fault;
    throw new NoAnswer(["fault.unreachable"]);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** @type {(response: Response) => Promise<any>} */
export async function jsonOf(response) {
  return jsonIn(await bytesOf(response, MOST_SMALL_BYTES));
}

/** @type {(body: Uint8Array) => any} */
export function jsonIn(body) {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    throw new BadAnswer(["detail.not-json"]);
  }
}

// What an answer must hold: a value that is not as declared is refused with a sentence that names it as the interface does.

/** @type {(holds: unknown, what: string) => void} */
export function needed(holds, what) {
  if (!holds) throw new BadAnswer(["detail.unusable", { what }]);
}

/** @type {(value: any, low: number, high: number) => boolean} */
export const isIntegerIn = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;

/** @type {(value: any) => boolean} */
export const positive = (value) => Number.isFinite(value) && value >= 0;

/** @type {(seconds: number, signal?: AbortSignal) => Promise<void>} */
export const sleep = (seconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
