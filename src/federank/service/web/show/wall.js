/* The wall: posters to pick from, endless, by category and decade or by name; and the tray with what was picked.

The first posters are drawn from what the server wrote into the page, while model and catalogue are on their way. What was drawn stays
where it is: a pick changes its own poster and nothing else.
*/

import { itemFrom } from "../federation/item.js";
import { ask } from "./ask.js";
import { button, byId, element, fill } from "./elements.js";
import { openItem } from "./item.js";
import { counted, language, named, say, sayWord } from "./language.js";
import { poster, tile } from "./posters.js";
import { valuesOf } from "./sentences.js";

const PAGE = 48; // posters that are asked for at a time
const STACKED = 3;
/** @type {View | null} */
let view = null;
/** @type {Act} */
let act;
/** Settled when the first view is there: what is pressed before waits for it.
 * @type {PromiseWithResolvers<void>} */
const { promise: begun, resolve: begin } = Promise.withResolvers();
/** What is searched, and the ids that stand first without a text.
 * @type {{ text: string, category: string, decade: number, first: string[] }} */
const query = { text: "", category: "", decade: 0, first: [] };
/** How many posters there are for it, and how many are shown. */
let [total, shown, latest] = [0, 0, 0];
let [drawn, drawnIn] = ["", ""];

/** @type {(actions: { act: Act }) => void} */
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
  showFirst(JSON.parse(document.getElementById("first")?.textContent ?? "null"));
}

/** @type {(first: { language: string, noun: Noun, count: number, rated: boolean, items: any[] } | null) => void} */
function showFirst(first) {
  if (!first) return;
  showHead(first.noun, first.count, first.rated);
  const unknown = { has: false, later: false, rating: null, lang: first.language };
  showTiles(first.items.map((raw) => ({ ...itemFrom(raw), ...unknown })));
  query.first = first.items.map(({ id }) => String(id));
}

/** @type {(noun: Noun, count: number, isRated: boolean) => void} */
function showHead(noun, count, isRated) {
  const values = { ...valuesOf(), ...named(noun) };
  byId("wall-title").textContent = say(isRated ? "wall.title-stars" : "wall.title", values);
  const search = byId("search-text", HTMLInputElement);
  search.placeholder = say("wall.search", { counted: counted(count, noun) });
  search.setAttribute("aria-label", search.placeholder);
  if (!view?.history.length) byId("tray-count").textContent = say(isRated ? "tray.hint-stars" : "tray.hint", values);
}

/** @type {(given: View) => Promise<void>} */
export async function show(given) {
  view = given;
  begin();
  const { scale, noun, items } = view.federation;
  showHead(noun, items, Boolean(scale));
  showTray(view);
  // What the posters of the wall depend on; picks only change their marks.
  const depends = JSON.stringify([language, view.categories, items]);
  if (depends !== drawn) {
    drawn = depends;
    showChips(view);
    await look({});
  }
  mark();
}

function mark() {
  const own = new Map(view?.history.map((item) => [item.id, item]));
  for (const tile_ of byId("grid").querySelectorAll("button")) {
    const item = own.get(tile_.dataset.key ?? "");
    tile_.setAttribute("aria-pressed", String(Boolean(item)));
    tile_.dataset.stars = item?.rating ? String(item.rating) : "";
  }
}

/** @type {(view: View) => void} */
function showChips({ categories, decades: all }) {
  /** @type {(words: string, on: boolean, change: Partial<typeof query>) => HTMLElement} */
  const chip = (words, on, change) => {
    const choose = () => look(change).then(() => view && showChips(view));
    return button(words, choose, { "aria-pressed": String(on), "data-key": JSON.stringify(change) });
  };
  const { category, decade } = query;
  const byCount = categories.toSorted((one, other) => other.count - one.count).slice(0, 20);
  const digits = (/** @type {number} */ year) => (year < 2000 ? String(year % 100) : String(year));
  const decades = all.length > 1 ? all.filter((year) => year >= 1920) : [];
  byId("chips").setAttribute("aria-label", say("wall.chips"));
  byId("chips").hidden = !byCount.length && !decades.length;
  fill(
    byId("chips"),
    chip(say("wall.popular"), !category && !decade, { category: "", decade: 0 }),
    ...byCount.map(({ name }) =>
      chip(sayWord("category", name), name === category, { category: name === category ? "" : name }),
    ),
    ...decades.map((year) =>
      chip(say("wall.decade", { decade: digits(year) }), year === decade, { decade: year === decade ? 0 : year }),
    ),
  );
}

/** @type {(change: Partial<typeof query>) => Promise<void>} */
async function look(change) {
  Object.assign(query, change);
  const mine = ++latest;
  await begun;
  const result = await ask("find", { ...query, most: PAGE });
  if (mine !== latest || !view) return;
  ({ total } = result);
  const values = { count: total, counted: counted(total, view.federation.noun) };
  const words = result.nearest ? "wall.nearest" : "wall.results";
  byId("results").textContent = query.text.trim() ? say(words, values) : "";
  showTiles(result.items);
}

async function more() {
  const mine = latest;
  const from = shown;
  shown = Math.min(total, from + PAGE);
  const { items } = await ask("find", { ...query, from, most: PAGE });
  if (mine === latest) byId("grid").append(...items.map(entry));
}

/** Show these posters; those that are there already stay, so that nothing flickers.
 * @type {(items: ShownItem[]) => void} */
function showTiles(items) {
  const isSame = drawnIn === language && !view?.federation.scale;
  const there = new Map([...byId("grid").children].map((one) => [isSame && one.firstElementChild?.id, one]));
  drawnIn = language;
  shown = items.length;
  fill(byId("grid"), ...items.map((item) => there.get(`tile-${item.id}`) ?? entry(item)));
}

/** @type {(item: ShownItem) => HTMLElement} */
function entry(item) {
  const press = async (/** @type {{ currentTarget: Element }} */ { currentTarget }) => {
    const isOn = currentTarget.getAttribute("aria-pressed") !== "true";
    if (!view?.federation.scale) currentTarget.setAttribute("aria-pressed", String(isOn)); // at once; it is written down below
    await begun;
    if (view?.federation.scale)
      return openItem({ ...item, rating: view.history.find(({ id }) => id === item.id)?.rating ?? null });
    await (isOn ? act("add", { ids: [item.id], how: "picked" }) : act("remove", { id: item.id }));
    return query.text ? clearSearch() : undefined;
  };
  const attributes = { "data-key": item.id, "aria-pressed": String(item.has), "data-stars": item.rating ?? "" };
  return element("li", {}, tile(item, press, { id: `tile-${item.id}`, ...attributes }));
}

/** After a pick by name the next name can be typed at once. */
function clearSearch() {
  const search = byId("search-text", HTMLInputElement);
  search.value = "";
  search.focus();
  return look({ text: "" });
}

/** @type {(view: View) => void} */
function showTray({ history, federation }) {
  const newest = history.slice(0, STACKED);
  const key = newest.map(({ id }) => id).join(" ");
  if (byId("stack").dataset.for !== key) {
    byId("stack").dataset.for = key;
    fill(byId("stack"), ...newest.map(poster));
  }
  if (history.length) byId("tray-count").textContent = say("tray.count", { count: history.length });
  byId("go").hidden = !history.length;
  byId("go").textContent = say("tray.go", named(federation.noun));
}
