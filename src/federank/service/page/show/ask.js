/* Ask: the page's line to the worker. A question gets one answer, or a fault with a sentence.

This file needs no other, so the worker wakes while the rest of the page is still being fetched.
*/

const worker = new Worker(new URL("../device/worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
const listeners = new Map();
let asked = 0;

worker.onmessage = ({ data }) => {
  if (data.event) {
    listeners.get(data.event)?.(data);
    return;
  }
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.fault) reject(new Error(data.fault.message));
  else resolve(data.answer);
};
worker.onerror = () => {
  for (const { reject } of waiting.values())
    reject(new Error("The part of this page that learns could not be started in this browser."));
  waiting.clear();
};

/** Ask the worker something. */
export function ask(call, given) {
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, call, given });
  });
}

/** Be told whenever something changes by itself. */
export const listen = (event, listener) => listeners.set(event, listener);

/** The worker's first view of the device, asked for as early as can be. */
export const waking = ask("wake");
waking.catch(() => {});
