/* Pairs on a device (fpl): every round some pairs are drawn, and the gradients of their items sent. */

import { USER_FACTORS, normalRow } from "../../protocol/draws.js";
import { record } from "../../protocol/ledger.js";
import { checkRows, decodeBroadcast, encodeUpdate } from "../../protocol/messages.js";
import { compute, ownTriples, recipeFor } from "../../protocol/pairs/computation.js";
import { homeVector } from "../../protocol/pairs/home.js";
import { share } from "../../protocol/pairs/transmission.js";
import { BadMessage } from "../../protocol/wire.js";
import { needed, positive, whole } from "../requests/answers.js";
import { BadAnswer } from "../requests/client.js";
import { MOST_FACTORS, MOST_TRIPLES } from "../rules.js";

/** @import { Method } from "./method.js" */

const RATES = ["learning_rate", "user_regulariser", "positive_regulariser", "negative_regulariser", "initial_scale"];

/** The method, with the recipe that a federation has published.
 * @type {(published: any) => Method} */
export function pairs(published) {
  const { factors } = published;
  needed(whole(factors, 1, MOST_FACTORS) && whole(published.triples, 1, MOST_TRIPLES), "recipe");
  needed(
    (published.most_triples ?? null) === null || whole(published.most_triples, 1, MOST_TRIPLES),
    "recipe (most_triples)",
  );
  for (const name of RATES) needed(positive(published[name]), `recipe (${name})`);
  const recipe = recipeFor(published);
  return {
    factors,
    messages: null,
    pairs: recipe,
    sharing: ["fixed-subset", "randomized-response", "all"],
    decode: (buffer, items) => decodeBroadcast(buffer, factors, items),
    popularity: ({ biases }) => biases,
    home: ({ seed, user }, history, model) => homeVector(recipe, seed, user, history, model),
    async message(device, task, { seed, user }, outward) {
      const first = () => normalRow(factors, seed, user, USER_FACTORS, recipe.initialScale);
      const vector = device.roundVector(outward.profile) ?? first();
      const person = {
        seed,
        user,
        vector,
        pi: device.policy.pi,
        triples: ownTriples(recipe, device.policy.triples),
        ...outward,
      };
      const gradients = compute(recipe, person, { ...device.model, roundNumber: task.round });
      const update = share(recipe, person, task.round, gradients);
      const rows = update.items.length;
      if (rows > (task.most_rows ?? Infinity))
        throw new BadAnswer(["detail.most-rows", { most: task.most_rows, rows }]);
      checkRows(update, device.shape.items);
      if (!person.vector.every(Number.isFinite)) throw new BadMessage(["detail.out-of-range"]);
      const liked = Array.from(update.items.filter((_, index) => update.biases[index] > 0));
      return {
        body: encodeUpdate(update),
        compared: rows - liked.length,
        liked,
        pairs: person.triples,
        vector: person.vector,
        changed: [...record(device.entries, task.round, outward, update).values()],
      };
    },
  };
}
