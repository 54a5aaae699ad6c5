/* Sharing: one slider and a sentence that says what it means; what must never leave; taking part and pausing. */

import { byId, capital, counted, element, fill } from "./elements.js";
import { decoyRate, isBounded, mostChosen } from "../protocol/policy.js";

/** @import { View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const FIRST_EPSILON = 2;
const KINDS = [
  [
    "sticky",
    "A fixed part, for life",
    "Some of yours are chosen once, by chance. Only those ever leave; the rest never does, however long you take part.",
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
  const { choice, chosen, federation, taking, progress, hurdle } = view;
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
  byId("progress").textContent = taking ? (hurdle ?? progress.says) : "You are not taking part: nothing is sent.";
  byId("progress").dataset.state = taking ? progress.state : "resting";
  showNever();
  showKinds();
}

/** @type {(pi: number) => void} */
function sayWhatItMeans(pi) {
  const per = Math.round(pi * 100);
  byId("share-value").textContent = `${per} %`;
  byId("share-sentence").textContent = meaningOf(view, mostFor(view.choice.sharing, pi));
  byId("share").setAttribute("aria-valuetext", `${per} per cent. ${byId("share-sentence").textContent}`);
}

/** What the slider at `pi` means for this person, in one sentence.
 * @type {(view: View, pi: number) => string} */
export function meaningOf({ choice, sharing, history, federation }, pi) {
  const { noun } = federation;
  const many = history.length ? `your ${counted(history.length, noun)}` : `every 10 ${noun.many} you pick`;
  const n = history.length ? history.length - sharing.never : 10;
  if (pi === 0) return "Nothing leaves this device. You still get recommendations.";
  if (choice.sharing === "as-published")
    return `Each of ${many} may leave every time it comes up, with a chance of ${Math.round(pi * 100)} %: over time, nearly all will.`;
  if (choice.sharing === "deniable") {
    const q = decoyRate({ ...choice, pi });
    return `About ${Math.round(pi * n)} of ${many} may ever leave this device, among about ${counted(Math.round(q * federation.items), noun)} you did not choose. Settle your list first: what changes later can be noticed.`;
  }
  const { before, ever } = sharing;
  const may = mostChosen({ ...choice, pi }, n, before, ever);
  const basis = choice.basis === "shared" ? "" : " What is sent is still coloured by all of them.";
  /** @type {(count: number) => string} */
  const has = (count) => (count === 1 ? "has" : "have");
  if (!may && ever)
    return `None of ${many} may leave any more: ${counted(ever, noun)} ${has(ever)} left already, and that counts for life.${basis}`;
  const gone =
    isBounded({ ...choice, pi }) && ever > before
      ? ` ${capital(counted(ever - before, noun))} that you took back ${has(ever - before)} left already, and that counts for life.`
      : "";
  return `${may === n && may === (history.length || 10) ? `All ${history.length ? n : "10"}` : `About ${may}`} of ${many} may ever leave this device.${gone}${basis}`.replace(
    /^All (\d+) of your (\d+)/,
    "All your $2",
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

/** Words for the chip at the top of the page. It is read out when it changes, so it leaves out what each round says.
 * @type {(view: View) => string} */
export function standing({ taking, progress, hurdle }) {
  if (!taking) return "Not taking part: nothing is sent";
  return hurdle ?? (["waiting", "learning", "sent"].includes(progress.state) ? "Taking part" : progress.says);
}
