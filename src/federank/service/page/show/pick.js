/* The first step: pick what you like, by name, by category or from a file; and the list of what is yours. */

import { sentenceOf } from "../faults.js";
import { ask } from "./ask.js";
import { byId, element, fill, isOpen } from "./elements.js";
import { leadOfNames, leadOfPicks } from "./sentences.js";
import { capital, counted } from "./words.js";

/** @import { OwnItem, ShownItem, View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

const MOST_FOUND = 24;
const MOST_SUGGESTED = 12;
const ENOUGH = 3; // picks after which a narrow page shows fewer names, so that recommendations come up
const FEWER = 4; // of those that are not picked yet; beside them stand the latest picks, which a second press takes back
const LATEST = 2;
const narrow = matchMedia("(max-width: 57.99rem)");
/** @type {View} */
let view;
/** @type {Act} */
let act;

/** Listen to the search fields and the file chooser. `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  let timer = 0;
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  byId("search-text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(showFound, 120);
  });
  byId("search-category").addEventListener("change", showFound);
  byId("file").addEventListener("change", readFile);
}

/** Show a view of the device.
 * @type {(given: View) => Promise<void>} */
export async function show(given) {
  const first = !view;
  view = given;
  byId("pick-lead").textContent = leadOfPicks(view);
  if (first) showCategories();
  showYours();
  await showFound();
}

function showCategories() {
  const some = view.categories.length > 0;
  byId("search-category").hidden = byId("search-category-label").hidden = !some;
  const options = view.categories.map(({ name, count }) =>
    element("option", { value: name }, `${name} (${count.toLocaleString("en")})`),
  );
  fill(byId("search-category"), element("option", { value: "" }, "All"), ...options);
}

let latest = 0;
async function showFound() {
  const mine = ++latest;
  const text = byId("search-text", HTMLInputElement).value;
  const category = byId("search-category", HTMLSelectElement).value;
  const asked = text.trim() || category;
  const isShort = !asked && narrow.matches && view.history.length >= ENOUGH;
  const most = asked ? MOST_FOUND : isShort ? MOST_SUGGESTED + view.history.length : MOST_SUGGESTED;
  const { total, items: found } = await ask("find", { text, category, most });
  if (mine !== latest) return;
  const items = isShort ? fewer(found) : found;
  const { noun } = view.federation;
  byId("found-count").textContent = !asked
    ? leadOfNames(view)
    : total === 0
      ? `No ${noun.one} has this in its name. Try fewer letters.`
      : total > items.length
        ? `${counted(total, noun)} fit; the first ${items.length}:`
        : `${counted(total, noun)} ${total === 1 ? "fits" : "fit"}:`;
  fill(byId("found"), ...items.map(foundItem));
}

/** @type {(found: ShownItem[]) => ShownItem[]} */
function fewer(found) {
  const picked = new Set(view.history.slice(0, LATEST).map(({ id }) => id));
  const open = new Set(found.filter((item) => !item.has).slice(0, FEWER));
  return found.filter((item) => open.has(item) || picked.has(item.id));
}

/** @type {(item: ShownItem) => HTMLElement} */
function foundItem(item) {
  const change = () => (item.has ? act("remove", { id: item.id }) : act("add", { ids: [item.id], how: "picked" }));
  const mark = element("span", { class: "mark", "aria-hidden": "true" }, item.has ? "✓" : "+");
  const button = element(
    "button",
    {
      type: "button",
      "aria-pressed": String(item.has),
      "data-key": item.id,
      title: item.categories.join(", "),
      on: { click: change },
    },
    mark,
    item.title,
  );
  return element("li", {}, button);
}

function showYours() {
  const { history, missing, federation } = view;
  byId("yours-title").textContent = history.length ? `Your ${counted(history.length, federation.noun)}` : "Yours";
  if (!history.length)
    return fill(byId("yours"), element("p", { class: "quiet" }, `Nothing yet. Press a name above to add it.`));
  const gone = missing
    ? element(
        "p",
        { class: "quiet" },
        `${counted(missing, federation.noun)} of yours ${missing === 1 ? "is" : "are"} no longer in this catalogue.`,
      )
    : null;
  const rows = history.map(yoursRow);
  const most = 6;
  const rest =
    rows.length > most
      ? element(
          "details",
          { id: "yours-rest", open: isOpen("yours-rest") },
          element("summary", {}, `${rows.length - most} more`),
          element("ul", { class: "rows" }, ...rows.slice(most)),
        )
      : null;
  return fill(byId("yours"), element("ul", { class: "rows" }, ...rows.slice(0, most)), rest, gone);
}

/** @type {(item: OwnItem) => string} */
function whereaboutsOf({ left, leftAsDecoy, mayLeave, asDecoy, waits }) {
  if (left) return "has left this device";
  if (waits) return "waits half a minute before it may leave";
  if (mayLeave) return "may leave";
  if (leftAsDecoy) return "has left as a decoy";
  return asDecoy ? "may be sent as a decoy" : "stays here";
}

/** @type {(item: OwnItem) => HTMLElement} */
function yoursRow(item) {
  const never = item.neverSelf || item.neverCategory !== null;
  const words = item.neverCategory !== null && !item.neverSelf ? `never shared: ${item.neverCategory}` : "Never share";
  const whereabouts = whereaboutsOf(item);
  const tag = element("span", { class: whereabouts === "stays here" ? "tag" : "tag left" }, whereabouts);
  const toggle = () => act("never", { id: item.id, on: !item.neverSelf });
  return element(
    "li",
    {},
    element("span", { class: "what" }, item.title, " ", tag),
    element(
      "span",
      { class: "choices" },
      element(
        "button",
        {
          type: "button",
          class: "small",
          "aria-pressed": String(never),
          "data-key": `never ${item.id}`,
          "aria-label": `${words}: ${item.title}`,
          on: { click: toggle },
        },
        words,
      ),
      element(
        "button",
        {
          type: "button",
          class: "small",
          "data-key": `remove ${item.id}`,
          "aria-label": `${item.waits ? "Undo: take back" : "Remove"} ${item.title}`,
          on: { click: () => act("remove", { id: item.id }) },
        },
        item.waits ? "Undo" : "Remove",
      ),
    ),
  );
}

async function readFile() {
  const chooser = byId("file", HTMLInputElement);
  const file = chooser.files?.[0];
  if (!file) return;
  const { noun } = view.federation;
  const box = byId("file-result");
  fill(box, element("p", { class: "quiet" }, "Reading…"));
  try {
    const found = await ask("readFile", { file });
    const fresh = found.items.filter((item) => !item.has);
    const add = async () => {
      await act("add", { ids: fresh.map(({ id }) => id), how: "file" });
      fill(box, element("p", {}, `${capital(counted(fresh.length, noun))} added.`));
    };
    const unknown = found.unmatched.length
      ? element(
          "details",
          {},
          element("summary", {}, `${found.unmatchedCount.toLocaleString("en")} not in this catalogue`),
          element("ul", {}, ...found.unmatched.map((name) => element("li", {}, name.slice(0, 200)))),
        )
      : null;
    const sentence = `${found.items.length.toLocaleString("en")} of ${found.named.toLocaleString("en")} lines matched${fresh.length < found.items.length ? `, ${found.items.length - fresh.length} of them yours already` : ""}.${found.low ? ` ${found.low.toLocaleString("en")} rated low ${found.low === 1 ? "is" : "are"} left out.` : ""}`;
    const button = fresh.length
      ? element(
          "button",
          { type: "button", class: "main-button", id: "file-add", on: { click: add } },
          `Add ${counted(fresh.length, noun)}`,
        )
      : null;
    fill(box, element("p", {}, sentence), unknown, button);
  } catch (fault) {
    fill(box, element("p", { role: "alert" }, sentenceOf(fault)));
  } finally {
    chooser.value = "";
  }
}
