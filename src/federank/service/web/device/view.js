/* The view: what the page may show of the device, as plain values. */

import { holds } from "../protocol/draws.js";
import { disclosed } from "../protocol/ledger.js";
import { decoyRate } from "../protocol/policies/policy.js";
import { hurdleOf, isFinal } from "./life.js";
import { isPlain } from "./requests/federation.js";
import { LONGEST_TEXT } from "./rules.js";

/** @import { Said } from "../faults.js" */
/** @import { Pairs } from "../protocol/pairs/computation.js" */
/** @import { Outward } from "../protocol/policies/policy.js" */
/** @import { Noun } from "../show/language.js" */
/** @import { Scale } from "../show/stars.js" */
/** @import { Device } from "./device.js" */
/** @import { Promised } from "./requests/sums.js" */
/** @import { Choice, KeptEntry, KeptRound } from "./store.js" */

/** An address for others on the same network, with a code to scan in rows of 0 and 1.
 * @typedef {{ address: string, fingerprint: string | null, code: string[] }} Joining */

const MOST_MODULES = 200; // a side of a code to scan

/** One item, as the page shows it.
 * @typedef {{ id: string, title: string, categories: string[], has: boolean, neverSelf: boolean,
 *   neverCategory: string | null, rating: number | null,
 *   predicted?: { rating: number, isMean: boolean } | null }} ShownItem */

/** An item of the person's own list, and where it is or may go.
 * @typedef {ShownItem & { asDecoy: boolean, leftAsDecoy: boolean, how?: string, at: number, mayLeave: boolean,
 *   left: boolean, waits: boolean, unshown: boolean }} OwnItem */

/** What the rounds are doing, as it is said and in a word.
 * @typedef {{ says: Said, state: string }} Progress */

/** Everything the page shows, except search results, recommendations and guesses, which it asks for.
 * @typedef {object} View
 * @property {{ name?: string, description: string, runBy: string, items: number, noun: Noun, seen: string | null, joining: Joining | null, suggested: any, sharing: string[], scale: Scale | null, namesRated: boolean, pairs: Pairs | null }} federation
 * @property {Said | null} notice
 * @property {number | null} version
 * @property {boolean} fresh whether the model has learnt from nobody yet
 * @property {{ made: number, received: number, released: number, most: number } | null} messages of this device's life, where they are
 *   counted; those that were released left in discarded rounds, and do not count
 * @property {boolean} plain whether the server reads messages
 * @property {Promised | null} promised where it does not: who the two servers are, and what their noise is worth
 * @property {{ name: string, count: number }[]} categories
 * @property {OwnItem[]} history
 * @property {number} dismissed
 * @property {number} missing
 * @property {number} variety of recommendations: 0 none, below 1
 * @property {Choice} choice
 * @property {boolean} chosen
 * @property {{ before: number, ever: number, mayLeave: number, of: number, never: number, decoys: number,
 *   decoyRate: number }} sharing
 * @property {Said | null} hurdle
 * @property {boolean} sealed whether nothing leaves any more, whatever its owner chooses
 * @property {boolean} taking
 * @property {Progress} progress
 * @property {boolean} helperAway whether the leader gets no answer from the helper, as of the last status
 * @property {number} pending
 * @property {number} disclosed
 * @property {(KeptEntry & { known: boolean })[]} ledger
 * @property {KeptRound[]} rounds */

/** One item, as the page shows it.
 * @type {(device: Device, number: number) => ShownItem} */
export function described(device, number) {
  const { id, title, categories } = device.catalogue.items[number];
  const { neverIds, neverCategories } = device.choice;
  const marked = categories.find((category) => neverCategories.includes(category));
  return {
    id,
    title,
    categories,
    has: holds(device.history, number),
    rating: device.starOf(number),
    neverSelf: neverIds.includes(id),
    neverCategory: marked ?? null,
  };
}

/** @type {(item: ShownItem) => boolean} */
const isNever = ({ neverSelf, neverCategory }) => neverSelf || neverCategory !== null;

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

/** @type {(device: Device) => View["messages"]} */
function messagesOf({ method, kept, spent, choice }) {
  if (method.messages === null) return null;
  const received = kept.rounds.filter((round) => round.number && hasArrived(round)).length;
  const released = kept.rounds.filter(({ outcome, number }) => outcome === "discarded" && !number).length;
  return { made: spent, received, released, most: choice.messages ?? 0 };
}

/** @type {(device: Device) => Promise<Promised | null>} */
async function promisedTo({ met, kept, choice }) {
  const charter = kept.sums ?? met.charter;
  if (!charter || !met.charter) return null;
  return (await import("./requests/sums.js")).promisedBy(
    charter,
    choice.messages ?? charter.messages,
    self.location.href,
  );
}

/** What this device takes part with once nothing leaves any more.
 * @type {Outward} */
const NOTHING = { profile: new Int32Array(0), real: [], allowed: [], lifelong: true };

/** How things stand.
 * @type {(device: Device, progress: Progress) => Promise<View>} */
export async function viewOf(device, progress) {
  const hurdle = await hurdleOf(device);
  const sealed = isFinal(hurdle);
  const outward = sealed ? NOTHING : await device.outward({ withWaiting: true });
  const real = new Set(outward.profile.filter((_, index) => outward.real[index] && outward.allowed[index]));
  const decoys = new Set(outward.profile.filter((_, index) => !outward.real[index]));
  const { waiting } = device;
  const kept = new Map(device.kept.history.map((owned) => [owned.id, owned]));
  const history = Array.from(device.history, (number) => {
    const entry = device.entries.get(number);
    const item = described(device, number);
    // What must never be shared answers, in randomized response, as if its owner did not have it: sometimes as a decoy.
    const decoy = { asDecoy: decoys.has(number), leftAsDecoy: entry?.real === false };
    return {
      ...item,
      ...decoy,
      how: kept.get(item.id)?.how,
      at: kept.get(item.id)?.at ?? 0,
      mayLeave: real.has(number),
      left: entry?.real === true,
      unshown: waiting.has(item.id) && !kept.get(item.id)?.shown,
      waits: waiting.has(item.id) && (real.has(number) || decoys.has(number)),
    };
  });
  const ledger = device.kept.ledger.map((entry) => ({ ...entry, known: device.catalogue.numberOf.has(entry.id) }));
  return {
    federation: {
      name: device.facts.name,
      description: String(device.facts.description ?? "").slice(0, LONGEST_TEXT),
      runBy: String(device.facts.run_by ?? "").slice(0, LONGEST_TEXT),
      items: device.shape.items,
      sharing: device.method.sharing,
      scale: device.method.scale ?? null,
      namesRated: device.method.namesRated ?? false,
      pairs: device.method.pairs ?? null,
      noun: nounOf(device.facts.noun),
      joining: joiningOf(device.facts.joining),
      seen: isWord(device.facts.seen) ? device.facts.seen : null,
      suggested: device.facts.suggested_policy ?? null,
    },
    notice: device.notice,
    version: device.model.version,
    fresh: device.isFresh,
    messages: messagesOf(device),
    plain: isPlain(device.facts),
    promised: await promisedTo(device),
    categories: device.catalogue.categories.map((name) => ({
      name,
      count: device.catalogue.membersOf.get(name)?.length ?? 0,
    })),
    history: history.sort((one, other) => other.at - one.at),
    dismissed: device.dismissed.length,
    missing: device.kept.history.length - device.history.length,
    variety: device.kept.variety ?? 0,
    choice: device.choice,
    chosen: Boolean(device.kept.policy),
    sharing: {
      before: history.filter((item) => item.left && !isNever(item)).length,
      ever: device.sent.length,
      mayLeave: real.size,
      of: device.history.length,
      never: history.filter(isNever).length,
      decoys: outward.profile.length - outward.real.filter(Boolean).length,
      decoyRate: decoyRate(device.choice),
    },
    hurdle,
    sealed,
    taking: device.kept.taking,
    progress,
    helperAway: device.helperAway,
    pending: device.kept.pending.length,
    disclosed: disclosed(device.entries, device.history),
    ledger: ledger.sort(
      (one, other) => other.times_liked - one.times_liked || other.times_compared - one.times_compared,
    ),
    rounds: device.kept.rounds.sort((one, other) => other.at - one.at),
  };
}
