/* The first step: pick what you like, by name, by category or from a file; and the list of what is yours. */

import { saidOf } from "../faults.js";
import { ask } from "./ask.js";
import { byId, element, fill, isOpen } from "./elements.js";
import { counted, language, named, number, say, told, together } from "./language.js";
import { leadOfNames, leadOfPicks, wouldGive } from "./sentences.js";
import { starsFor } from "./stars.js";

/** @import { Key } from "../faults.js" */
/** @import { OwnItem, ShownItem, View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */
/** @import { Scale } from "./stars.js" */

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
  view = given;
  const { scale } = view.federation;
  byId("pick-title").textContent = say(scale ? "pick.title-stars" : "pick.title");
  byId("pick-lead").textContent = leadOfPicks(view);
  byId("found").className = scale ? "rows" : "chips";
  byId("file-lead").textContent = say(scale ? "file.lead-stars" : "file.lead");
  showCategories();
  showYours();
  await showFound();
}

let categories = "";
/** The categories to choose from; only anew where they or the language are others, so that a choice stays. */
function showCategories() {
  const depends = JSON.stringify([language, view.categories]);
  if (depends === categories) return;
  categories = depends;
  const some = view.categories.length > 0;
  const { value } = byId("search-category", HTMLSelectElement);
  byId("search-category").hidden = byId("search-category-label").hidden = !some;
  const options = view.categories.map(({ name, count }) =>
    element("option", { value: name }, say("pick.category-count", { name, count })),
  );
  fill(byId("search-category"), element("option", { value: "" }, say("pick.all")), ...options);
  byId("search-category", HTMLSelectElement).value = value;
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
  byId("found-count").textContent = asked ? whatWasFound(total, items.length) : leadOfNames(view);
  fill(byId("found"), ...items.map(foundItem));
}

/** @type {(total: number, first: number) => string} */
function whatWasFound(total, first) {
  const { noun } = view.federation;
  if (!total) return say("pick.none", named(noun));
  const all = counted(total, noun);
  return total > first
    ? say("pick.fit-first", { counted: all, first })
    : say("pick.fit", { count: total, counted: all });
}

/** @type {(found: ShownItem[]) => ShownItem[]} */
function fewer(found) {
  const picked = new Set(view.history.slice(0, LATEST).map(({ id }) => id));
  const open = new Set(found.filter((item) => !item.has).slice(0, FEWER));
  return found.filter((item) => open.has(item) || picked.has(item.id));
}

/** @type {(item: ShownItem) => HTMLElement} */
function foundItem(item) {
  if (view.federation.scale) return ratedItem(item, view.federation.scale);
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

/** An item to be rated, and what its visitor would give it.
 * @type {(item: ShownItem, scale: Scale) => HTMLElement} */
function ratedItem(item, scale) {
  const rate = (/** @type {number | null} */ rating) => act("rate", { id: item.id, rating, how: "picked" });
  const guess = wouldGive(item);
  return element(
    "li",
    { "data-item": item.id },
    element("span", { class: "what" }, item.title, guess ? element("span", { class: "quiet" }, ` ${guess}`) : null),
    starsFor(scale, item, rate),
  );
}

function showYours() {
  const { history, missing, federation } = view;
  byId("yours-title").textContent = history.length
    ? say("yours.titled", { counted: counted(history.length, federation.noun) })
    : say("yours.title");
  if (!history.length)
    return fill(
      byId("yours"),
      element("p", { class: "quiet" }, say(federation.scale ? "yours.empty-stars" : "yours.empty")),
    );
  const gone = missing
    ? element(
        "p",
        { class: "quiet" },
        say("yours.missing", { count: missing, counted: counted(missing, federation.noun) }),
      )
    : null;
  const rows = history.map(yoursRow);
  const most = 6;
  const rest =
    rows.length > most
      ? element(
          "details",
          { id: "yours-rest", open: isOpen("yours-rest") },
          element("summary", {}, say("yours.more", { count: rows.length - most })),
          element("ul", { class: "rows" }, ...rows.slice(most)),
        )
      : null;
  return fill(byId("yours"), element("ul", { class: "rows" }, ...rows.slice(0, most)), rest, gone);
}

/** @type {(item: OwnItem) => Key} */
function whereaboutsOf({ left, leftAsDecoy, mayLeave, asDecoy, waits }) {
  if (left) return "where.left";
  if (waits) return "where.waits";
  if (mayLeave) return "where.may-leave";
  if (leftAsDecoy) return "where.left-decoy";
  return asDecoy ? "where.decoy" : "where.stays";
}

/** @type {(item: OwnItem) => HTMLElement} */
function yoursRow(item) {
  const never = item.neverSelf || item.neverCategory !== null;
  const category = item.neverSelf ? null : item.neverCategory;
  const { title } = item;
  const whereabouts = whereaboutsOf(item);
  const tag = element("span", { class: whereabouts === "where.stays" ? "tag" : "tag left" }, say(whereabouts));
  const toggle = () => act("never", { id: item.id, on: !item.neverSelf });
  return element(
    "li",
    {},
    element("span", { class: "what" }, item.title, " ", tag),
    view.federation.scale
      ? starsFor(view.federation.scale, item, (rating) =>
          act("rate", { id: item.id, rating, how: item.how ?? "picked" }),
        )
      : null,
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
          "aria-label":
            category === null ? say("never-label", { title }) : say("never-category-label", { category, title }),
          on: { click: toggle },
        },
        category === null ? say("never") : say("never-category", { category }),
      ),
      element(
        "button",
        {
          type: "button",
          class: "small",
          "data-key": `remove ${item.id}`,
          "aria-label": say(item.waits ? "take-back-label" : "remove-label", { title }),
          on: { click: () => act("remove", { id: item.id }) },
        },
        say(item.waits ? "undo" : "remove"),
      ),
    ),
  );
}

/** A line of the file and the item that it was taken for, which may be wrong.
 * @type {(item: ShownItem & { name: string, given: number | null }, want: (id: string, on: boolean) => void) => HTMLElement} */
function matchedRow({ id, title, name, given }, want) {
  const box = element("input", {
    type: "checkbox",
    id: `match-${id}`,
    checked: true,
    on: { change: ({ target }) => want(id, target.checked) },
  });
  const line = name.slice(0, 200);
  const from = line && line !== title ? element("span", { class: "quiet" }, ` ${say("file.from", { line })}`) : null;
  const stars = given === null ? "" : say("file.stars", { stars: number(given, Number.isInteger(given) ? 0 : 1) });
  const words = ` ${together(title, stars)}`;
  return element("li", {}, element("label", { class: "match", for: `match-${id}` }, box, words, from));
}

/** A name that nothing was found for: a press puts it into the search.
 * @type {(name: string) => HTMLElement} */
function lookedFor(name) {
  const look = () => {
    const search = byId("search-text", HTMLInputElement);
    search.value = name.slice(0, 100);
    byId("search-category", HTMLSelectElement).value = "";
    search.focus();
    return showFound();
  };
  return element("li", {}, element("button", { type: "button", on: { click: look } }, name.slice(0, 200)));
}

async function readFile() {
  const chooser = byId("file", HTMLInputElement);
  const file = chooser.files?.[0];
  if (!file) return;
  const { noun } = view.federation;
  const box = byId("file-result");
  fill(box, element("p", { class: "quiet" }, say("file.reading")));
  try {
    const found = await ask("readFile", { file });
    const fresh = found.items.filter((item) => !item.has);
    const wanted = new Set(fresh.map(({ id }) => id));
    const add = async () => {
      const ids = [...wanted];
      const ratings = fresh.flatMap(({ id, given }) =>
        given !== null && wanted.has(id) ? [{ id, rating: given }] : [],
      );
      await (view.federation.scale ? act("addRated", { ratings, how: "file" }) : act("add", { ids, how: "file" }));
      fill(box, element("p", {}, say("file.added", { counted: counted(ids.length, noun) })));
    };
    const words = () => say("file.add", { counted: counted(wanted.size, noun) });
    /** @type {(id: string, on: boolean) => void} */
    const want = (id, on) => {
      if (on) wanted.add(id);
      else wanted.delete(id);
      const button = byId("file-add", HTMLButtonElement);
      button.textContent = words();
      button.disabled = !wanted.size;
    };
    const unknown = found.unmatched.length
      ? element(
          "details",
          {},
          element("summary", {}, say("file.unmatched", { count: found.unmatchedCount })),
          element("p", { class: "quiet" }, say("file.by-hand")),
          element("ul", { class: "chips" }, ...found.unmatched.map(lookedFor)),
        )
      : null;
    const looked = fresh.length
      ? element(
          "details",
          {},
          element("summary", {}, say("file.look")),
          element("ul", { class: "rows" }, ...fresh.map((item) => matchedRow(item, want))),
        )
      : null;
    const had = found.items.length - fresh.length;
    const sentence = together(
      say(had ? "file.matched-had" : "file.matched", { count: found.items.length, lines: found.named, had }),
      found.low ? say("file.low", { count: found.low }) : "",
      found.unrated ? say("file.without-rating", { count: found.unrated }) : "",
    );
    const button = fresh.length
      ? element("button", { type: "button", class: "main-button", id: "file-add", on: { click: add } }, words())
      : null;
    fill(box, element("p", {}, sentence), looked, unknown, button);
  } catch (fault) {
    fill(box, element("p", { role: "alert" }, told(saidOf(fault))));
  } finally {
    chooser.value = "";
  }
}
