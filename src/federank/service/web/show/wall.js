/* The wall: posters to pick from, endless, by category and decade or by name; and the tray with what was picked.

What was drawn stays where it is: a pick changes its own poster and nothing else.
*/

import { ask } from "./ask.js";
import { byId, element, fill } from "./elements.js";
import { openItem } from "./item.js";
import { categoryName, counted, language, say } from "./language.js";
import { poster } from "./posters.js";
import { titleIn, valuesOf } from "./sentences.js";

/** @import { ShownItem, View } from "../client/view.js" */
/** @import { Act } from "./ask.js" */

const PAGE = 48; // posters that are asked for at a time
const STACKED = 3;
/** @type {View} */
let view;
/** @type {Act} */
let act;
/** What is looked for. */
const query = { text: "", category: "", decade: 0 };
/** How many posters there are for it, and how many are shown. */
let [total, shown, latest] = [0, 0, 0];
let drawn = "";

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  let timer = 0;
  const text = byId("search-text", HTMLInputElement);
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => look({ text: text.value }), 120);
  });
  new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && shown && shown < total && more(), {
    rootMargin: "900px",
  }).observe(byId("more"));
}

/** Show a view of the client.
 * @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  const values = valuesOf(view);
  const { scale, noun, items } = view.federation;
  byId("wall-title").textContent = say(scale ? "wall.title-stars" : "wall.title", values);
  const search = byId("search-text", HTMLInputElement);
  search.placeholder = say("wall.search", { counted: counted(items, noun) });
  search.setAttribute("aria-label", search.placeholder);
  showTray();
  // What the posters of the wall depend on; picks only change their marks.
  const depends = JSON.stringify([language, view.categories, view.federation.items]);
  if (depends === drawn) return mark();
  drawn = depends;
  showChips();
  return look({});
}

/** Mark what is picked, and nothing else. */
function mark() {
  const own = new Map(view.history.map((item) => [item.id, item]));
  for (const button of byId("grid").querySelectorAll("button")) {
    const item = own.get(button.dataset.key ?? "");
    button.setAttribute("aria-pressed", String(Boolean(item)));
    button.dataset.stars = item?.rating ? String(item.rating) : "";
  }
}

function showChips() {
  /** @type {(words: string, on: boolean, change: Partial<typeof query>) => HTMLElement} */
  const chip = (words, on, change) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(on),
        "data-key": JSON.stringify(change),
        on: { click: () => look(change).then(showChips) },
      },
      words,
    );
  const { category, decade } = query;
  const byCount = view.categories.toSorted((one, other) => other.count - one.count).slice(0, 20);
  const digits = (/** @type {number} */ year) => (year < 2000 ? String(year % 100) : String(year));
  const decades = view.decades.length > 1 ? view.decades.filter((year) => year >= 1920) : [];
  byId("chips").setAttribute("aria-label", say("wall.chips"));
  byId("chips").hidden = !byCount.length && !decades.length;
  fill(
    byId("chips"),
    chip(say("wall.popular"), !category && !decade, { category: "", decade: 0 }),
    ...byCount.map(({ name }) =>
      chip(categoryName(name), name === category, { category: name === category ? "" : name }),
    ),
    ...decades.map((year) =>
      chip(say("wall.decade", { decade: digits(year) }), year === decade, { decade: year === decade ? 0 : year }),
    ),
  );
}

/** Look for something else.
 * @type {(change: Partial<typeof query>) => Promise<void>} */
async function look(change) {
  Object.assign(query, change);
  const mine = ++latest;
  const found = await ask("find", { ...query, most: PAGE });
  if (mine !== latest) return;
  ({ total } = found);
  shown = found.items.length;
  const wanted = query.text.trim();
  byId("found").textContent = !wanted
    ? ""
    : say(found.nearest ? "wall.nearest" : "wall.found", {
        count: total,
        counted: counted(total, view.federation.noun),
      });
  fill(byId("grid"), ...found.items.map(tile));
}

async function more() {
  const mine = latest;
  const from = shown;
  shown = Math.min(total, from + PAGE);
  const { items } = await ask("find", { ...query, from, most: PAGE });
  if (mine === latest) byId("grid").append(...items.map(tile));
}

/** @type {(item: ShownItem) => HTMLElement} */
function tile(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  const press = async (/** @type {{ currentTarget: Element }} */ { currentTarget }) => {
    const has = view.history.some(({ id }) => id === item.id);
    if (view.federation.scale)
      return openItem({ ...item, rating: view.history.find(({ id }) => id === item.id)?.rating ?? null });
    currentTarget.setAttribute("aria-pressed", String(!has)); // at once: what it says is shown when it is kept
    await (has ? act("remove", { id: item.id }) : act("add", { ids: [item.id], how: "picked" }));
    return query.text ? clearSearch() : undefined;
  };
  const button = element(
    "button",
    {
      type: "button",
      class: "tile",
      "aria-pressed": String(item.has),
      "aria-label": item.year ? say("title-year", { title: name, year: String(item.year) }) : name,
      "data-key": item.id,
      "data-stars": item.rating ?? "",
      lang,
      on: { click: press },
    },
    poster(item, name),
  );
  return element("li", {}, button);
}

/** After a pick by name the next name can be typed at once. */
function clearSearch() {
  const search = byId("search-text", HTMLInputElement);
  search.value = "";
  search.focus();
  return look({ text: "" });
}

function showTray() {
  const { history, federation } = view;
  const latestOwn = history.slice(0, STACKED);
  const key = latestOwn.map(({ id }) => id).join(" ");
  if (byId("stack").dataset.for !== key) {
    byId("stack").dataset.for = key;
    fill(byId("stack"), ...latestOwn.map((item) => poster(item, titleIn(item, language).name)));
  }
  byId("tray-count").textContent = history.length
    ? say("tray.count", { count: history.length })
    : say(federation.scale ? "tray.hint-stars" : "tray.hint", valuesOf(view));
  byId("go").hidden = !history.length;
  byId("go").textContent = say("tray.go", valuesOf(view));
}
