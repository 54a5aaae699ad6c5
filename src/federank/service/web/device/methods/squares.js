/* Squares on a device (frugal): its own vector is solved for at home, and at most so many whole messages leave in its life.

What is sent follows from the outward profile alone; recommendations come from the whole history, by the same equations. The
inner products of all items serve both, and every solve until the model changes.
*/

import { recordMessage } from "../../protocol/ledger.js";
import { decodeSquaresBroadcast, encodeSquaresUpdate } from "../../protocol/squares/codec.js";
import { gramMatrix, ownVector, pulls } from "../../protocol/squares/computation.js";
import { dense, flat } from "../../protocol/squares/messages.js";
import { send } from "../../protocol/squares/transmission.js";
import { BadMessage } from "../../protocol/wire.js";
import { needed, positive, whole } from "../requests/answers.js";
import { BadAnswer } from "../requests/client.js";
import { MOST_FACTORS, MOST_MESSAGES } from "../rules.js";

/** @import { Model } from "../device.js" */
/** @import { Method } from "./method.js" */

/** The method, with the recipe that a federation has published.
 * @type {(published: any) => Method} */
export function squares(published) {
  const { factors, messages, alpha, unobserved_weight: unobserved, activity } = published;
  const clip = published.clip ?? 0;
  needed(whole(factors, 1, MOST_FACTORS) && whole(messages, 1, MOST_MESSAGES), "recipe");
  const numbers = { alpha, unobserved_weight: unobserved, activity, clip };
  for (const [name, value] of Object.entries(numbers)) needed(positive(value), `recipe (${name})`);
  const objective = { liked: Math.fround(1 + alpha), unobserved: Math.fround(unobserved) };
  /** @type {(model: Model, profile: Int32Array) => Float32Array} */
  const solved = (model, profile) => ownVector(objective, model, (model.gram ??= gramMatrix(model)), profile);
  return {
    factors,
    messages,
    sharing: ["fixed-subset", "randomized-response"],
    decode: (buffer, items) => decodeSquaresBroadcast(buffer, factors, items),
    popularity: (model) => (model.popular ??= nearness(model)),
    home: (_, history, model) => solved(model, history),
    async message({ model, shape, entries }, task, _, outward) {
      if (shape.items > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-numbers", { most: task.most_rows, items: shape.items }]);
      const { profile } = outward;
      const vector = solved(model, profile);
      const strengths = pulls(objective, model.vectors, vector, profile);
      if (!strengths.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const update = send({ activity, clip }, profile.length, strengths, vector);
      return {
        body: encodeSquaresUpdate(update),
        values: () => flat(dense(update)),
        compared: 0,
        liked: Array.from(profile),
        vector,
        changed: [...recordMessage(entries, task.round, outward).values()],
      };
    },
  };
}

/** How near each item is to all others together: what many have is near much.
 * @type {(model: Model) => Float32Array} */
function nearness({ vectors, weights }) {
  const factors = vectors.length / weights.length;
  const sum = new Float64Array(factors);
  for (let index = 0; index < vectors.length; index++) sum[index % factors] += vectors[index];
  const near = new Float32Array(weights.length);
  for (let index = 0; index < vectors.length; index++)
    near[Math.floor(index / factors)] += vectors[index] * sum[index % factors];
  return near;
}
