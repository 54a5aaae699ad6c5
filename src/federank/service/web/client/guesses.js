/* What an honest-but-curious server could still guess. Every message discloses the vector that the client learnt in its rounds
(docs/audits.md). So the page ranks the catalogue with it, leaves out what is known for certain, and names as many items as were withheld.
Beside it stands what the public popularity of items names. Cleverer attacks may do better. */

import { topN } from "../methods/ranking.js";
import { liked } from "../privacy/ledger.js";

/** How many items were withheld, and how many of them the attack and popularity name.
 * @typedef {{ hidden: number, named: number, namedByPopularity: number }} Guesses */

/** @type {(client: Client) => Guesses | null} */
export function guesses(client) {
  const { history, entries, stored, model, method } = client;
  if (!stored.vector || !stored.rounds.length) return null;
  const known = new Set(liked(entries));
  const hidden = new Set(history.filter((item) => !known.has(item)));
  /** @type {(values: Float32Array) => number} */
  const right = (values) => topN(values, hidden.size, known).filter((item) => hidden.has(item)).length;
  const named = right(method.scores(stored.vector.values, model));
  return { hidden: hidden.size, named, namedByPopularity: right(method.popularity(model)) };
}
