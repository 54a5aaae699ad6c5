/* The page: a person's window on their device. It asks the worker, shows what comes back, and keeps nothing itself.

    pick              what you like
    recommendations   what else you might like
    mine              what is yours
    sharing           how much may leave; taking part
    left              what has left, and what could still be guessed
    federation        how the others are doing
*/

import { sentenceOf } from "./faults.js";
import { ask, listen, waking } from "./show/ask.js";
import { byId, element, fill } from "./show/elements.js";
import * as federation from "./show/federation.js";
import * as left from "./show/left.js";
import * as pick from "./show/pick.js";
import * as recommendations from "./show/recommendations.js";
import { standing } from "./show/sentences.js";
import * as sharing from "./show/sharing.js";

/** @import { View } from "./device/view.js" */
/** @import { Act } from "./show/ask.js" */

const STATUS_EVERY = 10_000;
const wide = matchMedia("(min-width: 58rem)");
/** @type {View} */
let view;

/** @type {(given: View) => Promise<void>} */
async function show(given) {
  view = given;
  byId("main").hidden = false;
  byId("name").textContent = view.federation.name || "Recommendations that stay yours";
  byId("about").textContent = view.federation.description;
  byId("standing").textContent = standing(view);
  byId("standing").classList.toggle("on", view.taking && !view.hurdle);
  if (view.notice && byId("trouble").textContent !== view.notice) showTrouble(view.notice);
  sharing.show(view);
  await Promise.all([pick.show(view), recommendations.show(view), left.show(view)]);
  document.documentElement.dataset.ready = "true";
}

/** Carry out a choice and show what came of it.
 * @type {Act} */
async function act(call, given) {
  try {
    clearTrouble();
    await show(await ask(call, given));
  } catch (fault) {
    showTrouble(sentenceOf(fault));
  }
}

/** @type {(message: string, again?: (() => void) | null) => void} */
function showTrouble(message, again = null) {
  const button = again ? element("button", { type: "button", on: { click: again } }, "Try again") : null;
  fill(byId("trouble"), element("p", {}, message), button);
  byId("trouble").hidden = false;
}

function clearTrouble() {
  byId("trouble").hidden = true;
}

async function leave() {
  const { noun } = view.federation;
  const sent = view.rounds.length ? " What has already been sent cannot be called back." : "";
  byId("sure-text").textContent =
    `Your list of ${noun.many}, your choices, the ledger and this device's keys will be gone from this browser.${sent}`;
  const sure = byId("sure", HTMLDialogElement);
  sure.returnValue = "no";
  sure.showModal();
}

async function leaveIfSure() {
  if (byId("sure", HTMLDialogElement).returnValue !== "yes") return;
  try {
    const { isKnown, view: empty } = await ask("leave");
    await show(empty);
    showTrouble(
      isKnown
        ? "You have left. Everything this page kept in this browser is erased."
        : "Everything this page kept in this browser is erased. The server could not be told; it will find out by your silence.",
    );
    byId("trouble").focus(); // the button that was pressed is far below
  } catch (fault) {
    showTrouble(sentenceOf(fault));
  }
}

async function watch() {
  try {
    if (document.visibilityState === "visible") federation.show(await ask("status"), view.federation);
  } catch (fault) {
    fill(byId("status"), element("div", {}, element("dt", {}, sentenceOf(fault))));
  }
  setTimeout(watch, STATUS_EVERY);
}

/** @type {(awake: Promise<View>) => Promise<void>} */
async function open(awake) {
  try {
    clearTrouble();
    byId("standing").textContent = "Opening…";
    await show(await awake);
    performance.mark("usable");
    watch();
  } catch (fault) {
    byId("standing").textContent = "Not open";
    showTrouble(sentenceOf(fault), () => open(ask("wake")));
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

wide.addEventListener("change", arrange);
arrange();
pick.prepare({ act });
recommendations.prepare({ act });
sharing.prepare({ act });
byId("leave").addEventListener("click", leave);
byId("sure").addEventListener("close", leaveIfSure);
listen(show);
open(waking);
