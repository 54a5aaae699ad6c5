/* The view: what the page may show of the device, as plain values. */

import { isPlain } from "./federation.js";
import { waitAfter } from "./outcomes.js";
import { hurdleOf, isFinal } from "./participation.js";
import { LONGEST_TEXT } from "./rules.js";
import { linesOf } from "./seasons.js";
import { holds } from "../federation/rng.js";
import { decoyRate } from "../privacy/policy.js";

/** @import { Client } from "./client.js" */
/** @import { SeasonLine } from "./seasons.js" */
/** @import { Promised } from "./secure.js" */
/** @import { Choice, KeptEntry, KeptRound } from "./store.js" */
/** @import { Said } from "../faults.js" */
/** @import { Outward } from "../privacy/policy.js" */
/** @import { Noun } from "../show/language.js" */
/** @import { Scale } from "../show/stars.js" */

/** An address for others on the same network, with a code to scan in rows of 0 and 1.
 * @typedef {{ address: string, fingerprint: string | null, code: string[] }} Joining */

const MOST_MODULES = 200; // a side of a code to scan

/** One item, as the page shows it.
 * @typedef {{ id: string, title: string, year: number | null, local: Record<string, string>, categories: string[], has: boolean,
 *   later: boolean, down: string | null, rating: number | null, predicted?: { rating: number, isMean: boolean } | null }} ShownItem */

/** An item of the user's own list, and where it is or may go.
 * @typedef {ShownItem & { at: number, mayLeave: boolean, left: boolean, waits: boolean, unshown: boolean }} OwnItem */

/** What the rounds are doing, as it is said and in a word.
 * @typedef {{ says: Said, state: string }} Progress */

/** Everything the page shows, except search results, shelves and guesses, which it asks for.
 * @typedef {object} View
 * @property {{ name: string, description: string, runBy: string, language: string, translations: Record<string, any>, items: number, noun: Noun, seen: string | null, joining: Joining | null, pi: number, scale: Scale | null }} federation
 * @property {Said | null} notice
 * @property {number | null} version
 * @property {boolean} fresh whether the model has learnt from nobody yet
 * @property {{ made: number, received: number, released: number, most: number } | null} messages of this season, where they
 *   are counted; those that were released left in discarded rounds, and do not count
 * @property {boolean} plain whether the server reads messages
 * @property {Promised | null} promised where it does not: who the two servers are, and what their noise is worth
 * @property {{ seasons: SeasonLine[], total: SeasonLine } | null} seasons where this device was in more than one
 * @property {{ name: string, count: number }[]} categories
 * @property {number[]} decades
 * @property {OwnItem[]} history
 * @property {ShownItem[]} down what was turned down, or is known already
 * @property {ShownItem[]} later
 * @property {number} missing
 * @property {Choice} choice
 * @property {number} decoys items in a message that are not the user's, on average
 * @property {Said | null} hurdle
 * @property {boolean} sealed whether nothing leaves any more, whatever its owner chooses
 * @property {boolean} taking
 * @property {number | null} hold until when what may leave for the first time waits
 * @property {number} next when the next upload may leave
 * @property {number} period seconds between two uploads
 * @property {Progress} progress
 * @property {boolean} helperAway whether the leader gets no answer from the helper, as of the last status
 * @property {number} pending
 * @property {(KeptEntry & { known: boolean })[]} ledger
 * @property {KeptRound[]} rounds */

/** One item, as the page shows it.
 * @type {(client: Client, number: number) => ShownItem} */
export function described(client, number) {
  const { id, title, year, local, categories } = client.catalogue.items[number];
  const down = client.kept.dismissed.find((owned) => owned.id === id);
  return {
    id,
    title,
    year,
    local,
    categories,
    has: holds(client.history, number),
    later: (client.kept.later ?? []).includes(id),
    down: down ? (down.how ?? "no") : null,
    rating: client.starOf(number),
  };
}

/** @type {(word: unknown) => boolean} */
const isWord = (word) => typeof word === "string" && word.length > 0 && word.length <= 30;

/** What the catalogue's items are called: places, films; items where the federation does not say.
 * @type {(noun: any) => Noun} */
function nounOf(noun) {
  return isWord(noun?.one) && isWord(noun?.many) ? { one: noun.one, many: noun.many } : { one: "item", many: "items" };
}

/** How somebody on the same network joins, where the federation says so: what it says is shown, and goes nowhere.
 * @type {(joining: any) => Joining | null} */
function joiningOf(joining) {
  const { address, fingerprint = null, code } = Object(joining);
  /** @type {(text: unknown) => boolean} */
  const isText = (text) => typeof text === "string" && text.length <= LONGEST_TEXT;
  /** @type {(row: unknown) => boolean} */
  const isRow = (row) => typeof row === "string" && row.length === code.length && /^[01]+$/.test(row);
  const isCode = Array.isArray(code) && code.length > 0 && code.length <= MOST_MODULES && code.every(isRow);
  return isText(address) && (fingerprint === null || isText(fingerprint)) && isCode
    ? { address, fingerprint, code }
    : null;
}

/** @type {(round: KeptRound) => boolean} */
const hasArrived = ({ outcome, settled }) =>
  ["received", "aggregated", "discarded", "left out", "unknown"].includes(outcome) || settled === true;

/** @type {(client: Client) => View["messages"]} */
function messagesOf({ method, seasonRounds, spent, choice }) {
  if (method.messages === null) return null;
  const received = seasonRounds.filter((round) => round.number && hasArrived(round)).length;
  const released = seasonRounds.filter(({ outcome, number }) => outcome === "discarded" && !number).length;
  return { made: spent, received, released, most: choice.messages ?? 0 };
}

/** @type {(client: Client) => Promise<Promised | null>} */
async function promisedTo({ met, kept, choice }) {
  const charter = kept.sums ?? met.charter;
  if (!charter || !met.charter) return null;
  return (await import("./secure.js")).promisedBy(charter, choice.messages ?? charter.messages, self.location.href);
}

/** What this device takes part with once nothing leaves any more.
 * @type {Outward} */
const NOTHING = { profile: new Int32Array(0), real: [], allowed: [], lifelong: true };

/** How things stand.
 * @type {(client: Client, progress: Progress) => Promise<View>} */
export async function viewOf(client, progress) {
  const hurdle = await hurdleOf(client);
  const sealed = isFinal(hurdle);
  const outward = sealed ? NOTHING : await client.outward({ withWaiting: true });
  const real = new Set(outward.profile.filter((_, index) => outward.real[index] && outward.allowed[index]));
  const { waiting, facts, method, choice } = client;
  const { numberOf, items } = client.catalogue;
  const kept = new Map(client.kept.history.map((owned) => [owned.id, owned]));
  const history = Array.from(client.history, (number) => {
    const item = described(client, number);
    const mayLeave = real.has(number);
    return {
      ...item,
      at: kept.get(item.id)?.at ?? 0,
      mayLeave,
      left: client.entries.get(number)?.real === true,
      unshown: waiting.has(item.id) && !kept.get(item.id)?.shown,
      waits: waiting.has(item.id) && mayLeave,
    };
  });
  const held = client.kept.history.filter(({ id }) => waiting.has(id) && real.has(numberOf.get(id) ?? -1));
  const hold = Math.max(0, ...held.map((owned) => client.waitsUntil(owned)));
  /** @type {(ids: string[]) => ShownItem[]} */
  const listed = (ids) => ids.flatMap((id) => numberOf.get(id) ?? []).map((number) => described(client, number));
  /** @type {(text: unknown) => string} */
  const short = (text) => String(text ?? "").slice(0, LONGEST_TEXT);
  return {
    federation: {
      name: short(facts.name),
      description: short(facts.description),
      runBy: short(facts.run_by),
      language: short(facts.language),
      translations: Object(facts.translations),
      items: items.length,
      scale: method.scale ?? null,
      noun: nounOf(facts.noun),
      joining: joiningOf(facts.joining),
      seen: isWord(facts.seen) ? facts.seen : null,
      pi: Number(facts.suggested_policy?.pi) || 0,
    },
    notice: client.notice,
    version: client.model.version,
    fresh: client.isFresh,
    messages: messagesOf(client),
    plain: isPlain(facts),
    promised: await promisedTo(client),
    seasons: linesOf(client),
    categories: client.catalogue.categories.map((name) => ({
      name,
      count: client.catalogue.membersOf.get(name)?.length ?? 0,
    })),
    decades: client.catalogue.decades,
    history: history.sort((one, other) => other.at - one.at),
    down: listed(client.kept.dismissed.toSorted((one, other) => other.at - one.at).map(({ id }) => id)),
    later: listed(client.kept.later ?? []),
    missing: client.kept.history.length - client.history.length,
    choice,
    decoys: method.scale ? (choice.rho ?? 0) * real.size : Math.round(decoyRate(choice) * items.length),
    hurdle,
    sealed,
    taking: client.kept.taking,
    hold: hold > 0 ? hold : null,
    next: Date.now() + waitAfter(client.kept.rounds, Date.now(), client.period),
    period: client.period,
    progress,
    helperAway: client.helperAway,
    pending: client.kept.pending.length,
    ledger: client.kept.ledger.map((entry) => ({ ...entry, known: numberOf.has(entry.id) })),
    rounds: client.kept.rounds.sort((one, other) => other.at - one.at),
  };
}
