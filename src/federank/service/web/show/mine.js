/* The list: what is the user's own, what is for later, what was turned down; and files, which are read here and sent nowhere. */

import { saidOf } from "../faults.js";
import { ask } from "./ask.js";
import { byId, element, fill, isOpen } from "./elements.js";
import { openItem } from "./item.js";
import { counted, language, named, number, say, told } from "./language.js";
import { poster } from "./posters.js";
import { on, titleIn } from "./sentences.js";

/** @import { ShownItem, View } from "../client/view.js" */
/** @import { Act } from "./ask.js" */

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

/** Show a view of the client.
 * @type {(given: View) => void} */
export function show(given) {
  view = given;
  byId("file-lead").textContent = say(view.federation.scale ? "file.lead-stars" : "file.lead", { on: on() });
  const depends = JSON.stringify([language, view.history, view.later, view.down, view.missing]);
  if (depends === drawn) return;
  drawn = depends;
  const { history, later, down, missing, federation } = view;
  const gone = say("mine.missing", { count: missing, counted: counted(missing, federation.noun) });
  fill(
    byId("own"),
    history.length ? element("ul", { class: "grid" }, ...history.map(tile)) : element("p", {}, say("mine.empty")),
    missing ? element("p", { class: "quiet" }, gone) : null,
  );
  fill(
    byId("lists"),
    later.length
      ? element(
          "section",
          { class: "shelf" },
          element("h2", {}, say("mine.later")),
          element("ul", { class: "rail" }, ...later.map(laterTile)),
        )
      : null,
    down.length
      ? element(
          "details",
          { id: "down", open: isOpen("down") },
          element("summary", { "data-key": "down" }, say("mine.down", { count: down.length })),
          element("ul", { class: "rows" }, ...down.slice(0, MOST_ROWS).map(downRow)),
        )
      : null,
  );
}

/** @type {(item: View["history"][number]) => HTMLElement} */
function tile(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  const mark = item.left ? "left" : item.waits ? "waits" : "";
  return element(
    "li",
    {},
    element(
      "button",
      {
        type: "button",
        class: "tile",
        "aria-label": name,
        lang,
        "data-key": item.id,
        "data-mark": mark,
        "data-stars": item.rating ?? "",
        on: { click: () => openItem(item) },
      },
      poster(item, name),
    ),
  );
}

/** @type {(item: ShownItem) => HTMLElement} */
function laterTile(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  return element(
    "li",
    { class: "mini" },
    element(
      "button",
      {
        type: "button",
        class: "tile",
        "aria-label": name,
        lang,
        "data-key": `later ${item.id}`,
        on: { click: () => openItem(item) },
      },
      poster(item, name),
    ),
    element(
      "button",
      {
        type: "button",
        class: "bare",
        "aria-label": say("undo-label", { title: name }),
        on: { click: () => act("later", { id: item.id, on: false }) },
      },
      say("item.done"),
    ),
  );
}

/** @type {(item: ShownItem) => HTMLElement} */
function downRow(item) {
  const { name, lang } = titleIn(item, language, view.federation.language);
  return element(
    "li",
    {},
    element("span", { class: "what", lang }, name),
    element(
      "button",
      {
        type: "button",
        class: "small",
        "data-key": `down ${item.id}`,
        "aria-label": say("undo-label", { title: name }),
        on: { click: () => act("undismiss", { id: item.id }) },
      },
      say("undo"),
    ),
  );
}

/** Put something on the user's own disk.
 * @type {(content: Blob, name: string) => void} */
export function saved(content, name) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The list and the record as one file. */
export async function save() {
  saved(
    new Blob([await ask("backup")], { type: "application/json" }),
    `federank-${new Date().toISOString().slice(0, 10)}.json`,
  );
}

/** A line of the file and the item that it was taken for, which may be wrong.
 * @type {(item: ShownItem & { name: string, given: number | null }, want: (id: string, on: boolean) => void) => HTMLElement} */
function matchedRow({ id, title, year, name, given }, want) {
  const box = element("input", {
    type: "checkbox",
    id: `match-${id}`,
    checked: true,
    on: { change: ({ target }) => want(id, target.checked) },
  });
  const stars = given === null ? "" : ` ★ ${number(given, Number.isInteger(given) ? 0 : 1)}`;
  const own = year ? say("title-year", { title, year: String(year) }) : title;
  const from =
    name && name !== title && name !== own
      ? element("span", { class: "quiet" }, ` ${say("file.from", { line: name.slice(0, 200) })}`)
      : null;
  return element("li", {}, element("label", { class: "match", for: `match-${id}` }, box, ` ${own}${stars}`, from));
}

async function readFile() {
  const chooser = byId("file", HTMLInputElement);
  const file = chooser.files?.[0];
  if (!file) return;
  const box = byId("file-result");
  const { noun, scale } = view.federation;
  try {
    const found = await ask("readFile", { file });
    if (found.backup !== null) {
      await act("restore", { file });
      fill(box, element("p", {}, say("file.restored", { counted: counted(found.backup, noun) })));
      return;
    }
    const fresh = found.items.filter((item) => !item.has);
    const wanted = new Set(fresh.map(({ id }) => id));
    const words = () => counted(wanted.size, noun);
    /** @type {(how: "love" | "known") => Promise<void>} */
    const add = async (how) => {
      const ids = [...wanted];
      const rated = fresh.flatMap(({ id, given }) => (given !== null && wanted.has(id) ? [{ id, rating: given }] : []));
      if (scale) await act("addRated", { ratings: rated, how: "file" });
      else await (how === "love" ? act("add", { ids, how: "file" }) : act("dismiss", { ids, how }));
      fill(box, element("p", {}, say("file.added", { counted: counted(ids.length, noun) })));
    };
    /** @type {(id: string, on: boolean) => void} */
    const want = (id, isOn) => {
      if (isOn) wanted.add(id);
      else wanted.delete(id);
      for (const button of box.querySelectorAll("button")) button.disabled = !wanted.size;
      byId("file-count").textContent = words();
    };
    /** @type {(how: "love" | "known", kind: string) => HTMLElement} */
    const button = (how, kind) =>
      element(
        "button",
        { type: "button", class: kind, "data-how": how, on: { click: () => add(how) } },
        say(how === "love" ? "file.love" : "file.known"),
      );
    fill(
      box,
      element(
        "p",
        {},
        say("file.matched", { count: found.items.length, lines: found.named }),
        found.left ? ` ${say("file.low", { count: found.left })}` : "",
      ),
      fresh.length
        ? element(
            "div",
            { class: "panel" },
            element("p", { id: "file-count", class: "strong" }, words()),
            found.rated ? null : element("p", {}, say("file.watched", named(noun))),
            element("div", { class: "actions" }, button("love", "yes"), found.rated ? null : button("known", "")),
            element(
              "details",
              {},
              element("summary", {}, say("file.look")),
              element("ul", { class: "rows" }, ...fresh.map((item) => matchedRow(item, want))),
            ),
          )
        : null,
      found.unmatched.length
        ? element(
            "details",
            {},
            element("summary", {}, say("file.unmatched", { count: found.unmatched.length })),
            element("ul", { class: "rows" }, ...found.unmatched.map((name) => element("li", {}, name.slice(0, 200)))),
          )
        : null,
    );
  } catch (fault) {
    fill(box, element("p", { role: "alert" }, told(saidOf(fault))));
  } finally {
    chooser.value = "";
  }
}
