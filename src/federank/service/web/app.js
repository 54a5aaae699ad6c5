/* The page: a user's window on their client. It asks the worker, shows what comes back, and keeps nothing itself.

    wall       posters to pick from
    for-you    shelves of recommendations
    mine       the list, what is for later, files
    leaves     what may leave, and what has left
*/

import { saidOf } from "./faults.js";
import { ask, listen, waking } from "./show/ask.js";
import { button, byId, element, fill, folded } from "./show/elements.js";
import * as item from "./show/item.js";
import { language, prepareTexts, remember, remembered, say, worded } from "./show/language.js";
import * as leaves from "./show/leaves.js";
import * as mine from "./show/mine.js";
import { joiningCode, picture } from "./show/pictures.js";
import { federationIn, lock, on } from "./show/sentences.js";
import * as shelves from "./show/shelves.js";
import * as wall from "./show/wall.js";

const STATUS_EVERY = 10_000; // ms
const SCREENS = ["wall", "for-you", "mine", "leaves"];
/** @type {View} */
let view;

/** @type {(given: View) => Promise<void>} */
async function show(given) {
  view = given;
  remember("screen", view.history.length ? "for-you" : null);
  showTop();
  showNotice();
  await Promise.all([wall.show(view), shelves.show(view), mine.show(view), leaves.show(view)]);
  sayWhatWasShown();
  document.documentElement.dataset.ready = "true";
}

function showTop() {
  const { name, description, lang, runBy } = federationIn(view, language);
  byId("name").textContent = name || "FedeRank";
  byId("name").lang = lang;
  document.title = name ? `${name} · FedeRank` : "FedeRank";
  fill(
    byId("about"),
    element("span", { lang }, description),
    runBy && !(language in view.federation.translations)
      ? element("span", {}, ` ${say("run-by", { who: runBy })}`)
      : null,
  );
  const { text, kind } = lock(view, Date.now());
  if (byId("lock").textContent !== text)
    fill(byId("lock"), picture(kind === "closed" ? "lock" : "plane"), element("span", {}, text));
  byId("lock").dataset.kind = kind;
  showFriend();
}

function showFriend() {
  const { joining } = view.federation;
  if (!joining || byId("friend").dataset.for === language) return;
  byId("friend").dataset.for = language;
  fill(byId("friend"), folded("friend-code", say("friend.summary"), joiningCode(joining, say("friend.scan"))));
}

/** Show the screen that the address names; without one, what fits how far its visitor has come. */
function route() {
  const wanted = location.hash.slice(1);
  const usual = (view ? view.history.length : remembered("screen")) ? "for-you" : "wall";
  const next = SCREENS.includes(wanted) ? wanted : usual;
  const changed = next !== document.body.dataset.screen;
  document.body.dataset.screen = next;
  for (const section of document.querySelectorAll("section[data-for]"))
    if (section instanceof HTMLElement) section.hidden = section.dataset.for !== next;
  for (const tab of document.querySelectorAll("#tabs a"))
    if (tab instanceof HTMLElement) {
      if (tab.dataset.screen === next) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  if (!changed || !document.documentElement.dataset.ready) return; // a page that opens begins at its top
  scrollTo(0, 0);
  byId(`${next}-title`).focus({ preventScroll: true });
  if (next === "for-you") shelves.show(view, true);
}

/** What was added while taking part may leave only once its owner has seen that it waits. */
function sayWhatWasShown() {
  const ids = view?.history.filter(({ unshown }) => unshown).map(({ id }) => id) ?? [];
  if (ids.length && document.visibilityState === "visible") ask("shown", { ids }).catch(() => {});
}

let noticed = "";
function showNotice() {
  const notice = view.notice && worded(view.notice);
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
    showTrouble(worded(saidOf(fault)));
  }
}

/** @type {(message: string, again?: (() => void) | null) => void} */
function showTrouble(message, again = null) {
  fill(byId("trouble"), element("p", {}, message), again && button(say("try-again"), again));
  byId("trouble").hidden = false;
}

function clearTrouble() {
  byId("trouble").hidden = true;
}

function leave() {
  byId("sure-text").textContent = say(view.rounds.length ? "sure.sent" : "sure.text", { on: on() });
  const sure = byId("sure", HTMLDialogElement);
  sure.returnValue = "no";
  sure.showModal();
}

async function leaveIfSure() {
  if (byId("sure", HTMLDialogElement).returnValue !== "yes") return;
  try {
    const { isKnown, view: empty } = await ask("leave");
    await forgetThePage();
    location.hash = "#wall";
    await show(empty);
    showTrouble(say(isKnown ? "gone.known" : "gone.unknown"));
    byId("trouble").focus();
  } catch (fault) {
    showTrouble(worded(saidOf(fault)));
  }
}

/** The page's own files that were stored for days without a network, and what stored them; and the language that was chosen. */
async function forgetThePage() {
  remember("language", null);
  remember("screen", null);
  const workers = (await navigator.serviceWorker?.getRegistrations()) ?? [];
  await Promise.all(workers.map((worker) => worker.unregister()));
  if (globalThis.caches) for (const name of await caches.keys()) await caches.delete(name);
}

function keepThePage() {
  navigator.serviceWorker?.register("service_worker.js").catch(() => {});
}

/** Look now and then whether there is anything new: recommendations, and whether the federation is well. */
async function watch() {
  try {
    if (document.visibilityState === "visible") await leaves.showStatus(await ask("status"));
  } catch (fault) {
    if (!(fault instanceof Error)) throw fault; // what can be said of it the next view says
    await leaves.showStatus(null);
  }
  setTimeout(watch, STATUS_EVERY);
}

/** @type {Said | null} */
let unopened = null;

function showUnopened() {
  showTrouble(worded(unopened ?? ""), () => open(ask("wake")));
}

/** @type {(awake: Promise<View>) => Promise<void>} */
async function open(awake) {
  try {
    unopened = null;
    clearTrouble();
    view = await awake;
    route();
    await show(view);
    performance.mark("usable");
    keepThePage();
    watch();
  } catch (fault) {
    unopened = saidOf(fault);
    showUnopened();
  }
}

document.addEventListener("visibilitychange", sayWhatWasShown);
addEventListener("hashchange", route);
prepareTexts(() => (unopened ? showUnopened() : view && show(view)));
route();
for (const part of [item, wall, mine, leaves]) part.prepare({ act });
byId("leave").addEventListener("click", leave);
byId("sure").addEventListener("close", leaveIfSure);
listen(show);
open(waking);
