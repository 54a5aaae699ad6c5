/* The view: what the page may show of the device, as plain values. */

import { hurdleOf } from "./life.js";
import { holds } from "../protocol/draws.js";
import { disclosed } from "../protocol/ledger.js";
import { decoyRate } from "../protocol/policy.js";

/** One item, as the page shows it. */
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

const isNever = ({ neverSelf, neverCategory }) => neverSelf || neverCategory !== null;

/** What the catalogue's items are called: places, films; items where the federation does not say. */
function nounOf(told) {
  const isWord = (word) => typeof word === "string" && word.length > 0 && word.length <= 30;
  return isWord(told?.one) && isWord(told?.many) ? { one: told.one, many: told.many } : { one: "item", many: "items" };
}

/** Everything the page shows, except search results, recommendations and guesses, which it asks for. */
export async function viewOf(device, progress) {
  const outward = await device.outward();
  const real = new Set(outward.profile.filter((_, place) => outward.real[place] && outward.allowed[place]));
  const decoys = new Set(outward.profile.filter((_, place) => !outward.real[place]));
  const at = new Map(device.kept.history.map((record) => [record.id, record]));
  const history = Array.from(device.history, (number) => {
    const entry = device.entries.get(number);
    const item = described(device, number);
    // What must never be shared answers, in deniable sharing, as if its owner did not have it: sometimes as a decoy.
    const decoy = { asDecoy: decoys.has(number), leftAsDecoy: entry?.real === false };
    return {
      ...item,
      ...decoy,
      how: at.get(item.id).how,
      at: at.get(item.id).at,
      mayLeave: real.has(number),
      left: entry?.real === true,
    };
  });
  const ledger = device.kept.ledger.map((entry) => ({ ...entry, known: device.catalogue.numberOf.has(entry.id) }));
  return {
    federation: {
      name: device.told.name,
      items: device.shape.items,
      factors: device.shape.factors,
      triples: device.recipe.triples,
      noun: nounOf(device.told.noun),
      suggested: device.told.suggested_policy ?? null,
    },
    notice: device.notice,
    version: device.model.version,
    categories: device.catalogue.categories.map((name) => ({
      name,
      count: device.catalogue.membersOf.get(name).length,
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
