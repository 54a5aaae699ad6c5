/* Sharing: one slider and a sentence that says what it means; what must never leave; taking part and pausing. */

import { byId, element, fill, isOpen } from "./elements.js";
import { counted, say, together } from "./language.js";
import { meaningOf, nowDoing, promise, promiseInFull } from "./sentences.js";

/** @import { Choice } from "../device/store.js" */
/** @import { View } from "../device/view.js" */
/** @import { Key } from "../faults.js" */
/** @import { Act } from "./ask.js" */

const FIRST_EPSILON = 2;
/** Ways to share, what they are called and what they mean.
 * @type {[sharing: string, title: Key, words: Key][]} */
const KINDS = [
  ["fixed-subset", "kind.fixed-subset", "kind.fixed-subset-words"],
  ["randomized-response", "kind.randomized-response", "kind.randomized-response-words"],
  ["all", "kind.all", "kind.all-words"],
];
/** @type {View} */
let view;
/** @type {Act} */
let act;

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  const slider = byId("share", HTMLInputElement);
  slider.addEventListener("input", () => sayWhatItMeans(Number(slider.value) / 100));
  slider.addEventListener("change", () =>
    act("setPolicy", { change: { pi: mostFor(view.choice.sharing, Number(slider.value) / 100) } }),
  );
  byId("take-part").addEventListener("click", () => {
    if (!view.taking) navigator.storage?.persist?.(); // so that the browser does not clear the ledger to make room
    act(view.taking ? "pause" : "takePart");
  });
}

/** Randomized response of everything would deny nothing.
 * @type {(sharing: string, pi: number) => number} */
function mostFor(sharing, pi) {
  return sharing === "randomized-response" ? Math.min(pi, 0.95) : pi;
}

/** Show a view of the device.
 * @type {(given: View) => void} */
export function show(given) {
  view = given;
  const { choice, chosen, federation, taking, progress } = view;
  const slider = byId("share", HTMLInputElement);
  slider.value = String(Math.round(choice.pi * 100));
  sayWhatItMeans(choice.pi);
  byId("share-origin").textContent = chosen ? "" : originOf(federation);
  byId("take-part").textContent = say(taking ? "sharing.pause" : "sharing.take-part");
  byId("take-part").className = taking ? "" : "main-button";
  byId("progress").textContent = nowDoing(view);
  byId("progress").dataset.state = taking ? progress.state : "resting";
  showPromise();
  showCard();
  showNever();
  showKinds();
}

/** Where the slider's first position comes from.
 * @type {(federation: View["federation"]) => string} */
function originOf({ suggested, name }) {
  if (!suggested) return say("sharing.careful");
  return name ? say("sharing.suggested", { name }) : say("sharing.suggested-unnamed");
}

/** Who can read a message and what all of them can tell, with one tap to what that means. */
function showPromise() {
  const words = promiseInFull(view, location.origin);
  const terms = words.flatMap(([title, said]) => [element("dt", {}, title), element("dd", {}, said)]);
  fill(
    byId("promise"),
    element("p", { class: view.plain ? "warned" : "promised" }, promise(view)),
    words.length
      ? element(
          "details",
          { id: "promise-in-full", open: isOpen("promise-in-full") },
          element("summary", { "data-key": "promise" }, say("promise.meaning")),
          element("dl", { class: "meaning" }, ...terms),
        )
      : element("p", { class: "quiet" }, element("a", { href: "privacy.html" }, say("promise.what-they-tell"))),
  );
}

/** Before anything leaves, and ever after: which of the person's own may. Each can still be kept back; where a fixed part was
chosen by chance, another may then take its place. */
function showCard() {
  const { history, choice, federation, messages } = view;
  const may = history.filter((item) => item.mayLeave && !item.left);
  if (choice.sharing === "all" || !may.length) return fill(byId("may-leave"));
  const often = messages ? say("which.often", { messages: say("messages", { count: messages.most }) }) : "";
  const byChance = choice.sharing === "fixed-subset" && choice.pi < 1;
  const keep = may.map(({ id, title }) =>
    element(
      "li",
      {},
      element("span", { class: "what" }, title),
      element(
        "button",
        {
          type: "button",
          class: "small",
          "data-key": `keep ${id}`,
          "aria-label": say("which.not-label", { title }),
          on: { click: () => act("never", { id, on: true }) },
        },
        say("which.not"),
      ),
    ),
  );
  const words = say(choice.sharing === "randomized-response" ? "which.may-decoys" : "which.may", {
    count: may.length,
    counted: counted(may.length, federation.noun),
  });
  return fill(
    byId("may-leave"),
    element(
      "details",
      { id: "may-leave-list", open: isOpen("may-leave-list") },
      element("summary", { "data-key": "may-leave" }, words),
      element("ul", { class: "rows" }, ...keep),
      element("p", { class: "quiet" }, together(say(byChance ? "which.chance" : "which.unmarked"), often)),
    ),
  );
}

/** @type {(pi: number) => void} */
function sayWhatItMeans(pi) {
  const per = Math.round(pi * 100);
  byId("share-value").textContent = say("sharing.per-cent", { count: per });
  byId("share-sentence").textContent = meaningOf(view, mostFor(view.choice.sharing, pi));
  byId("share").setAttribute(
    "aria-valuetext",
    say("sharing.spoken", { count: per, sentence: byId("share-sentence").textContent }),
  );
}

function showNever() {
  const chips = view.categories.map(({ name }) => {
    const on = view.choice.neverCategories.includes(name);
    return element(
      "li",
      {},
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(on),
          "data-key": name,
          on: { click: () => act("never", { category: name, on: !on }) },
        },
        on ? say("category.never", { category: name }) : name,
      ),
    );
  });
  fill(byId("never-categories"), ...(chips.length ? chips : [element("li", { class: "quiet" }, say("category.none"))]));
}

/** Where items are rated: what is hidden among, and how much of it.
 * @type {[filling: string, title: Key, words: Key][]} */
const FILLINGS = [
  ["hybrid", "filling.hybrid", "filling.hybrid-words"],
  ["average", "filling.average", "filling.average-words"],
  ["none", "filling.none", "filling.none-words"],
];
const RHOS = [1, 2, 3];

/** Virtual ratings: of which kind, and how many for each of one's own. */
function showFillings() {
  const { filling, rho } = view.choice;
  const often = rho || view.federation.suggested?.rho || 2;
  const radios = FILLINGS.map(([kind, title, words]) => {
    const change = { filling: kind, rho: kind === "none" ? 0 : often };
    return wayToShare("filling", kind, filling === kind, title, words, () => change);
  });
  const options = [...new Set([...RHOS, often])].sort((one, other) => one - other);
  const many = element(
    "select",
    {
      id: "rho",
      "data-key": "rho",
      disabled: filling === "none",
      on: { change: ({ target }) => act("setPolicy", { change: { rho: Number(target.value) } }) },
    },
    ...options.map((value) => element("option", { value: String(value), selected: value === often }, String(value))),
  );
  fill(
    byId("kinds"),
    element("legend", { class: "unseen" }, say("filling.legend")),
    ...radios,
    element("p", { class: "wish" }, element("label", { for: "rho" }, say("filling.rho")), " ", many),
  );
}

function showKinds() {
  if (view.federation.scale && view.plain) return showFillings();
  const box = byId("kinds");
  const radios = KINDS.filter(([sharing]) => view.federation.sharing.includes(sharing)).map(
    ([sharing, title, words]) => {
      const change = () => ({
        sharing,
        basis: "shared",
        item_epsilon: sharing === "randomized-response" ? FIRST_EPSILON : null,
        budget: null,
        pi: mostFor(sharing, view.choice.pi),
      });
      return wayToShare("kind", sharing, view.choice.sharing === sharing, title, words, change);
    },
  );
  return fill(box, element("legend", { class: "unseen" }, say("kinds.legend")), ...radios);
}

/** One of several ways to share, to be chosen with what it changes in the policy.
 * @type {(group: string, value: string, checked: boolean, title: Key, words: Key, change: () => Partial<Choice>) => HTMLElement} */
function wayToShare(group, value, checked, title, words, change) {
  const id = `${group}-${value}`;
  const on = { change: () => act("setPolicy", { change: change() }) };
  const input = element("input", { type: "radio", name: group, value, id, "data-key": value, checked, on });
  const name = element("strong", {}, say(title));
  const label = element("label", { for: id }, name, element("span", { class: "quiet" }, ` ${say(words)}`));
  return element("div", { class: "kind" }, input, label);
}
