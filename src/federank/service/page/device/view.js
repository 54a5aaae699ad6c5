/* The view: what the page may show of the device, as plain values. */

import { holds } from "../protocol/draws.js";
import { disclosed } from "../protocol/ledger.js";
import { decoyRate } from "../protocol/policy.js";
import { hurdleOf } from "./life.js";
import { LONGEST_TEXT } from "./rules.js";

/** @import { Device } from "./device.js" */
/** @import { Choice, KeptEntry, KeptRound } from "./store.js" */

/** What items are called, one and many.
 * @typedef {{ one: string, many: string }} Noun */

/** One item, as the page shows it.
 * @typedef {{ id: string, title: string, categories: string[], has: boolean, neverSelf: boolean,
 *   neverCategory: string | null }} ShownItem */

/** An item of the person's own list, and where it is or may go.
 * @typedef {ShownItem & { asDecoy: boolean, leftAsDecoy: boolean, how?: string, at: number, mayLeave: boolean,
 *   left: boolean, waits: boolean }} OwnItem */

/** What the rounds are doing, in a sentence and in a word.
 * @typedef {{ says: string, state: string }} Progress */

/** Everything the page shows, except search results, recommendations and guesses, which it asks for.
 * @typedef {object} View
 * @property {{ name?: string, description: string, items: number, noun: Noun, suggested: any, sharing: string[] }} federation
 * @property {string | null} notice
 * @property {number | null} version
 * @property {boolean} fresh whether the model has learnt from nobody yet
 * @property {{ made: number, most: number } | null} messages of this device's life, where they are counted
 * @property {{ name: string, count: number }[]} categories
 * @property {OwnItem[]} history
 * @property {number} dismissed
 * @property {number} missing
 * @property {Choice} choice
 * @property {boolean} chosen
 * @property {{ before: number, ever: number, mayLeave: number, of: number, never: number, decoys: number,
 *   decoyRate: number }} sharing
 * @property {string | null} hurdle
 * @property {boolean} taking
 * @property {Progress} progress
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
    neverSelf: neverIds.includes(id),
    neverCategory: marked ?? null,
  };
}

/** @type {(item: ShownItem) => boolean} */
const isNever = ({ neverSelf, neverCategory }) => neverSelf || neverCategory !== null;

/** What the catalogue's items are called: places, films; items where the federation does not say.
 * @type {(noun: any) => Noun} */
function nounOf(noun) {
  /** @type {(word: unknown) => boolean} */
  const isWord = (word) => typeof word === "string" && word.length > 0 && word.length <= 30;
  return isWord(noun?.one) && isWord(noun?.many) ? { one: noun.one, many: noun.many } : { one: "item", many: "items" };
}

/** How things stand.
 * @type {(device: Device, progress: Progress) => Promise<View>} */
export async function viewOf(device, progress) {
  const outward = await device.outward({ withWaiting: true });
  const real = new Set(outward.profile.filter((_, index) => outward.real[index] && outward.allowed[index]));
  const decoys = new Set(outward.profile.filter((_, index) => !outward.real[index]));
  const { waiting } = device;
  const kept = new Map(device.kept.history.map((owned) => [owned.id, owned]));
  const history = Array.from(device.history, (number) => {
    const entry = device.entries.get(number);
    const item = described(device, number);
    // What must never be shared answers, in deniable sharing, as if its owner did not have it: sometimes as a decoy.
    const decoy = { asDecoy: decoys.has(number), leftAsDecoy: entry?.real === false };
    return {
      ...item,
      ...decoy,
      how: kept.get(item.id)?.how,
      at: kept.get(item.id)?.at ?? 0,
      mayLeave: real.has(number),
      left: entry?.real === true,
      waits: waiting.has(item.id) && (real.has(number) || decoys.has(number)),
    };
  });
  const ledger = device.kept.ledger.map((entry) => ({ ...entry, known: device.catalogue.numberOf.has(entry.id) }));
  return {
    federation: {
      name: device.facts.name,
      description: String(device.facts.description ?? "").slice(0, LONGEST_TEXT),
      items: device.shape.items,
      sharing: device.method.sharing,
      noun: nounOf(device.facts.noun),
      suggested: device.facts.suggested_policy ?? null,
    },
    notice: device.notice,
    version: device.model.version,
    fresh: device.isFresh,
    messages: device.method.messages === null ? null : { made: device.spent, most: device.choice.messages ?? 0 },
    categories: device.catalogue.categories.map((name) => ({
      name,
      count: device.catalogue.membersOf.get(name)?.length ?? 0,
    })),
    history: history.sort((one, other) => other.at - one.at),
    dismissed: device.dismissed.length,
    missing: device.kept.history.length - device.history.length,
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
    hurdle: await hurdleOf(device),
    taking: device.kept.taking,
    progress,
    pending: device.kept.pending.length,
    disclosed: disclosed(device.entries, device.history),
    ledger: ledger.sort(
      (one, other) => other.times_liked - one.times_liked || other.times_compared - one.times_compared,
    ),
    rounds: device.kept.rounds.sort((one, other) => other.at - one.at),
  };
}
