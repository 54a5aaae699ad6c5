/* Sharing: one slider and a sentence that says what it means; what must never leave; taking part and pausing. */

import { byId, element, fill, isOpen } from "./elements.js";
import { meaningOf, nowDoing } from "./sentences.js";
import { counted } from "./words.js";

/** @import { View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const FIRST_EPSILON = 2;
const KINDS = [
  [
    "sticky",
    "A fixed part, for life",
    "Some of yours are chosen once, by chance. Only those ever leave, however long you take part, as long as your list and the slider stay as they are.",
  ],
  [
    "deniable",
    "With decoys",
    "What leaves is mixed with things you never chose, decided once for life. Of the list you join with, nothing seen is surely yours; what you add or remove later, or another position of the slider, can show. What you mark never to be shared may still be sent as a decoy.",
  ],
  [
    "as-published",
    "A new coin every time",
    "As in the research papers. Sooner or later nearly everything you have will have left, however low the slider.",
  ],
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

/** Deniable sharing of everything would deny nothing.
 * @type {(sharing: string, pi: number) => number} */
function mostFor(sharing, pi) {
  return sharing === "deniable" ? Math.min(pi, 0.95) : pi;
}

/** Show a view of the device.
 * @type {(given: View) => void} */
export function show(given) {
  view = given;
  const { choice, chosen, federation, taking, progress } = view;
  const slider = byId("share", HTMLInputElement);
  slider.value = String(Math.round(choice.pi * 100));
  sayWhatItMeans(choice.pi);
  byId("share-origin").textContent = chosen
    ? ""
    : federation.suggested
      ? `This is what ${federation.name || "this federation"} suggests. Move the slider to make it your own.`
      : "This is a careful beginning. Move the slider to make it your own.";
  byId("take-part").textContent = taking ? "Pause" : "Take part";
  byId("take-part").className = taking ? "" : "main-button";
  byId("progress").textContent = nowDoing(view);
  byId("progress").dataset.state = taking ? progress.state : "resting";
  showCard();
  showNever();
  showKinds();
}

/** Before anything leaves, and ever after: which of the person's own may. Each can still be kept back; where a fixed part was
chosen by chance, another may then take its place. */
function showCard() {
  const { history, choice, federation, messages } = view;
  const may = history.filter((item) => item.mayLeave && !item.left);
  if (choice.sharing === "as-published" || !may.length) return fill(byId("may-leave"));
  const decoys = choice.sharing === "deniable" ? ", among decoys" : "";
  const often = messages ? ` In at most ${counted(messages.most, { one: "message", many: "messages" })}, ever.` : "";
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
          "aria-label": `Not this one, never share: ${title}`,
          on: { click: () => act("never", { id, on: true }) },
        },
        "Not this one",
      ),
    ),
  );
  const words = `Which? ${counted(may.length, federation.noun)} may be sent${decoys}`;
  return fill(
    byId("may-leave"),
    element(
      "details",
      { id: "may-leave-list", open: isOpen("may-leave-list") },
      element("summary", { "data-key": "may-leave" }, words),
      element("ul", { class: "rows" }, ...keep),
      element(
        "p",
        { class: "quiet" },
        `${choice.sharing === "sticky" && choice.pi < 1 ? "Chosen by chance, for life; keep one back and another may take its place." : "All that you have not marked."}${often}`,
      ),
    ),
  );
}

/** @type {(pi: number) => void} */
function sayWhatItMeans(pi) {
  const per = Math.round(pi * 100);
  byId("share-value").textContent = `${per} %`;
  byId("share-sentence").textContent = meaningOf(view, mostFor(view.choice.sharing, pi));
  byId("share").setAttribute("aria-valuetext", `${per} per cent. ${byId("share-sentence").textContent}`);
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
        on ? `${name}: never` : name,
      ),
    );
  });
  fill(
    byId("never-categories"),
    ...(chips.length ? chips : [element("li", { class: "quiet" }, "This catalogue has no categories.")]),
  );
}

function showKinds() {
  const box = byId("kinds");
  const radios = KINDS.filter(([sharing]) => view.federation.sharing.includes(sharing)).map(
    ([sharing, title, words]) => {
      const choose = () =>
        act("setPolicy", {
          change: {
            sharing,
            basis: "shared",
            epsilon: sharing === "deniable" ? FIRST_EPSILON : null,
            budget: null,
            pi: mostFor(sharing, view.choice.pi),
          },
        });
      const input = element("input", {
        type: "radio",
        name: "kind",
        value: sharing,
        id: `kind-${sharing}`,
        "data-key": sharing,
        checked: view.choice.sharing === sharing,
        on: { change: choose },
      });
      const label = element(
        "label",
        { for: `kind-${sharing}` },
        element("strong", {}, title),
        element("span", { class: "quiet" }, ` ${words}`),
      );
      return element("div", { class: "kind" }, input, label);
    },
  );
  fill(box, element("legend", { class: "unseen" }, "How it is decided what may leave"), ...radios);
}
