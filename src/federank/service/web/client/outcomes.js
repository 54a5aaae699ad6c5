/* What became of uploads: the server is asked until every round has ended, and the owner is informed once for each.

    on its way   it has no receipt yet                    aggregated   it is in the model
    received     its round has not ended                  discarded    with its round
    left out     of its round, and why                    not used     the server refused it
    held back    its owner changed their mind             unknown      the server no longer says

Until a round has ended this device sends no other upload; after a discarded round it waits, twice as long after each. A discarded or late
upload is not charged if the helper's signed record shows that no sum has it. Without that proof it stays charged: where a single server
reads uploads there is no such proof, and the server has read this one. An upload that was left out stays charged too. The twin of this
file is service/client/outcomes.py.
*/

import { fetchOutcome, isSecure } from "./federation.js";
import { Refused } from "./http.js";
import { FIRST_WAIT, LONGEST_WAIT, MOST_PERIODS } from "../schemas.js";
import { write } from "./store.js";

/** Why messages are left out, by the server's word for it. */
const LEFT_OUT = ["norm-too-large", "unopened", "copied", "malformed"];
const MOST_ASKED = 10; // the latest

/** @type {(rounds: StoredRound[]) => StoredRound[]} */
const latest = (rounds) => rounds.toSorted((one, other) => other.at - one.at);

/** @type {(rounds: StoredRound[]) => StoredRound[]} */
const unsettled = (rounds) =>
  latest(rounds)
    .slice(0, MOST_ASKED)
    .filter(({ outcome }) => outcome === "received");

/** @type {(rounds: StoredRound[]) => boolean} */
export const isWaiting = (rounds) => latest(rounds)[0]?.outcome === "received";

/** Milliseconds until the next upload may leave: one per period (in seconds), and later after rounds in a row that were discarded.
 * @type {(rounds: StoredRound[], now: number, period?: number) => number} */
export function waitAfter(rounds, now, period = 0) {
  const last = latest(rounds);
  const aggregated = last.findIndex(({ outcome }) => outcome === "aggregated");
  const discarded = last
    .slice(0, aggregated < 0 ? last.length : aggregated)
    .filter((round) => round.outcome === "discarded");
  /** @type {(since: number, seconds: number) => number} */
  const leftOf = (since, seconds) => Math.min(1000 * seconds, Math.max(0, since + 1000 * seconds - now)); // whatever a clock does
  const sinceUpload = last.length ? leftOf(last[0].at, period) : 0;
  const ended = discarded[0]?.ended;
  if (ended === undefined) return sinceUpload;
  const longest = Math.max(LONGEST_WAIT, MOST_PERIODS * period);
  const wait = Math.min(Math.max(FIRST_WAIT, period) * 2 ** Math.min(discarded.length - 1, 30), longest);
  return Math.max(sinceUpload, leftOf(ended, wait));
}

/** @type {(client: Client, token: string, signal: AbortSignal, say: Say) => Promise<void>} */
export async function askOutcomes(client, token, signal, say) {
  const open = unsettled(client.stored.rounds);
  for (const round of open) {
    const became = await becameOf(client, round, await outcomeOf(token, round.ticket, signal));
    if (!became) continue;
    const rounds = { [round.ticket]: { ...round, ...became, ended: Date.now() } };
    await write(client.database, { rounds }, { device: client.stored.identity?.device });
    if (became.why) say(["doing.waiting"], "sent");
  }
  if (open.length) await client.reload();
}

/** @type {(token: string, ticket: string, signal: AbortSignal) => Promise<Outcome>} */
async function outcomeOf(token, ticket, signal) {
  try {
    return await fetchOutcome(token, ticket, signal);
  } catch (fault) {
    if (!(fault instanceof Refused) || fault.status !== 404) throw fault;
    return { outcome: "unknown", message: "", record: "", members: "", uploads: null };
  }
}

/** What an outcome changes in the record of an upload; null while its round has not ended.
 * @type {(client: Client, round: StoredRound, answer: Outcome) => Promise<Partial<StoredRound> | null>} */
async function becameOf(client, round, { outcome, message, record, members, uploads }) {
  if (outcome === "waiting") return null;
  if (outcome === "counted") return { outcome: "aggregated", ...(uploads ? { uploads } : {}) };
  if (outcome === "unknown") return { outcome: "unknown" };
  if (outcome === "absent") return absent(client, round, record, members);
  if (outcome !== "abandoned")
    return { outcome: "left out", why: LEFT_OUT.includes(outcome) ? [`detail.${outcome}`] : message };
  if (!round.number) return { outcome: "discarded", why: ["detail.uncounted"] };
  const { sums } = client.stored;
  if (!isSecure(client.info) || !sums) return { outcome: "discarded", why: ["detail.read"] };
  const { showsNoSum } = await import("./secure.js");
  return (await showsNoSum(sums, record, round.roundConfig, round.round))
    ? { outcome: "discarded", why: ["detail.released"], number: undefined, noise: undefined }
    : { outcome: "discarded", why: ["detail.unproven"] };
}

/** What the helper's record shows of an upload that its round has ended without: too late, or discarded, and charged in neither case.
 * @type {(client: Client, round: StoredRound, record: string, members: string) => Promise<Partial<StoredRound>>} */
async function absent(client, round, record, members) {
  const { sums } = client.stored;
  if (!sums) return { outcome: "unknown" };
  const { showsAbsence, showsNoSum } = await import("./secure.js");
  const free = { number: undefined, noise: undefined };
  if (await showsNoSum(sums, record, round.roundConfig, round.round))
    return { outcome: "discarded", why: ["detail.released"], ...free };
  return (await showsAbsence(sums, record, members, round.roundConfig, round.round, round.id))
    ? { outcome: "not used", why: ["detail.late"], ...free }
    : { outcome: "unknown" };
}

/** What changes where uploads can be neither sent nor asked about any more.
 * @type {(stored: Pick<Stored, "pending" | "rounds">, why: Said) => Pick<Changes, "pending" | "rounds">} */
export function dropped({ pending, rounds }, why) {
  const unsent = Object.fromEntries(pending.map(({ ticket }) => [ticket, undefined]));
  const settled = rounds.flatMap((round) => {
    if (round.ticket in unsent) return [[round.ticket, { ...round, outcome: "not used", why }]];
    return round.outcome === "received" ? [[round.ticket, { ...round, outcome: "unknown" }]] : [];
  });
  return { pending: unsent, rounds: Object.fromEntries(settled) };
}
