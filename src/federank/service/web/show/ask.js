/* Ask: the page's line to the worker. A question gets one answer, or a fault with a sentence.

Nothing is reported to the page while a button is down: what is shown again under a finger takes the button away, or moves it, and the
browser reports no click.

This file needs no other, so the worker wakes while the rest of the page is still being fetched.
*/

/** @import { Calls } from "../client/worker.js" */

/** What a question gives, and what its answer holds.
 * @template {keyof Calls} C
 * @typedef {Parameters<Calls[C]>[0]} Given */
/** @template {keyof Calls} C
 * @typedef {Awaited<ReturnType<Calls[C]>>} Answer */

/** The questions that are choices: their answer is how things stand afterwards.
 * @typedef {{ [C in keyof Calls]: Answer<C> extends View ? C : never }[keyof Calls]} Choosing */

/** Carries out a choice and shows what came of it.
 * @typedef {<C extends Choosing>(call: C, given?: Given<C>) => Promise<void>} Act */

const worker = new Worker(new URL(`../client/worker.js${location.hash}`, import.meta.url), { type: "module" });
/** @type {Map<number, { resolve: (answer: any) => void, reject: (fault: Error) => void }>} */
const waiting = new Map();
/** @type {((view: View) => void) | null} */
let listener = null;
let latest = 0;

/** What saidOf (faults.js) finds its sentence in.
 * @type {(said: Said) => Error} */
const faultOf = (said) => Object.assign(new Error(), { said });

/** @type {any[]} */
const deferred = [];
/** @type {EventTarget | null} */
let pressed = null;
const UNTIL_CLICK = 50; // ms; a touch becomes a click a moment after the finger is up

addEventListener("pointerdown", ({ target }) => {
  pressed = target instanceof Element ? target.closest("button,a,label,summary") : null;
});
addEventListener("click", () => release(pressed));
for (const end of ["pointerup", "pointercancel"])
  addEventListener(end, () => setTimeout(release, UNTIL_CLICK, pressed));

/** @type {(button: EventTarget | null) => void} */
function release(button) {
  if (pressed !== button) return; // another has been pressed since
  pressed = null;
  deferred.splice(0).forEach(handle);
}

worker.onmessage = ({ data }) => (pressed ? deferred.push(data) : handle(data));

/** @type {(data: any) => void} */
function handle(data) {
  if (data.event === "view") return listener?.(data.view);
  const question = waiting.get(data.id);
  waiting.delete(data.id);
  return "fault" in data ? question?.reject(faultOf(data.fault)) : question?.resolve(data.answer);
}
worker.onerror = () => {
  for (const { reject } of waiting.values()) reject(faultOf(["worker-missing"]));
  waiting.clear();
};

/** Ask the worker something.
 * @type {<C extends keyof Calls>(call: C, given?: Given<C>) => Promise<Answer<C>>} */
export function ask(call, given) {
  return new Promise((resolve, reject) => {
    waiting.set(++latest, { resolve, reject });
    worker.postMessage({ id: latest, call, given });
  });
}

/** @type {(receiver: (view: View) => void) => void} */
export function listen(receiver) {
  listener = receiver;
}

/** The worker's first view of the device, asked for as early as can be. */
export const waking = ask("wake");
waking.catch(() => {});
