/* Ratings on a device (pmf, svdpp): the items that may leave and sampled ones among them, with virtual ratings; predictions are made at
home, from the vector that explains all stars best. Where no single server reads a message there are no virtual ratings: a message
names every item, and a life has so many of them. The twins of this file are service/device/methods/ratings.py and, there too,
methods/ratings_in_sums.py.
*/

import { recordMessage, recordRatings, sampledEver } from "../../protocol/ledger.js";
import { decodeRatingRows, encodeRatingUpdate } from "../../protocol/ratings/codec.js";
import { computeRatings, ratingRecipe, uniformRow } from "../../protocol/ratings/computation.js";
import { besideOf, solvedTaste } from "../../protocol/ratings/home.js";
import { denseGradients } from "../../protocol/ratings/sums.js";
import { BadMessage, checkFinite } from "../../protocol/wire.js";
import { needed, positive, whole } from "../requests/answers.js";
import { BadAnswer } from "../requests/client.js";
import { MOST_FACTORS, MOST_MESSAGES, MOST_PASSES } from "../rules.js";

/** @import { Model } from "../device.js" */
/** @import { Method } from "./method.js" */

const RATES = ["learning_rate", "decay", "regulariser", "initial_range", "step"];
/** Where no single server reads a message, it names every item, and there is nothing to hide among others. */
export const NOTHING_HIDDEN = { filling: "none", rho: 0, sampling: "fixed" };

/** PMF, with the recipe that a federation has published.
 * @type {(published: any, isSummed: boolean) => Method} */
export const pmf = (published, isSummed) => ratings(published, false, isSummed);

/** SVD++, likewise: its messages have rows of W, which name what was rated wherever a server reads them.
 * @type {(published: any, isSummed: boolean) => Method} */
export const svdpp = (published, isSummed) => ratings(published, true, isSummed);

/** @type {(published: any, hasImplicit: boolean, isSummed: boolean) => Method} */
function ratings(published, hasImplicit, isSummed) {
  const { factors, lowest, highest, step } = published;
  needed(whole(factors, 1, MOST_FACTORS), "recipe");
  for (const name of ["t_predict", "t_local"]) needed(whole(published[name], 0, MOST_PASSES), `recipe (${name})`);
  for (const name of RATES) needed(positive(published[name]), `recipe (${name})`);
  needed(["mean", "zero"].includes(published.first_prediction), "recipe (first_prediction)");
  needed(Number.isFinite(lowest) && Number.isFinite(highest) && lowest < highest, "recipe (lowest)");
  if (isSummed) needed(whole(published.messages, 1, MOST_MESSAGES) && positive(published.clip), "recipe (messages)");
  /** @type {(model: Model, items: Int32Array, stars: Float32Array) => Float32Array} */
  const taste = (model, items, stars) =>
    solvedTaste(model.vectors, items, stars, besideOf(model.implicit, items, factors));
  return {
    factors,
    messages: isSummed ? published.messages : null,
    sharing: ["fixed-subset"],
    scale: { lowest, highest, step },
    namesRated: hasImplicit && !isSummed,
    hasImplicit,
    decode: (buffer, items) => decodeRatingRows(buffer, factors, items, hasImplicit),
    popularity: (model) => (model.popular ??= lengths(model.vectors, factors)),
    home: (_, history, model, stars) => taste(model, history, stars),
    async message(device, task, { seed, user }, outward) {
      const { model, entries, policy } = device;
      const { profile } = outward;
      const stars = device.starsOf(profile);
      const { filling, rho, sampling } = isSummed ? NOTHING_HIDDEN : policy;
      if (!filling || rho === null || rho === undefined || !sampling) throw new BadAnswer(["detail.no-filling"]);
      const recipe = ratingRecipe(
        published,
        { filling, rho, sampling },
        profile.length,
        device.shape.items,
        hasImplicit,
      );
      const solved = () => {
        const beside = besideOf(model.implicit, profile, factors);
        return taste(model, profile, stars).map((value, f) => value - beside[f]);
      };
      // What explains the stars that may leave; where a first model predicts zero, the first values of a simulation.
      const isDrawn = published.first_prediction === "zero" && model.iteration === 0;
      const first = () => (isDrawn ? uniformRow(factors, seed, user, recipe.initialRange) : solved());
      const vector = Float32Array.from(device.roundVector(profile) ?? first());
      const person = { seed, user, vector, items: profile, ratings: stars, sampled: sampledEver(entries) };
      const update = computeRatings(recipe, person, { ...model, roundNumber: task.round });
      const rows = isSummed ? device.shape.items : update.items.length;
      if (rows > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-rows", { most: task.most_rows, rows }]);
      checkFinite(update.vectors, update.implicitVectors);
      if (!person.vector.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const recorded = isSummed
        ? recordMessage(entries, task.round, outward)
        : recordRatings(entries, task.round, profile, update.sampled);
      return {
        body: encodeRatingUpdate(update, factors),
        values: () => denseGradients(update, factors, device.shape.items, hasImplicit),
        compared: update.sampled.length,
        liked: Array.from(profile),
        vector: person.vector,
        changed: [...recorded.values()],
      };
    },
  };
}

/** How long each item's vector is: much is said of what many have rated.
 * @type {(vectors: Float32Array, factors: number) => Float32Array} */
function lengths(vectors, factors) {
  const squares = new Float32Array(vectors.length / factors);
  for (let index = 0; index < vectors.length; index++)
    squares[Math.floor(index / factors)] += vectors[index] * vectors[index];
  return squares;
}
