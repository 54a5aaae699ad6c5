/* What JavaScript makes of questions that Python asks: one function, run under node and inside a browser page.

`answers(protocol, questions, told)` gets the module of the page's protocol, plain JSON and what tells a fault, and gives
plain JSON back.
*/

/** Everything that is asked about, from the modules that have it. */
export async function protocolAt(load) {
  const files = ["schemas", "federation/rng", "federation/wire", "privacy/policy", "privacy/ledger"];
  const methods = ["methods/registry", "methods/ranking", "methods/fpl", "methods/frugal", "methods/fedrec"];
  return Object.assign({}, ...(await Promise.all([...files, ...methods].map((name) => load(`${name}.js`)))));
}

export function answers(protocol, questions, told = String) {
  const floats = (values) => Float32Array.from(values);
  const plain = (update) => ({
    items: [...update.items],
    vectors: [...update.vectors],
    biases: [...update.biases],
  });
  const broadcastOf = ({ round, vectors, biases }) => ({
    roundNumber: round,
    items: Int32Array.from(biases, (_, item) => item),
    vectors: floats(vectors),
    biases: floats(biases),
  });
  const kinds = {
    settings: ({ method, recipe }) => {
      try {
        protocol.checkSettings(method, recipe);
        return null;
      } catch (fault) {
        return fault.said[1].what;
      }
    },
    words: ({ of }) => of.map((five) => protocol.words(...five)),
    below: ({ of }) => of.map(([word, count]) => protocol.below(word, count)),
    absent: ({ profile, ranks }) => ranks.map((rank) => protocol.absentItem(profile, rank)),
    normal: ({ factors, seed, user, scale }) => [
      ...protocol.normalRow(factors, seed, user, protocol.USER_FACTORS, scale),
    ],
    slope: ({ of }) => of.map(protocol.slope),
    rounds: ({ recipe, person, broadcasts }) => {
      const worked = protocol.recipeFor(recipe);
      const device = {
        ...person,
        vector: floats(person.vector),
        profile: Int32Array.from(person.profile),
        triples: protocol.ownTriples(worked, person.wish),
      };
      return broadcasts.map((given) => {
        const broadcast = broadcastOf(given);
        const gradients = protocol.compute(worked, device, broadcast);
        const update = protocol.share(worked, device, broadcast.roundNumber, gradients);
        return {
          positives: [...gradients.positives],
          negatives: [...gradients.negatives],
          update: plain(update),
          vector: [...device.vector],
        };
      });
    },
    outward: ({ policy, seed, user, history, items, sent }) => {
      const { profile, ...rest } = protocol.sharedProfile(policy, seed, user, Int32Array.from(history), items, sent);
      return { profile: [...profile], ...rest };
    },
    ledger: ({ rounds }) => {
      const entries = new Map();
      for (const { round, outward, update } of rounds) {
        const typed = { items: Int32Array.from(update.items), biases: floats(update.biases) };
        for (const [item, entry] of protocol.record(entries, round, outward, typed)) entries.set(item, entry);
      }
      const rows = [...entries.values()].sort((one, other) => one.item - other.item);
      const [liked, really_liked] = [[...protocol.liked(entries)], [...protocol.reallyLiked(entries)]];
      return { rows, liked, really_liked };
    },
    home: ({ recipe, seed, user, history, broadcast, steps, n }) => {
      const worked = protocol.recipeFor(recipe);
      const given = broadcastOf(broadcast);
      const vector = protocol.homeVector(worked, seed, user, Int32Array.from(history), given, steps);
      return { vector: [...vector], best: protocol.topN(protocol.scores(vector, given), n, new Set(history)) };
    },
    squares: ({ objective, model, profile, weighing }) => {
      const typed = { ...model, vectors: floats(model.vectors), weights: floats(model.weights) };
      const own = Int32Array.from(profile);
      const gram = protocol.gramMatrix(typed);
      const vector = protocol.solveUser(objective, typed, gram, own);
      const strengths = protocol.residuals(objective, typed.vectors, vector, own);
      const update = protocol.send(weighing, own.length, strengths, vector);
      const { pulls, squares } = protocol.dense(update);
      return {
        gram: [...gram],
        vector: [...vector],
        strengths: [...strengths],
        scale: update.scale,
        pulls: [...pulls],
        squares: [...squares],
        bytes: [...protocol.encodeFrugalUpdate(update)],
      };
    },
    unsolvable: ({ objective, model, profile }) => {
      const typed = { ...model, vectors: floats(model.vectors), weights: floats(model.weights) };
      try {
        protocol.solveUser(objective, typed, protocol.gramMatrix(typed), Int32Array.from(profile));
        return "solved";
      } catch (fault) {
        return told(fault.said);
      }
    },
    squaresDecoded: ({ body, factors, items }) => {
      try {
        const read = protocol.decodeFrugalBroadcast(Uint8Array.from(body).buffer, factors, items);
        return { ...read, items: [...read.items], weights: [...read.weights], vectors: [...read.vectors] };
      } catch (fault) {
        if (!(fault instanceof protocol.BadMessage)) throw fault;
        return { refused: told(fault.said) };
      }
    },
    ratings: ({ recipe, hidden, items, person, broadcasts }) => {
      const rater = {
        ...person,
        vector: protocol.uniformRow(recipe.factors, person.seed, person.user, recipe.initial_range),
        items: Int32Array.from(person.items),
        ratings: floats(person.ratings),
      };
      const worked = protocol.ratingRecipe(recipe, hidden, rater.items.length, items);
      let sampled = new Int32Array(0);
      return broadcasts.map(({ round, iteration, vectors }) => {
        const given = { roundNumber: round, iteration, vectors: floats(vectors) };
        const update = protocol.computeRatings(worked, Object.assign(rater, { sampled }), given);
        sampled = Int32Array.from([...new Set([...sampled, ...update.sampled])]).sort();
        return {
          items: [...update.items],
          vectors: [...update.vectors],
          sampled: update.sampled,
          vector: [...rater.vector],
          taste: [...protocol.foldedIn(given.vectors, rater.items, rater.ratings, recipe.factors)],
          bytes: [
            ...protocol.encodeRecord(protocol.MESSAGES["pmf-update"], update, {
              rows: update.items.length,
              factors: recipe.factors,
            }),
          ],
          dense: [...protocol.denseGradients(update, recipe.factors, items)],
        };
      });
    },
    ratingsDecoded: ({ body, factors, items }) => {
      try {
        const read = protocol.decodeRatingRows(Uint8Array.from(body).buffer, { items, factors });
        return {
          version: read.version,
          iteration: read.iteration,
          reported: [...read.weights],
          vectors: [...read.vectors],
        };
      } catch (fault) {
        if (!(fault instanceof protocol.BadMessage)) throw fault;
        return { refused: fault.message };
      }
    },
    virtual: ({ seed, user, fixed, round, profile, count, items, sampled }) =>
      protocol.virtualItems(
        { seed, user, isFixed: fixed },
        round,
        Int32Array.from(profile),
        count,
        items,
        Int32Array.from(sampled),
      ),
    encoded: ({ items, vectors, biases }) => {
      const update = { items: Int32Array.from(items), vectors: floats(vectors), biases: floats(biases) };
      const sizes = { rows: items.length, factors: vectors.length / items.length };
      return [...protocol.encodeRecord(protocol.MESSAGES["fpl-update"], update, sizes)];
    },
    decoded: ({ body, factors, items }) => {
      try {
        const sizes = { items, factors };
        const broadcast = protocol.decodeRows(protocol.MESSAGES["fpl-broadcast"], Uint8Array.from(body).buffer, sizes);
        return { round: broadcast.roundNumber, version: broadcast.version, ...plain(broadcast) };
      } catch (fault) {
        if (!(fault instanceof protocol.BadMessage)) throw fault;
        return { refused: told(fault.said) };
      }
    },
  };
  return questions.map((question) => kinds[question.kind](question));
}

// Under node: `node answers.mjs FOLDER` answers lists of questions about the page's modules.
if (typeof process !== "undefined" && process.argv[2]) {
  const { converse } = await import("./conversing.mjs");
  const protocol = await protocolAt((path) => import(`${process.argv[2]}/${path}`));
  await converse((questions) => answers(protocol, questions, ([code]) => code));
}
