/* The federation from outside: its round, its devices, its accuracy where the operator publishes it; and how to show it to a friend. */

import { byId, element, fill, isOpen } from "./elements.js";
import { say, short } from "./language.js";
import { joiningCode } from "./pictures.js";

/** @import { Status } from "../device/requests/federation.js" */
/** @import { View } from "../device/view.js" */
/** @import { Key } from "../faults.js" */

/** Show what `GET /status` says, or that it says nothing.
 * @type {(status: Status, federation: View["federation"]) => void} */
export function show(status, { name, items }) {
  /** @type {[string, number | undefined][]} */
  const numbers = [
    [say("federation.version"), status.version],
    [say("federation.round"), status.round],
    [say("federation.reports"), status.reports],
    [say("federation.devices"), status.devices],
    [say("federation.rounds"), status.rounds_folded],
    [say("federation.catalogue"), items],
  ];
  const accuracy = Object.entries(status.accuracy ?? {}).filter(
    ([key, value]) => key !== "version" && Number.isFinite(value),
  );
  for (const [metric, value] of accuracy) numbers.push([metric, value]);
  fill(
    byId("status"),
    ...numbers.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, short(value)))),
  );
  if (name) document.title = `${name} · FedeRank`;
}

/** What is said of a demo's simulated clients, by their state.
 * @type {Record<string, Key>} */
const SIMULATED = {
  running: "simulated.running",
  starting: "simulated.starting",
  stopped: "simulated.stopped",
};

/** Say how the simulated clients of a demo are; nothing where there are none, or where the server says nothing.
 * @type {(simulated: Status["simulated"]) => void} */
export function showSimulated(simulated) {
  const { state = "", clients } = simulated ?? {};
  const key = Object.hasOwn(SIMULATED, state) ? SIMULATED[state] : null;
  const place = byId("simulated");
  const text = key ? say(key, { count: Number(clients) }) : "";
  place.dataset.state = key ? state : "";
  if (place.textContent !== text) place.textContent = text; // what stays the same is not announced again
}

/** How a friend gets here: a code to scan where the federation has one, or the address.
 * @type {(federation: View["federation"], address: URL | Location) => void} */
export function showFriend({ joining }, { origin, hostname }) {
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const words = say(isHere ? "friend.here" : "friend.open");
  fill(
    byId("friend"),
    element(
      "details",
      { id: "friend-box", open: isOpen("friend-box") },
      element("summary", { "data-key": "friend" }, say("friend.summary")),
      joining
        ? joiningCode(joining, say("friend.scan"))
        : element("p", {}, `${words} `, isHere ? null : element("strong", {}, origin)),
    ),
  );
}
