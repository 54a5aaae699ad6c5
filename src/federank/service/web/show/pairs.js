/* Pairs: how many of them a round learns from, as the federation says or as the person does. Only where pairs are learnt from.

What is being typed stays as it is while rounds go by: the box is filled anew only when another number was chosen.
*/

import { refusedTriples } from "../protocol/pairs/computation.js";
import { byId } from "./elements.js";
import { say, told } from "./language.js";
import { pairsInWords } from "./sentences.js";

/** @import { Said } from "../faults.js" */
/** @import { View } from "../device/view.js" */
/** @import { Act } from "./ask.js" */

/** @type {View} */
let view;
/** Why the number that stands in the box was not taken; null where it was.
 * @type {Said | null} */
let refused = null;
/** The number that was last put into the box.
 * @type {string | null} */
let shown = null;

/** `actions.act` carries out a choice and shows what came of it.
 * @type {(actions: { act: Act }) => void} */
export function prepare({ act }) {
  const number = byId("pairs-number", HTMLInputElement);
  /** @type {(triples: number | null) => void} */
  const choose = (triples) => {
    const { pairs } = view.federation;
    refused = !pairs || triples === null ? null : refusedTriples(pairs, triples);
    if (refused) showRefusal();
    else act("setPolicy", { change: { triples } });
  };
  byId("pairs-usual").addEventListener("change", () => choose(null));
  byId("pairs-own").addEventListener("change", () => choose(Number(shown)));
  number.addEventListener("change", () => choose(number.valueAsNumber));
}

/** Show a view of the device; where there are no pairs, or nothing leaves any more, there is nothing to choose.
 * @type {(given: View) => void} */
export function show(given) {
  view = given;
  const { choice, federation, sealed } = view;
  const { pairs } = federation;
  byId("pairs-box").hidden = !pairs || sealed;
  if (!pairs || sealed) return;
  const { triples: wish = null } = choice;
  byId("pairs-usual", HTMLInputElement).checked = wish === null;
  byId("pairs-own", HTMLInputElement).checked = wish !== null;
  byId("pairs-usual-label").textContent = say("pairs.usual", { usual: pairs.triples });
  byId("pairs-number-label").textContent = say("pairs.number", { most: pairs.mostTriples });
  const number = byId("pairs-number", HTMLInputElement);
  byId("pairs-wish").hidden = wish === null;
  number.max = String(pairs.mostTriples);
  const now = String(wish ?? Math.min(pairs.triples, pairs.mostTriples));
  if (now !== shown || wish === null) {
    number.value = shown = now;
    refused = null;
  }
  const { what, more, howMany } = pairsInWords(view);
  byId("pairs-what").textContent = what;
  byId("pairs-more").textContent = more;
  byId("pairs-sentence").textContent = howMany;
  showRefusal();
}

function showRefusal() {
  byId("pairs-refused").textContent = refused ? told(refused) : "";
  byId("pairs-refused").hidden = !refused;
  byId("pairs-number").setAttribute("aria-invalid", String(refused !== null));
}
