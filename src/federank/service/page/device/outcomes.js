/* What became of messages that no single server can read: asked of the leader, told to the owner, once each.

A receipt says that a message was stored; whether it counts shows only when both servers have looked at it. One that is left out
stays spent: it has left, and the record keeps it. The twin of this file is service/device/outcomes.py.
*/

import { NoAnswer, Refused } from "./requests/client.js";
import { fetchOutcome, isSummed } from "./requests/federation.js";
import { write } from "./store.js";

/** @import { Key, Said } from "../faults.js" */
/** @import { Device } from "./device.js" */
/** @import { Say } from "./life.js" */
/** @import { KeptRound } from "./store.js" */

/** Why messages are left out, by the server's word for it.
 * @type {Record<string, Key>} */
const REASONS = {
  "too-loud": "left-out.too-loud",
  unopened: "left-out.unopened",
  copied: "left-out.copied",
  malformed: "left-out.malformed",
  abandoned: "left-out.abandoned",
};

/** @type {(told: { outcome: string, message: string }) => Said} */
const whyOf = ({ outcome, message }) => (Object.hasOwn(REASONS, outcome) ? [REASONS[outcome]] : message);

/** Ask about every message whose outcome is not known yet; a server that is away is asked another time.
 * @type {(device: Device, token: string, signal: AbortSignal, say: Say) => Promise<void>} */
export async function askOutcomes(device, token, signal, say) {
  if (!isSummed(device.facts)) return;
  for (const round of device.kept.rounds.filter(({ outcome, settled }) => outcome === "received" && !settled)) {
    let told;
    try {
      told = await fetchOutcome(token, round.ticket, signal);
    } catch (fault) {
      if (fault instanceof NoAnswer) return;
      if (!(fault instanceof Refused)) throw fault;
      if (fault.status !== 404) return; // whatever it is, the next request for work meets it too
      told = { outcome: "unknown", message: "" };
    }
    if (told.outcome === "waiting") continue;
    /** @type {Partial<KeptRound>} */
    const became = told.message ? { outcome: "not used", why: whyOf(told) } : {};
    const rounds = { [round.ticket]: { ...round, ...became, settled: true } };
    await write(device.database, { rounds }, { device: device.kept.identity?.device });
    if (became.why) say(["doing.left-out", { round: String(round.round), why: became.why }], "sent");
  }
  await device.reload();
}
