/* The view: what the page may show of the device, as plain values. */

import { isPlain } from "./federation.js";
import { waitAfter } from "./outcomes.js";
import { blockedBy, isFinal } from "./participation.js";
import { LONGEST_TEXT } from "../schemas.js";
import { linesOf } from "./seasons.js";
import { holds } from "../federation/rng.js";
import { decoyRate } from "../privacy/policy.js";

const ITEM = { one: "item", many: "items" };

/** Everything the page shows, except search results, shelves and guesses, which it asks for.
 * @typedef {Awaited<ReturnType<typeof viewOf>>} View */

/** @type {(client: Client, number: number) => ShownItem} */
export function described(client, number) {
  const { id, title, year, local, categories } = client.catalogue.items[number];
  return {
    id,
    title,
    year,
    local,
    lang: String(client.info.language ?? ""),
    categories,
    has: holds(client.history, number),
    later: (client.stored.later ?? []).includes(id),
    rating: client.stars.get(number) ?? null,
  };
}

/** What the catalogue's items are called: places, films; items where the federation does not say.
 * @type {(noun: any) => Noun} */
const nounOf = (noun) => (noun?.one && noun.many ? { one: String(noun.one), many: String(noun.many) } : ITEM);

/** @type {(client: Client) => Promise<Guarantee | null>} */
async function guaranteeFor({ met, stored, choice }) {
  const config = stored.sums ?? met.config;
  if (!config || !met.config) return null;
  return (await import("./secure.js")).guaranteeOf(config, choice.messages ?? config.messages, self.location.href);
}

/** @type {SharedProfile} */
const NOTHING = { profile: new Int32Array(0), real: [], allowed: [], lifelong: true };

/** How things stand.
 * @param {Client} client
 * @param {Progress} progress */
export async function viewOf(client, progress) {
  const blocked = await blockedBy(client);
  const sealed = isFinal(blocked);
  const sharedProfile = sealed ? NOTHING : await client.sharedProfile({ withWaiting: true });
  const real = new Set(
    sharedProfile.profile.filter((_, index) => sharedProfile.real[index] && sharedProfile.allowed[index]),
  );
  const { waiting, info, method, choice } = client;
  const { numberOf, items } = client.catalogue;
  const stored = new Map(client.stored.history.map((owned) => [owned.id, owned]));
  /** @type {OwnItem[]} */
  const history = Array.from(client.history, (number) => {
    const item = described(client, number);
    const mayLeave = real.has(number);
    return {
      ...item,
      at: stored.get(item.id)?.at ?? 0,
      mayLeave,
      left: client.entries.get(number)?.real === true,
      unshown: waiting.has(item.id) && !stored.get(item.id)?.shown,
      waits: waiting.has(item.id) && mayLeave,
    };
  });
  const held = client.stored.history.filter(({ id }) => waiting.has(id) && real.has(numberOf.get(id) ?? -1));
  const hold = Math.max(0, ...held.map((owned) => client.waitsUntil(owned)));
  /** @type {(ids: string[]) => ShownItem[]} */
  const listed = (ids) => ids.flatMap((id) => numberOf.get(id) ?? []).map((number) => described(client, number));
  /** @type {(text: unknown) => string} */
  const short = (text) => String(text ?? "").slice(0, LONGEST_TEXT);
  return {
    federation: {
      name: short(info.name),
      description: short(info.description),
      runBy: short(info.run_by),
      language: short(info.language),
      translations: /** @type {Record<string, any>} */ (Object(info.translations)),
      items: items.length,
      scale: method.scale ?? null,
      noun: nounOf(info.noun),
      joining: /** @type {Joining | null} */ (info.joining ?? null), // the operator's own, as this page is
      seen: short(info.seen) || null,
      pi: Number(info.suggested_policy?.pi) || 0,
    },
    notice: client.notice,
    version: client.model.version,
    fresh: client.isFresh, // whether the model has learnt from no client yet
    // Of this season, where they are counted.
    messages: method.messages === null ? null : { made: client.spent, most: choice.messages ?? 0 },
    plain: isPlain(info), // whether the server reads messages
    guarantee: await guaranteeFor(client),
    seasons: linesOf(client),
    categories: client.catalogue.categories.map((name) => {
      return { name, count: client.catalogue.membersOf.get(name)?.length ?? 0 };
    }),
    decades: client.catalogue.decades,
    history: history.sort((one, other) => other.at - one.at),
    down: listed(client.stored.dismissed.toSorted((one, other) => other.at - one.at).map(({ id }) => id)),
    later: listed(client.stored.later ?? []),
    missing: client.stored.history.length - client.history.length,
    choice,
    decoys: method.scale ? (choice.rho ?? 0) * real.size : Math.round(decoyRate(choice) * items.length),
    blocked,
    sealed, // nothing leaves any more, whatever its owner chooses
    taking: client.stored.taking,
    hold: hold > 0 ? hold : null,
    next: Date.now() + waitAfter(client.stored.rounds, Date.now(), client.period),
    period: client.period,
    progress,
    helperAway: client.helperAway,
    pending: client.stored.pending.length,
    ledger: client.stored.ledger,
    rounds: client.stored.rounds.sort((one, other) => other.at - one.at),
  };
}
