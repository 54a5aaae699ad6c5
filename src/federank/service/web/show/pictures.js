/* Pictures: small drawings made of elements, each with its meaning in words for who does not see it. */

import { drawn, element } from "./elements.js";
import { say } from "./language.js";

/** Small signs, as paths in a box of 20.
 * @type {Record<string, string>} */
const ICONS = {
  lock: "M5 9V7a5 5 0 0 1 10 0v2h.5a1.5 1.5 0 0 1 1.5 1.5v6a1.5 1.5 0 0 1-1.5 1.5h-11a1.5 1.5 0 0 1-1.5-1.5v-6A1.5 1.5 0 0 1 4.5 9zm2 0h6V7a3 3 0 0 0-6 0z",
  plane: "M2 10L18 3l-5 15-3-6z",
  eye: "M1 10q9-11 18 0q-9 11-18 0zm9-4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 2.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
};

/** @type {(name: "lock" | "plane" | "eye") => SVGElement} */
export const icon = (name) =>
  drawn(
    "svg",
    { class: "icon", viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    drawn("path", { d: ICONS[name], fill: "currentColor", "fill-rule": "evenodd" }),
  );

/** @type {(kind: string) => SVGElement} */
export const lockIcon = (kind) => icon(kind === "closed" ? "lock" : "plane");

/** What is left of a wait, as a ring with its seconds.
 * @type {(left: number, of: number) => SVGElement} */
export function ring(left, of) {
  const round = 2 * Math.PI * 19;
  const circle = { cx: 23, cy: 23, r: 19, fill: "none", "stroke-width": 5 };
  return drawn(
    "svg",
    { class: "ring", viewBox: "0 0 46 46", width: 46, height: 46, "aria-hidden": "true" },
    drawn("circle", { ...circle, class: "ring-all" }),
    drawn("circle", {
      ...circle,
      class: "ring-left",
      "stroke-dasharray": `${(round * left) / of} ${round}`,
      transform: "rotate(-90 23 23)",
    }),
    drawn(
      "text",
      { x: 23, y: 28, "text-anchor": "middle", "font-size": 14, "font-weight": 700, fill: "currentColor" },
      String(left),
    ),
  );
}

/** One mark per message: sent, or still to come.
 * @type {(made: number, most: number, words: string) => HTMLElement} */
export function pips(made, most, words) {
  const marks = Array.from({ length: Math.min(most, 40) }, (_, place) =>
    element("i", { class: place < made ? "sent" : "" }),
  );
  return element("div", { class: "pips", role: "img", "aria-label": words }, ...marks);
}

/** Who can read what goes out: this device at the left, the servers that get a message at the right, and around those who are one the computer
that they share.
 * @type {(readers: "reads" | "apart" | "together" | "none") => SVGElement} */
export function crossing(readers) {
  const device = drawn("rect", { class: "draw-out", x: 4, y: 26, width: 18, height: 28, rx: 5 });
  /** @type {(y: number, kind?: string) => SVGElement} */
  const server = (y, kind = "draw-safe") => drawn("circle", { class: kind, cx: 62, cy: y, r: 10 });
  /** @type {(d: string) => SVGElement} */
  const dashed = (d) => drawn("path", { class: "draw-line", d });
  const parts = {
    reads: () => [
      dashed("M26 40H48"),
      server(40, "draw-out"),
      drawn("path", { class: "draw-eye", d: "M54 40q8-9 16 0q-8 9-16 0z" }),
    ],
    apart: () => [dashed("M26 36L50 20"), dashed("M26 44L50 60"), server(16), server(64)],
    together: () => [
      drawn("rect", { class: "draw-box", x: 46, y: 2, width: 32, height: 76, rx: 8 }),
      dashed("M26 36L50 22"),
      dashed("M26 44L50 58"),
      server(18),
      server(62),
    ],
    none: () => [dashed("M26 40H40"), drawn("path", { class: "draw-line", d: "M46 32l16 16M62 32l-16 16" })],
  };
  return drawn(
    "svg",
    { class: "crossing", viewBox: "0 0 80 80", width: 72, height: 72, "aria-hidden": "true" },
    device,
    ...parts[readers](),
  );
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
