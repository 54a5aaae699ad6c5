/* The federation from outside: its round, its devices, its accuracy where the operator publishes it. */

import { byId, element, fill } from "./elements.js";
import { short } from "./pictures.js";

/** Show what `GET /status` told, or that it told nothing. */
export function show(status, { name, items }) {
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
