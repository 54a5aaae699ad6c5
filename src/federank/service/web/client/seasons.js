/* A new season on this device: what it guarantees, whether its owner must consent, and how the device goes on in it.

A season has its own config, which both servers sign. The device checks the chain of configs from the one that it has pinned, and
compares. A season that is weaker than the one before, or beyond the lifetime cap (three seasons like the first), waits until its owner
takes part again; any other goes on. Items keep their numbers. The twin of this file is service/client/seasons.py.
*/

import { isSecure } from "./federation.js";
import { BadAnswer } from "./http.js";
import { dropped } from "./outcomes.js";
import { readEverything, write } from "./store.js";
import { epsilonOfMu } from "../privacy/accountant.js";

export const USUAL_SEASONS = 3;
const SLACK = 1e-9;

/** A season as the page shows it, or all of them: messages made, how many there may be, and epsilon where there is noise.
 * @typedef {{ number: number, made: number, most: number, epsilon: number | null }} SeasonLine */

/** @type {(info: FederationInfo) => number} */
export const seasonOf = ({ season }) => (Number.isInteger(season?.number) ? season.number : 1);

/** @type {(info: FederationInfo) => string} */
export const untilOf = ({ season }) => (typeof season?.until === "string" ? season.until.slice(0, 10) : "");

/** @type {(until: string) => boolean} */
export const isOver = (until) => until !== "" && new Date().toISOString().slice(0, 10) > until;

/** @type {(round: StoredRound) => number} */
export const seasonOfRound = ({ season = 1 }) => season;

/** What noise costs, as a square of mu.
 * @type {(config: SecureConfig, noise: number) => number} */
const costOf = ({ bound }, noise) => (bound / noise) ** 2;

/** @type {(values: number[]) => number} */
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** @type {(client: Client, config: SecureConfig | null) => StoredSeason} */
export function seasonTerms({ info, method }, config) {
  const cost = config && config.noises.every(Boolean) ? sum(config.noises.map((noise) => costOf(config, noise))) : null;
  return { number: seasonOf(info), uploads: method.messages, cost, until: untilOf(info) };
}

/** @type {(client: Client) => boolean} */
export const hasNewSeason = ({ stored, info }) =>
  stored.federation_id === info.federation_id && seasonOf(info) > (stored.seasons?.at(-1)?.number ?? 1);

/** Go on in the federation's season, or wait for the owner's consent. What was on its way belonged to the season before.
 * @type {(client: Client) => Promise<void>} */
export async function followSeason(client) {
  const { database, info, met } = client;
  const stored = await readEverything(database);
  const before = stored.seasons ?? [];
  if (isSecure(info) && !(stored.sums && met.config)) throw new BadAnswer(["sums.config-unusable", { reason: "" }]);
  if (stored.sums && met.config) await (await import("./secure.js")).checkSeason(stored.sums, met.config);
  const season = seasonTerms(client, met.config);
  const codes = [
    ...weaker(before.at(-1), season, stored.sums, met.config),
    ...beyond(before, stored.rounds, season, met.config),
  ];
  const changes = {
    seasons: [...before, season],
    answered: undefined,
    ...(met.config && { sums: met.config }),
    ...(codes.length && { taking: false, policy: { ...stored.policy, messages: null } }),
    seasonBegun: codes.join(", "),
  };
  await write(database, { records: changes, ...dropped(stored, ["detail.season"]) }, { choice: true });
}

/** In which ways a season protects less than the one before, by their codes.
 * @type {(before: StoredSeason | undefined, now: StoredSeason, known: SecureConfig | undefined, config: SecureConfig | null) => string[]} */
export function weaker(before, now, known, config) {
  const codes = [];
  if (before && before.uploads !== null && (now.uploads === null || now.uploads > before.uploads))
    codes.push("more-messages");
  if (before && before.cost !== null && (now.cost === null || now.cost > before.cost * (1 + SLACK)))
    codes.push("less-noise");
  if (known && config && config.least_cohort < known.least_cohort) codes.push("smaller-cohorts");
  if (known && config && config.projections < known.projections) codes.push("weaker-norm-check");
  return codes;
}

/** Whether all seasons together would take more than three like the first, by its code.
 * @type {(before: StoredSeason[], rounds: StoredRound[], now: StoredSeason, config: SecureConfig | null) => string[]} */
export function beyond(before, rounds, now, config) {
  const [first] = before;
  if (!first) return [];
  const sent = rounds.filter(({ number }) => number);
  const isMany =
    first.uploads !== null && now.uploads !== null && sent.length + now.uploads > USUAL_SEASONS * first.uploads;
  const spent = config ? sum(sent.map(({ noise }) => (noise ? costOf(config, noise) : Infinity))) : 0;
  const isMuch =
    first.cost !== null && (now.cost === null || spent + now.cost > USUAL_SEASONS * first.cost * (1 + SLACK));
  return isMany || isMuch ? ["lifetime-cap"] : [];
}

/** What is to be said of a season that has begun, until the owner's next choice; null if nothing is.
 * @type {(client: Client) => Said | null} */
export function noticeOf({ stored, info, method }) {
  if (stored.seasonBegun === undefined) return null;
  const values = { number: seasonOf(info), count: method.messages ?? 0, code: stored.seasonBegun };
  return [stored.seasonBegun ? "notice.season-weaker" : "notice.season", values];
}

/** Every season of this device, and all of them together; null where there was only one, or messages are not counted.
 * @type {(client: Client) => { seasons: SeasonLine[], total: SeasonLine } | null} */
export function linesOf({ stored, met, method }) {
  const { seasons = [], rounds } = stored;
  if (seasons.length < 2 || method.messages === null) return null;
  const delta = Number((stored.sums ?? met.config)?.delta ?? 1e-6);
  /** @type {(number: number, among: StoredSeason[]) => SeasonLine} */
  const line = (number, among) => {
    const numbers = new Set(among.map((season) => season.number));
    const costs = among.flatMap(({ cost }) => cost ?? []);
    return {
      number,
      made: rounds.filter((round) => round.number && numbers.has(seasonOfRound(round))).length,
      most: sum(among.map(({ uploads }) => uploads ?? 0)),
      epsilon: costs.length < among.length ? null : epsilonOfMu(Math.sqrt(sum(costs)), delta),
    };
  };
  return { seasons: seasons.map((season) => line(season.number, [season])), total: line(seasons.length, seasons) };
}
