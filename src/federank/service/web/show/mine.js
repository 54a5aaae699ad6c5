/* The list: what is the user's own, what is for later, what was turned down; and files, which are read here and sent nowhere. */

import { saidOf } from "../faults.js";
import { ask } from "./ask.js";
import { button, byId, element, fill, folded } from "./elements.js";
import { openItem } from "./item.js";
import { counted, language, named, number, say, worded } from "./language.js";
import { tile } from "./posters.js";
import { on, titleOf } from "./sentences.js";

/** @import { Answer } from "./ask.js" */

const MOST_ROWS = 200;
/** @type {View} */
let view;
/** @type {Act} */
let act;
let drawn = "";

/** @type {(actions: { act: Act }) => void} */
export function prepare(actions) {
  act = actions.act;
  byId("file").addEventListener("change", readFile);
  byId("save").addEventListener("click", save);
}

/** @type {(given: View) => void} */
export function show(given) {
  view = given;
  byId("file-lead").textContent = say(view.federation.scale ? "file.lead-stars" : "file.lead", { on: on() });
  const { history, later, down, missing, federation } = view;
  const depends = JSON.stringify([language, history, later, down, missing]);
  if (depends === drawn) return;
  drawn = depends;
  const gone = say("mine.missing", { count: missing, counted: counted(missing, federation.noun) });
  fill(
    byId("own"),
    history.length ? element("ul", { class: "grid" }, ...history.map(ownTile)) : element("p", {}, say("mine.empty")),
    missing ? element("p", { class: "quiet" }, gone) : null,
  );
  const stored = element("section", { class: "shelf" }, element("h2", {}, say("mine.later")));
  stored.append(element("ul", { class: "rail" }, ...later.map(laterTile)));
  const rows = element("ul", { class: "rows" }, ...down.slice(0, MOST_ROWS).map(downRow));
  fill(
    byId("lists"),
    later.length ? stored : null,
    down.length ? folded("down", say("mine.down", { count: down.length }), rows) : null,
  );
}

/** @type {(item: OwnItem) => HTMLElement} */
function ownTile(item) {
  const mark = item.left ? "left" : item.waits ? "waits" : "";
  const attributes = { "data-key": item.id, "data-mark": mark, "data-stars": item.rating ?? "" };
  return element(
    "li",
    {},
    tile(item, () => openItem(item), attributes),
  );
}

/** @type {(item: ShownItem) => HTMLElement} */
function laterTile(item) {
  const label = say("answer-label", { answer: say("item.done"), title: titleOf(item).name });
  const remove = () => act("later", { id: item.id, on: false });
  return element(
    "li",
    { class: "mini" },
    tile(item, () => openItem(item), { "data-key": `later ${item.id}` }),
    button(say("item.done"), remove, { class: "bare", "aria-label": label }),
  );
}

/** @type {(item: ShownItem) => HTMLElement} */
function downRow(item) {
  const { name: title, lang } = titleOf(item);
  const attributes = { class: "small", "data-key": `down ${item.id}`, "aria-label": say("undo-label", { title }) };
  const back = button(say("undo"), () => act("undismiss", { id: item.id }), attributes);
  return element("li", {}, element("span", { class: "what", lang }, title), back);
}

/** @type {(content: Blob, name: string) => void} */
export function download(content, name) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function save() {
  const content = new Blob([await ask("backup")], { type: "application/json" });
  download(content, `federank-${new Date().toISOString().slice(0, 10)}.json`);
}

const fileSays = (/** @type {string} */ words) => fill(byId("file-result"), element("p", {}, words));

const list = (/** @type {HTMLElement[]} */ rows) => element("ul", { class: "rows" }, ...rows);

async function readFile() {
  const chooser = byId("file", HTMLInputElement);
  const file = chooser.files?.[0];
  if (!file) return;
  try {
    const result = await ask("readFile", { file });
    if (result.backup === null) return showMatches(result);
    await act("restore", { file });
    fileSays(say("file.restored", { counted: counted(result.backup, view.federation.noun) }));
  } catch (fault) {
    fill(byId("file-result"), element("p", { role: "alert" }, worded(saidOf(fault))));
  } finally {
    chooser.value = "";
  }
}

/** @type {(result: Answer<"readFile">) => void} */
function showMatches({ items, named: lines, left, rated, unmatched }) {
  const { noun, scale } = view.federation;
  const fresh = items.filter((item) => !item.has);
  const wanted = new Set(fresh.map(({ id }) => id));
  const words = () => counted(wanted.size, noun);
  /** @type {(how: "love" | "known") => Promise<void>} */
  const add = async (how) => {
    const ids = [...wanted];
    const ratings = fresh.flatMap(({ id, given }) => (given !== null && wanted.has(id) ? [{ id, rating: given }] : []));
    if (scale) await act("addRated", { ratings, how: "file" });
    else await (how === "love" ? act("add", { ids, how: "file" }) : act("dismiss", { ids, how }));
    fileSays(say("file.added", { counted: counted(ids.length, noun) }));
  };
  const love = button(say("file.love"), () => add("love"), { class: "yes", "data-how": "love" });
  const known = rated ? null : button(say("file.known"), () => add("known"), { "data-how": "known" });
  /** @type {(id: string, isOn: boolean) => void} */
  const want = (id, isOn) => {
    if (isOn) wanted.add(id);
    else wanted.delete(id);
    for (const one of [love, known]) if (one) one.disabled = !wanted.size;
    byId("file-count").textContent = words();
  };
  const low = left ? ` ${say("file.low", { count: left })}` : "";
  const choice = () =>
    element(
      "div",
      { class: "panel" },
      element("p", { id: "file-count", class: "strong" }, words()),
      rated ? null : element("p", {}, say("file.watched", named(noun))),
      element("div", { class: "actions" }, love, known),
      folded("file-look", say("file.look"), list(fresh.map((item) => matchedRow(item, want)))),
    );
  const rest = list(unmatched.map((name) => element("li", {}, name.slice(0, 200))));
  fill(
    byId("file-result"),
    element("p", {}, say("file.matched", { count: items.length, lines }), low),
    fresh.length ? choice() : null,
    unmatched.length ? folded("file-rest", say("file.unmatched", { count: unmatched.length }), rest) : null,
  );
}

/** A line of the file and the item that it was taken for, which may be wrong.
 * @type {(item: ShownItem & { name: string, given: number | null }, want: (id: string, isOn: boolean) => void) => HTMLElement} */
function matchedRow({ id, title, year, name, given }, want) {
  const change = (/** @type {any} */ { target }) => want(id, target.checked);
  const box = element("input", { type: "checkbox", id: `match-${id}`, checked: true, on: { change } });
  const stars = given === null ? "" : ` ★ ${number(given, Number.isInteger(given) ? 0 : 1)}`;
  const own = year ? say("title-year", { title, year: String(year) }) : title;
  const line = [title, own].includes(name) ? "" : ` ${say("file.from", { line: name.slice(0, 200) })}`;
  const from = name && line ? element("span", { class: "quiet" }, line) : null;
  return element("li", {}, element("label", { class: "match", for: `match-${id}` }, box, ` ${own}${stars}`, from));
}
