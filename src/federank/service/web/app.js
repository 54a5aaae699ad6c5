/* The page: a person's window on their device. It asks the worker, shows what comes back, and keeps nothing itself.

    pick              what you like
    recommendations   what else you might like
    mine              what is yours
    sharing           how much may leave; taking part
    left              what has left, and what could still be guessed
    federation        how the others are doing
*/

import { saidOf } from "./faults.js";
import { ask, listen, waking } from "./show/ask.js";
import { byId, element, fill } from "./show/elements.js";
import * as federation from "./show/federation.js";
import { keepChoice, named, say, told, together } from "./show/language.js";
import * as left from "./show/left.js";
import * as pairs from "./show/pairs.js";
import * as pick from "./show/pick.js";
import * as recommendations from "./show/recommendations.js";
import { isOn, standing, talksTo } from "./show/sentences.js";
import * as sharing from "./show/sharing.js";
import { prepareTexts } from "./show/texts.js";

/** @import { Status } from "./device/requests/federation.js" */
/** @import { View } from "./device/view.js" */
/** @import { Said } from "./faults.js" */
/** @import { Act } from "./show/ask.js" */

const STATUS_EVERY = 10_000;
const wide = matchMedia("(min-width: 58rem)");
/** @type {View} */
let view;

/** @type {(given: View) => Promise<void>} */
async function show(given) {
  view = given;
  byId("main").hidden = false;
  byId("name").textContent = view.federation.name || say("page.name");
  const { description, runBy } = view.federation;
  byId("about").textContent = together(description, runBy && say("run-by", { who: runBy }));
  byId("standing").textContent = standing(view);
  byId("talks-to").textContent = talksTo(view);
  byId("standing").classList.toggle("on", isOn(view));
  showNotice();
  sharing.show(view);
  pairs.show(view);
  federation.showFriend(view.federation, location);
  await Promise.all([pick.show(view), recommendations.show(view), left.show(view)]);
  sayWhatWasShown();
  document.documentElement.dataset.ready = "true";
}

/** What was added while taking part may leave only once its owner has seen that it waits. */
function sayWhatWasShown() {
  const ids = view?.history.filter(({ unshown }) => unshown).map(({ id }) => id) ?? [];
  if (ids.length && document.visibilityState === "visible") ask("shown", { ids }).catch(() => {});
}

let noticed = "";
/** What the person must know, as long as it is so. */
function showNotice() {
  const notice = view.notice && told(view.notice);
  if (notice && byId("trouble").textContent !== notice) showTrouble(notice);
  if (!notice && byId("trouble").textContent === noticed) clearTrouble();
  noticed = notice ?? "";
}

/** Carry out a choice and show what came of it.
 * @type {Act} */
async function act(call, given) {
  try {
    clearTrouble();
    await show(await ask(call, given));
  } catch (fault) {
    showTrouble(told(saidOf(fault)));
  }
}

/** @type {(message: string, again?: (() => void) | null) => void} */
function showTrouble(message, again = null) {
  const button = again ? element("button", { type: "button", on: { click: again } }, say("try-again")) : null;
  fill(byId("trouble"), element("p", {}, message), button);
  byId("trouble").hidden = false;
}

function clearTrouble() {
  byId("trouble").hidden = true;
}

async function leave() {
  byId("sure-text").textContent = together(
    say("sure.text", named(view.federation.noun)),
    view.rounds.length ? say("sure.sent") : "",
  );
  const sure = byId("sure", HTMLDialogElement);
  sure.returnValue = "no";
  sure.showModal();
}

async function leaveIfSure() {
  if (byId("sure", HTMLDialogElement).returnValue !== "yes") return;
  try {
    const { isKnown, view: empty } = await ask("leave");
    await forgetThePage();
    await show(empty);
    showTrouble(say(isKnown ? "gone.known" : "gone.unknown"));
    byId("trouble").focus(); // the button that was pressed is far below
  } catch (fault) {
    showTrouble(told(saidOf(fault)));
  }
}

/** The page's own files that were kept for days without a network, and what kept them; and the language that was chosen. */
async function forgetThePage() {
  keepChoice(null);
  const workers = (await navigator.serviceWorker?.getRegistrations()) ?? [];
  await Promise.all(workers.map((worker) => worker.unregister()));
  if (globalThis.caches) for (const name of await caches.keys()) await caches.delete(name);
}

/** Let the page open without a network from now on, where the browser allows it. */
function keepThePage() {
  navigator.serviceWorker?.register("service_worker.js").catch(() => {});
}

/** What the federation last said of itself, or why it said nothing.
 * @type {Status | Said | null} */
let status = null;

function showStatus() {
  if (typeof status === "string" || Array.isArray(status)) {
    fill(byId("status"), element("div", {}, element("dt", {}, told(status))));
    federation.showSimulated(null);
  } else if (status) {
    federation.show(status, view.federation);
    federation.showSimulated(status.simulated);
  }
}

async function watch() {
  try {
    if (document.visibilityState === "visible") status = await ask("status");
  } catch (fault) {
    status = saidOf(fault);
  }
  showStatus();
  setTimeout(watch, STATUS_EVERY);
}

/** Why the page could not be opened.
 * @type {Said | null} */
let unopened = null;

function showUnopened() {
  byId("standing").textContent = say("not-open");
  showTrouble(told(unopened ?? ""), () => open(ask("wake")));
}

/** @type {(awake: Promise<View>) => Promise<void>} */
async function open(awake) {
  try {
    unopened = null;
    clearTrouble();
    byId("standing").textContent = say("opening");
    await show(await awake);
    performance.mark("usable");
    keepThePage();
    watch();
  } catch (fault) {
    unopened = saidOf(fault);
    showUnopened();
  }
}

/** One column in the order of the story, or two where there is room: the order on the screen is always that of the keyboard. */
function arrange() {
  const [first, second] = document.querySelectorAll(".column");
  /** @type {(...ids: string[]) => HTMLElement[]} */
  const sections = (...ids) => ids.map((id) => byId(id));
  if (!wide.matches)
    return first.append(...sections("pick", "recommendations", "mine", "sharing", "left", "federation", "leaving"));
  first.append(...sections("pick", "mine", "sharing", "federation", "leaving"));
  return second.append(...sections("recommendations", "left"));
}

document.addEventListener("visibilitychange", sayWhatWasShown);
wide.addEventListener("change", arrange);
arrange();
prepareTexts(async () => {
  if (unopened) return showUnopened();
  if (view) await show(view);
  return showStatus();
});
pick.prepare({ act });
recommendations.prepare({ act });
sharing.prepare({ act });
pairs.prepare({ act });
byId("leave").addEventListener("click", leave);
byId("sure").addEventListener("close", leaveIfSure);
listen(show);
open(waking);
