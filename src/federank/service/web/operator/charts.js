/* Charts of rounds, for the operator: an axis with its unit, clock time below, and the limits that a federation has set itself.

Rounds stand side by side in their order, however long each took, so that a busy minute stays readable; the clock says when.
*/

import { drawn, element } from "../show/elements.js";
import { clock, say, short } from "../show/language.js";

/** A value of a round; with a second, bad kind on top or (negative) below, or with the interval that it lies in.
 * @typedef {{ round: number, time: number | null, value: number, bad?: number, low?: number, high?: number }} Point */

/** @typedef {{ value: number, words: string }} Limit */

/** How a chart is drawn: bars or a line; what its axis counts; how far the axis may reach; whether points are of versions
 * and not of rounds; whether bars are bad themselves; what the kinds mean.
 * @typedef {{ line?: boolean, unit: string, integers?: boolean, within?: [number, number], limits?: Limit[],
 *   ofVersions?: boolean, isBad?: boolean, meanings?: [kind: string, words: string][] }} Drawing */

const WIDTH = 330;
const HEIGHT = 178;
const LEFT = 44;
const TOP = 24;
const FLOOR = HEIGHT - 36;
/** Spans of time, in seconds: above the one a day must be said, below the other minutes are not enough. */
const LONG = 20 * 3600;
const SHORT = 300;
const STEPS = [1, 2, 5, 10];

/** @type {(low: number, high: number, integers: boolean) => number[]} */
function ticks(low, high, integers) {
  const rough = (high - low || 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(integers ? 1 : 0, power * (STEPS.find((times) => times * power >= rough * 0.999) ?? 10));
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** @type {(x: number, y: number, words: string, anchor?: string) => SVGElement} */
const text = (x, y, words, anchor = "start") =>
  drawn("text", { class: "chart-text", x, y, "text-anchor": anchor }, words);

/** @type {(y: number, kind: string) => SVGElement} */
const ruled = (y, kind) => drawn("line", { class: kind, x1: LEFT, x2: WIDTH, y1: y, y2: y });

/** @type {(title: string, points: Point[], how: Drawing) => HTMLElement} */
export function chart(title, points, how) {
  const figure = element("figure", {}, element("figcaption", {}, element("strong", {}, title)));
  if (!points.length) {
    figure.append(element("p", { class: "quiet" }, say("nothing-yet")));
    return figure;
  }
  const { line = false, unit, integers = false, within, limits = [], meanings = [] } = how;
  /** @type {(value: number) => number} */
  const held = (value) => (within ? Math.min(within[1], Math.max(within[0], value)) : value);
  const shown = points.flatMap(({ value, bad = 0, low = value, high = value }) =>
    [0, value, value + Math.max(0, bad), Math.min(0, bad), low, high].map(held),
  );
  const reached = [...shown, ...limits.map(({ value }) => value)];
  const lines = within ? ticks(...within, false) : ticks(Math.min(...reached), Math.max(...reached), integers);
  const [lowest, highest] = [lines[0], lines[lines.length - 1]];
  /** @type {(index: number) => number} */
  const across = (index) => LEFT + (index + 0.5) * ((WIDTH - LEFT) / points.length);
  /** @type {(value: number) => number} */
  const up = (value) => FLOOR - ((held(value) - lowest) / (highest - lowest)) * (FLOOR - TOP);
  figure.append(
    drawn(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": inWords(title, points, how) },
      text(0, 11, unit),
      ...lines.flatMap((value) => [
        ruled(up(value), value ? "chart-grid" : "chart-axis"),
        text(LEFT - 5, up(value) + 4, short(value), "end"),
      ]),
      ...(line ? curve(points, across, up) : bars(points, across, up, how.isBad)),
      ...limits.map(({ value }) => ruled(up(value), "chart-limit")),
      ...whenOf(points, across, how.ofVersions ? "chart.version" : "chart.round"),
    ),
  );
  const samples = [...meanings, ...limits.map(({ words }) => /** @type {[string, string]} */ (["chart-limit", words]))];
  if (samples.length) figure.append(meaningsOf(samples));
  return figure;
}

/** @typedef {(value: number) => number} Place */

/** @type {(points: Point[], across: Place, up: Place, isBad?: boolean) => SVGElement[]} */
function bars(points, across, up, isBad = false) {
  const wide = Math.max(1, Math.min(24, ((WIDTH - LEFT) / points.length) * 0.7));
  /** @type {(index: number, from: number, to: number, kind: string) => SVGElement} */
  const bar = (index, from, to, kind) => {
    const y = Math.min(up(from), up(to));
    const height = Math.abs(up(from) - up(to));
    return drawn("rect", { class: kind, x: across(index) - wide / 2, y, width: wide, height });
  };
  return points.flatMap(({ value, bad = 0 }, index) => [
    bar(index, 0, value, isBad ? "chart-bar bad" : "chart-bar"),
    bad < 0 ? bar(index, 0, bad, "chart-bar bad") : bar(index, value, value + bad, "chart-bar bad"),
  ]);
}

/** @type {(points: Point[], across: Place, up: Place) => SVGElement[]} */
function curve(points, across, up) {
  /** @type {(values: number[]) => string[]} */
  const along = (values) => values.map((value, index) => `${across(index)},${up(value)}`);
  const middle = points.map(({ value }) => value);
  const lows = along(points.map(({ value, low = value }) => low));
  const highs = along(points.map(({ value, high = value }) => high));
  return [
    drawn("polygon", { class: "chart-band", points: [...lows, ...highs.reverse()].join(" ") }),
    drawn("polyline", { class: "chart-line", points: along(middle).join(" ") }),
    ...middle.map((value, index) =>
      drawn("circle", { class: "chart-dot", cx: across(index), cy: up(value), r: points.length > 40 ? 1 : 2.5 }),
    ),
  ];
}

/** The first, the middle and the last round: when each ended, where that is known, and its number.
 * @type {(points: Point[], across: Place, name: Key) => SVGElement[]} */
function whenOf(points, across, name) {
  const last = points.length - 1;
  const places = [...new Set(last > 3 ? [0, Math.floor(last / 2), last] : [0, last])];
  const times = points.flatMap(({ time }) => (time === null ? [] : [time]));
  const span = Math.max(...times) - Math.min(...times);
  const detail = span > LONG ? "day" : span < SHORT ? "second" : undefined;
  return places.flatMap((place) => {
    const { round, time } = points[place];
    const anchor = last === 0 ? "middle" : place === 0 ? "start" : place === last ? "end" : "middle";
    const x = last === 0 ? across(0) : place === 0 ? LEFT : place === last ? WIDTH : across(place);
    const named = place === 0 ? say(name, { number: String(round) }) : String(round);
    return [
      text(x, HEIGHT - 20, time === null ? "–" : clock(time, detail), anchor),
      text(x, HEIGHT - 5, named, anchor),
    ];
  });
}

/** @type {(samples: [kind: string, words: string][]) => HTMLElement} */
function meaningsOf(samples) {
  /** @type {(kind: string) => SVGElement} */
  const sample = (kind) =>
    kind === "chart-limit"
      ? drawn("line", { class: kind, x1: 0, x2: 14, y1: 6, y2: 6 })
      : drawn("rect", { class: kind, x: 1, y: 1, width: 10, height: 10 });
  return element(
    "ul",
    { class: "legend" },
    ...samples.map(([kind, words]) =>
      element("li", {}, drawn("svg", { width: 14, height: 12, "aria-hidden": "true" }, sample(kind)), words),
    ),
  );
}

/** @type {(title: string, points: Point[], how: Drawing) => string} */
function inWords(title, points, { unit, meanings = [] }) {
  const latest = points[points.length - 1];
  /** @type {(value: number) => string} */
  const measured = (value) => say("chart.measured", { value: short(value), unit });
  const words = say("chart.words", {
    title,
    count: points.length,
    latest: measured(latest.value),
    highest: measured(Math.max(...points.map(({ value }) => value))),
  });
  const bad = meanings.find(([kind]) => kind === "chart-bar bad");
  if (!bad) return words;
  const all = points.reduce((sum, point) => sum + Math.abs(point.bad ?? 0), 0);
  return say("chart.words-bad", { words, meaning: bad[1], bad: all });
}
