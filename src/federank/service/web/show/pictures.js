/* Pictures: small drawings, each with its meaning in words for who does not see it. What is always the same is drawn in the HTML. */

import { drawn, element } from "./elements.js";
import { say } from "./language.js";

/** @type {(name: "lock" | "plane" | "eye" | "reads" | "apart" | "together" | "none", size?: number) => SVGElement} */
export const picture = (name, size = 18) =>
  drawn(
    "svg",
    { class: "picture", width: size, height: size, "aria-hidden": "true" },
    drawn("use", { href: `#draw-${name}` }),
  );

/** @type {(made: number, most: number, words: string) => HTMLElement} */
export function pips(made, most, words) {
  const marks = Array.from({ length: Math.min(most, 40) }, (_, place) =>
    element("i", { class: place < made ? "sent" : "" }),
  );
  return element("div", { class: "pips", role: "img", "aria-label": words }, ...marks);
}

/** A code to scan with its address, and the fingerprint of a certificate that browsers do not know. The code is in rows of 0 and 1; it is
dark on light in either theme, as cameras want it.
 * @type {(joining: { address: string, fingerprint: string | null, code: string[] }, words: string) => HTMLElement} */
export function joiningCode({ address, fingerprint, code }, words) {
  const dark = code.flatMap((row, y) => [...row].flatMap((mark, x) => (mark === "1" ? [`M${x} ${y}h1v1h-1z`] : [])));
  const size = code.length;
  const label = say("admin.code", { address });
  return element(
    "div",
    { class: "joining" },
    drawn(
      "svg",
      { class: "scanned", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label },
      drawn("path", { d: `M0 0h${size}v${size}h-${size}z`, fill: "#ffffff" }),
      drawn("path", { d: dark.join(""), fill: "#000000" }),
    ),
    element(
      "div",
      {},
      element("p", {}, `${words} `, element("strong", {}, address)),
      fingerprint ? element("p", { class: "quiet" }, say("admin.fingerprint", { fingerprint })) : null,
    ),
  );
}
