/* Pictures: small drawings made of elements, each with its meaning in words for who does not see it. */

import { drawn, element } from "./elements.js";
import { say } from "./language.js";

const CELL = 14;
const GAP = 4;
const MOST_CELLS = 240;

/** One square per item: has left, may leave, stays. Of a very long history, a bar in proportion.
 * @type {(counts: { left: number, mayLeave: number, stays: number }, words: string) => SVGElement} */
export function disclosedPicture({ left, mayLeave, stays }, words) {
  const total = left + mayLeave + stays;
  const counts =
    total <= MOST_CELLS
      ? [left, mayLeave, stays]
      : [left, mayLeave, stays].map((count) => Math.round((count / total) * MOST_CELLS));
  const kinds = ["cell-left", "cell-may", "cell-stays"].flatMap((kind, index) => Array(counts[index]).fill(kind));
  const columns = Math.max(1, Math.min(kinds.length, 20));
  const rows = Math.ceil(kinds.length / columns);
  const step = CELL + GAP;
  const cells = kinds.map((kind, index) =>
    drawn("rect", {
      class: kind,
      x: 1 + (index % columns) * step,
      y: 1 + Math.floor(index / columns) * step,
      width: CELL,
      height: CELL,
      rx: 3,
    }),
  );
  return drawn(
    "svg",
    {
      width: columns * step,
      height: rows * step,
      viewBox: `0 0 ${columns * step} ${rows * step}`,
      role: "img",
      "aria-label": words,
    },
    ...cells,
  );
}

/** What the squares mean.
 * @type {(meanings: [kind: string, words: string][]) => HTMLElement} */
export function legend(meanings) {
  /** @type {(kind: string) => SVGElement} */
  const sample = (kind) =>
    drawn(
      "svg",
      { width: 12, height: 12, "aria-hidden": "true" },
      drawn("rect", { class: kind, x: 1, y: 1, width: 10, height: 10, rx: 2 }),
    );
  return element("ul", { class: "legend" }, ...meanings.map(([kind, words]) => element("li", {}, sample(kind), words)));
}

/** A code to scan, from its rows of 0 and 1; dark on light in either theme, as cameras want it.
 * @type {(rows: string[], words: string) => SVGElement} */
export function scanned(rows, words) {
  const dark = rows.flatMap((row, y) => [...row].flatMap((mark, x) => (mark === "1" ? [`M${x} ${y}h1v1h-1z`] : [])));
  return drawn(
    "svg",
    { class: "scanned", viewBox: `0 0 ${rows[0].length} ${rows.length}`, role: "img", "aria-label": words },
    drawn("rect", { width: rows[0].length, height: rows.length, fill: "#ffffff" }),
    drawn("path", { d: dark.join(""), fill: "#000000" }),
  );
}

/** A code to scan with its address, and the fingerprint of a certificate that browsers do not know.
 * @type {(joining: { address: string, fingerprint: string | null, code: string[] }, words: string) => HTMLElement} */
export function joiningCode({ address, fingerprint, code }, words) {
  return element(
    "div",
    { class: "joining" },
    scanned(code, say("admin.code", { address })),
    element(
      "div",
      {},
      element("p", {}, `${words} `, element("strong", {}, address)),
      fingerprint ? element("p", { class: "quiet" }, say("admin.fingerprint", { fingerprint })) : null,
    ),
  );
}
