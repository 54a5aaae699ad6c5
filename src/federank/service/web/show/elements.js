/* Elements: the only way this page makes anything visible. Text is always text, never markup. */

/** What an element may hold; nothing is left out.
 * @typedef {Node | string | null | undefined} Child */

/** Attributes by name (what is null or false is left out) and listeners by event.
 * @typedef {Record<string, any> & { on?: Record<string, (event: any) => unknown> }} Attributes */

/** An HTML element with attributes, listeners (`on`) and children; strings become text.
 * @type {<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]) => HTMLElementTagNameMap[K]} */
export const element = (tag, attributes = {}, ...children) =>
  furnished(document.createElement(tag), attributes, children);

/** The same for a picture's parts.
 * @type {<K extends keyof SVGElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]) => SVGElementTagNameMap[K]} */
export const drawn = (tag, attributes = {}, ...children) =>
  furnished(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** @type {<E extends Element>(made: E, attributes: Attributes, children: Child[]) => E} */
function furnished(made, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...present(children));
  return made;
}

/** @type {(children: Child[]) => (Node | string)[]} */
function present(children) {
  return children.filter((child) => child !== null && child !== undefined);
}

/** Fill an element again. Who had the keyboard keeps it: focus goes to the new element of the same `data-key`, or near it.
 * @type {(parent: Element, ...children: Child[]) => void} */
export function fill(parent, ...children) {
  const focused = document.activeElement;
  const before = keyedIn(parent);
  const index = before.findIndex((made) => made === focused);
  parent.replaceChildren(...present(children));
  if (index < 0) return;
  const { key } = before[index].dataset;
  const after = keyedIn(parent);
  const next = after.find((made) => made.dataset.key === key) ?? after[Math.min(index, after.length - 1)];
  next?.focus({ preventScroll: true });
}

/** @type {(parent: Element) => HTMLElement[]} */
function keyedIn(parent) {
  return [...parent.querySelectorAll("[data-key]")].filter((made) => made instanceof HTMLElement);
}

/** The element of the page that has this id, of a kind if one is named.
 * @type {<T extends HTMLElement = HTMLElement>(id: string, kind?: new () => T) => T} */
export function byId(id, kind) {
  const made = /** @type {any} */ (document.getElementById(id));
  if (!(made instanceof (kind ?? HTMLElement))) throw new Error(`#${id}`);
  return /** @type {any} */ (made);
}

/** @type {(id: string) => boolean} */
function isOpen(id) {
  const box = document.getElementById(id);
  return box instanceof HTMLDetailsElement && box.open;
}

/** @type {(words: string, press: (event: any) => unknown, attributes?: Attributes) => HTMLButtonElement} */
export const button = (words, press, attributes = {}) =>
  element("button", { type: "button", ...attributes, on: { click: press } }, words);

/** A box that can be unfolded; drawn again, it stays as it was.
 * @type {(id: string, title: string, ...children: Child[]) => HTMLDetailsElement} */
export const folded = (id, title, ...children) =>
  element("details", { id, open: isOpen(id) }, element("summary", { "data-key": id }, title), ...children);

/** A table from the titles and kinds of its columns and the text of its cells. It can be scrolled; where it is narrow, each row
stands for itself, and each cell says its column (so the roles are written out: a table that is laid out otherwise loses them).
 * @type {(caption: string, columns: [title: string, kind?: string][], rows: string[][]) => HTMLElement} */
export function table(caption, columns, rows) {
  const head = columns.map(([title, kind = ""]) =>
    element("th", { scope: "col", role: "columnheader", class: kind }, title),
  );
  const body = rows.map((cells) =>
    element(
      "tr",
      { role: "row" },
      ...cells.map((cell, index) =>
        element("td", { role: "cell", class: columns[index][1] ?? "", "data-column": columns[index][0] }, cell),
      ),
    ),
  );
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": caption },
    element(
      "table",
      { role: "table" },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...head)),
      element("tbody", { role: "rowgroup" }, ...body),
    ),
  );
}
