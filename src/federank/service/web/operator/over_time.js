/* What the operator sees over time: accuracy as clients measure it, reports, clients, refusals, bytes, drift, seconds.

Functions of the overview alone. What was not measured is not drawn: a discarded round has no drift, and a round that ended before its
clients were counted has none.
*/

import { number, say } from "../show/language.js";
import { chart } from "./charts.js";

/** As in deploy/alerts.yml: more than honest rounds change a model, from the tenth version on. */
const FAR = 0.3;
const PER_CENT = 100;

/** @type {(round: Round, value: number) => Point} */
const at = ({ number: round, ended }, value) => ({ round, time: ended ?? null, value });

/** @type {(overview: Overview, rounds: Round[]) => HTMLElement[]} */
export function chartsOf({ limits }, rounds) {
  const ended = rounds.filter(({ state }) => state === "aggregated" || state === "abandoned");
  const aggregated = ended.filter(({ state }) => state === "aggregated");
  /** Rounds at whose end clients were counted. */
  const counted = ended.flatMap((round) =>
    typeof round.clients === "number" ? { ...round, clients: round.clients, departures: round.departures ?? 0 } : [],
  );
  const reports = ended.map((round) => ({ ...at(round, round.reports ?? 0), bad: round.dropouts ?? 0 }));
  const rejected = ended.map((round) =>
    at(
      round,
      Object.values(round.rejected ?? {}).reduce((total, count) => total + count, 0),
    ),
  );
  const drift = aggregated.map((round) => at(round, PER_CENT * (round.drift ?? 0)));
  // How many came and went from one round's end to the next; before round 0 there was no client.
  const moves = counted.flatMap((round, index) => {
    if (!index && round.number) return [];
    const before = index ? counted[index - 1] : { clients: 0, departures: 0 };
    const left = round.departures - before.departures;
    return { ...at(round, round.clients - before.clients + left), bad: -left };
  });
  const enough = limits && { value: limits.enough, words: say("limit.enough", { count: limits.enough }) };
  const least = limits && { value: limits.minimum, words: say("limit.minimum", { count: limits.minimum }) };
  const clients = { unit: say("unit.clients"), integers: true };
  return [
    chart(say("chart.reports"), reports, {
      ...clients,
      limits: enough && least && [enough, ...(least.value < enough.value ? [least] : [])],
      meanings: [
        ["chart-bar", say("chart.reported")],
        ["chart-bar bad", say("chart.dropped")],
      ],
    }),
    chart(
      say("chart.clients"),
      counted.map((round) => at(round, round.clients)),
      { ...clients, line: true },
    ),
    chart(say("chart.joined-left"), moves, {
      ...clients,
      meanings: [
        ["chart-bar", say("chart.joined")],
        ["chart-bar bad", say("chart.left")],
      ],
    }),
    chart(say("chart.rejected"), rejected, { unit: say("unit.uploads"), integers: true, isBad: true }),
    chart(say("chart.drift"), drift, {
      unit: say("unit.per-cent"),
      line: true,
      limits: [{ value: PER_CENT * FAR, words: say("limit.drift", { far: number(PER_CENT * FAR) }) }],
    }),
    chart(
      say("chart.bytes"),
      aggregated.map((round) => at(round, (round.bytes ?? 0) / 1000)),
      { unit: say("unit.kilobytes") },
    ),
    chart(
      say("chart.seconds"),
      aggregated.map((round) => at(round, round.seconds ?? 0)),
      {
        unit: say("unit.seconds"),
        line: true,
        limits: limits && [{ value: limits.deadline, words: say("limit.deadline", { count: limits.deadline }) }],
      },
    ),
  ];
}

/** What clients that evaluate have measured, with its interval; where items are rated, how far predictions are off.
 * @type {(trend: NonNullable<Overview["trend"]>, rounds: Round[]) => HTMLElement} */
export function accuracyOf(trend, rounds) {
  const aggregated = rounds.filter(({ state }) => state === "aggregated");
  const published = new Map(aggregated.map((round) => [round.version + 1, round.ended ?? null]));
  const isRated = trend.some(({ mae }) => mae !== undefined);
  const points = trend.toReversed().flatMap(({ version, share, low, high, mae = share, mae_low, mae_high }) => {
    const when = { round: version, time: published.get(version) ?? null };
    return mae === undefined ? [] : { ...when, value: mae, low: mae_low ?? low, high: mae_high ?? high };
  });
  return chart(say(isRated ? "chart.error" : "chart.accuracy"), points, {
    unit: say(isRated ? "unit.stars" : "unit.share"),
    line: true,
    within: isRated ? undefined : [0, 1],
    ofVersions: true,
    meanings: [["chart-band", say("chart.interval")]],
  });
}
