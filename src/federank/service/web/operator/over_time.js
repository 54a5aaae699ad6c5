/* What the operator sees over time: accuracy as clients measure it, reports, devices, refusals, bytes, drift, seconds.

Functions of the overview alone. What was not measured is not drawn: an abandoned round has no drift, and a round that ended before its
devices were counted has none.
*/

import { number, say } from "../show/language.js";
import { chart } from "./charts.js";

/** @import { Overview, Round } from "../admin.js" */
/** @import { Point } from "./charts.js" */

/** As in deploy/alerts.yml: more than honest rounds change a model, from the tenth version on. */
const FAR = 0.3;
const PER_CENT = 100;

/** @type {(overview: Overview, rounds: Round[]) => HTMLElement[]} */
export function chartsOf(overview, rounds) {
  const ended = rounds.filter(({ state }) => state === "folded" || state === "abandoned");
  const folded = ended.filter(({ state }) => state === "folded");
  return [
    reports(ended, overview.limits),
    devices(ended),
    joinedAndLeft(ended),
    rejected(ended),
    drift(folded),
    bytes(folded),
    seconds(folded, overview.limits),
  ];
}

/** @type {(round: Round, value: number) => Point} */
const at = ({ number: round, ended }, value) => ({ round, time: ended ?? null, value });

/** @type {(rounds: Round[], limits: Overview["limits"]) => HTMLElement} */
function reports(rounds, limits) {
  const points = rounds.map((round) => ({ ...at(round, round.reports ?? 0), bad: round.dropouts ?? 0 }));
  return chart(say("chart.reports"), points, {
    unit: say("unit.devices"),
    whole: true,
    limits: limits && [
      { value: limits.enough, words: say("limit.enough", { count: limits.enough }) },
      ...(limits.minimum < limits.enough
        ? [{ value: limits.minimum, words: say("limit.minimum", { count: limits.minimum }) }]
        : []),
    ],
    meanings: [
      ["chart-bar", say("chart.reported")],
      ["chart-bar bad", say("chart.dropped")],
    ],
  });
}

/** @typedef {Round & { devices: number, departures: number }} CountedRound */

/** Rounds at whose end devices were counted.
 * @type {(rounds: Round[]) => CountedRound[]} */
const countedIn = (rounds) =>
  /** @type {CountedRound[]} */ (rounds.filter((round) => typeof round.devices === "number"));

/** @type {(rounds: Round[]) => HTMLElement} */
function devices(rounds) {
  const points = countedIn(rounds).map((round) => at(round, round.devices));
  return chart(say("chart.devices"), points, { unit: say("unit.devices"), line: true, whole: true });
}

/** How many came and went from one round's end to the next; before round 0 there was nobody.
 * @type {(rounds: Round[]) => HTMLElement} */
function joinedAndLeft(rounds) {
  const known = countedIn(rounds);
  const points = known.flatMap((round, index) => {
    if (!index && round.number) return [];
    const before = index ? known[index - 1] : { devices: 0, departures: 0 };
    const left = round.departures - before.departures;
    return [{ ...at(round, round.devices - before.devices + left), bad: -left }];
  });
  return chart(say("chart.joined-left"), points, {
    unit: say("unit.devices"),
    whole: true,
    meanings: [
      ["chart-bar", say("chart.joined")],
      ["chart-bar bad", say("chart.left")],
    ],
  });
}

/** What devices that evaluate found, with its interval; where items are rated, how far predictions are off.
 * @type {(trend: NonNullable<Overview["trend"]>, rounds: Round[]) => HTMLElement} */
export function accuracyOf(trend, rounds) {
  const published = new Map(
    rounds.filter(({ state }) => state === "folded").map((round) => [round.version + 1, round.ended ?? null]),
  );
  const isRated = trend.some(({ mae }) => mae !== undefined);
  const points = [...trend].reverse().flatMap(({ version, share, low, high, mae = share, mae_low, mae_high }) =>
    mae === undefined
      ? []
      : {
          round: version,
          time: published.get(version) ?? null,
          value: mae,
          low: mae_low ?? low,
          high: mae_high ?? high,
        },
  );
  return chart(say(isRated ? "chart.error" : "chart.accuracy"), points, {
    unit: say(isRated ? "unit.stars" : "unit.share"),
    line: true,
    within: isRated ? undefined : [0, 1],
    ofVersions: true,
    meanings: [["chart-band", say("chart.interval")]],
  });
}

/** @type {(rounds: Round[]) => HTMLElement} */
function rejected(rounds) {
  const points = rounds.map((round) =>
    at(
      round,
      Object.values(round.rejected ?? {}).reduce((sum, count) => sum + count, 0),
    ),
  );
  return chart(say("chart.rejected"), points, { unit: say("unit.uploads"), whole: true, isBad: true });
}

/** @type {(rounds: Round[]) => HTMLElement} */
function drift(rounds) {
  const points = rounds.map((round) => at(round, PER_CENT * (round.drift ?? 0)));
  return chart(say("chart.drift"), points, {
    unit: say("unit.per-cent"),
    line: true,
    limits: [{ value: PER_CENT * FAR, words: say("limit.drift", { far: number(PER_CENT * FAR) }) }],
  });
}

/** @type {(rounds: Round[]) => HTMLElement} */
function bytes(rounds) {
  const points = rounds.map((round) => at(round, (round.bytes ?? 0) / 1000));
  return chart(say("chart.bytes"), points, { unit: say("unit.kilobytes") });
}

/** @type {(rounds: Round[], limits: Overview["limits"]) => HTMLElement} */
function seconds(rounds, limits) {
  const points = rounds.map((round) => at(round, round.seconds ?? 0));
  return chart(say("chart.seconds"), points, {
    unit: say("unit.seconds"),
    line: true,
    limits: limits && [{ value: limits.deadline, words: say("limit.deadline", { count: limits.deadline }) }],
  });
}
