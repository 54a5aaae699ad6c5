/* What a curious server could still guess: the page plays the attacker against its own owner.

Every message gives away the vector that the device learnt in its rounds (docs/privacy.md, vector recovery). So the attacker
ranks the catalogue with that very vector, leaves out what it knows for certain, and names as many items as were kept back.
Beside it stands what anybody could name from the public popularity of items alone. Cleverer attacks may do better.
*/

import { topN } from "../methods/ranking.js";
import { disclosed, liked } from "../privacy/ledger.js";

/** @import { Client } from "./client.js" */

/** What was kept back, how much of it was named rightly, and how well it was put in order.
 * @typedef {{ share: number, tried: false, made: number } | { share: number, tried: true, hidden: number, named: number,
 *   namedByPopularity: number, order: number | null, orderByPopularity: number | null }} Guesses */

/** How many of the items that were kept back the attacker names, and how well it orders them.
 * @type {(client: Client) => Guesses} */
export function guesses(client) {
  const { history, entries, kept, model } = client;
  const share = disclosed(entries, history);
  if (!kept.vector || !kept.rounds.length) return { share, tried: false, made: kept.rounds.length };
  const known = new Set(liked(entries));
  // Negatives avoid the whole history only where updates follow from it; there, what was compared with is surely not owned.
  if (client.policy.basis === "history") for (const [item, entry] of entries) if (entry.times_compared) known.add(item);
  const hidden = history.filter((item) => !known.has(item));
  const byTaste = client.method.scores(kept.vector.values, model);
  const popularity = client.method.popularity(model);
  return {
    share,
    tried: true,
    hidden: hidden.length,
    named: rightAmong(topN(byTaste, hidden.length, known), hidden),
    namedByPopularity: rightAmong(topN(popularity, hidden.length, known), hidden),
    order: order(byTaste, hidden, known),
    orderByPopularity: order(popularity, hidden, known),
  };
}

/** @type {(named: number[], hidden: Int32Array) => number} */
function rightAmong(named, hidden) {
  const right = new Set(hidden);
  return named.filter((item) => right.has(item)).length;
}

/** How often an item that was kept back stands above one that is not the person's (0.5 is chance).
 * @type {(values: Float32Array, hidden: Int32Array, known: Set<number>) => number | null} */
function order(values, hidden, known) {
  const mine = new Set(hidden);
  const ranked = Array.from(values.keys())
    .filter((item) => mine.has(item) || !known.has(item))
    .sort((one, other) => (values[one] < values[other] ? -1 : Number(values[one] > values[other])));
  const others = ranked.length - hidden.length;
  let below = 0;
  let wins = 0;
  for (const item of ranked)
    if (mine.has(item)) wins += below;
    else below++;
  return hidden.length && others ? wins / (hidden.length * others) : null;
}
