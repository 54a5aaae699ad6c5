/* Elements: the only way this page makes anything visible. Text is always text, never markup. */

/** An HTML element with attributes, listeners (`on`) and children; strings become text. */
export function element(tag, { on = {}, ...attributes } = {}, ...children) {
  return furnished(document.createElement(tag), attributes, on, children);
}

/** The same for a picture's parts. */
export function drawn(tag, { on = {}, ...attributes } = {}, ...children) {
  return furnished(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, on, children);
}

function furnished(made, attributes, on, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Fill an element anew. Who had the keyboard keeps it: focus goes to the new element of the same `data-key`, or near it. */
export function fill(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset.key;
  const place = focused ? [...parent.querySelectorAll("[data-key]")].indexOf(focused) : -1;
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  if (!key) return;
  const keyed = [...parent.querySelectorAll("[data-key]")];
  (keyed.find((made) => made.dataset.key === key) ?? keyed[Math.min(place, keyed.length - 1)])?.focus({
    preventScroll: true,
  });
}

export const byId = (id) => document.getElementById(id);

/** "1 place", "3 places". */
export const counted = (count, { one, many }) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** "No places", "Places": the same with a capital letter. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
