/* The federation from outside: its round, its devices, its accuracy where the operator publishes it. */

import { byId, element, fill } from "./elements.js";
import { short } from "./pictures.js";

/** @import { Status } from "../device/federation.js" */
/** @import { View } from "../device/view.js" */

/** Show what `GET /status` says, or that it says nothing.
 * @type {(status: Status, federation: View["federation"]) => void} */
export function show(status, { name, items }) {
  /** @type {[string, number | undefined][]} */
  const numbers = [
    ["Model version", status.version],
    ["Round", status.round],
    ["Messages in this round", status.reports],
    ["Devices", status.devices],
    ["Rounds finished", status.rounds_folded],
    ["Catalogue", items],
  ];
  const accuracy = Object.entries(status.accuracy ?? {}).filter(
    ([key, value]) => key !== "version" && Number.isFinite(value),
  );
  for (const [metric, value] of accuracy) numbers.push([metric, value]);
  const shown = numbers.map(([title, value]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, short(value))),
  );
  if (!accuracy.length)
    shown.push(element("div", {}, element("dt", {}, "Accuracy"), element("dd", { class: "quiet" }, "not published")));
  fill(byId("status"), ...shown);
  if (name) document.title = `${name} · FedeRank`;
}
