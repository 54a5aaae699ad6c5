/* One file with all that is the user's: the list, what was turned down, what is for later, and the record of what was sent. The page
reads it back, here or in another browser.

The record comes along so that its limits hold there too: what has left counts as left, and messages that were sent are spent. Keys and
the token stay behind: the other browser joins as a client of its own.
*/

import { Fault } from "../faults.js";

const KIND = "federank-backup";
const VERSION = 1;

/** @type {(client: Client) => object} */
export function backup({ stored, info }) {
  const { history, dismissed, later = [], ledger, rounds } = stored;
  const saved = new Date().toISOString();
  return { kind: KIND, version: VERSION, saved, from: info.name ?? "", history, dismissed, later, ledger, rounds };
}

/** @type {(content: any) => boolean} */
export const isBackup = (content) => content?.kind === KIND;

/** The changes that reading a file back makes; what is here already stays as it is.
 * @type {(client: Client, content: any) => { changes: Changes, count: number }} */
export function restored({ stored }, content) {
  /** @type {(name: string, key: string) => any[]} */
  const records = (name, key) => {
    const list = content[name];
    if (!Array.isArray(list) || !list.every((record) => typeof Object(record)[key] === "string"))
      throw new Fault(["file.damaged", { part: name }]);
    return list;
  };
  if (content.version !== VERSION) throw new Fault(["file.damaged", { part: "version" }]);
  /** @type {(list: any[], have: any[], key: string) => Record<string, any>} */
  const added = (list, have, key) => {
    const known = new Set(have.map((record) => record[key]));
    return Object.fromEntries(list.filter((record) => !known.has(record[key])).map((record) => [record[key], record]));
  };
  const history = added(records("history", "id"), stored.history, "id");
  const mine = new Set([...stored.history.map(({ id }) => id), ...Object.keys(history)]);
  const dismissed = added(records("dismissed", "id"), stored.dismissed, "id");
  for (const id of mine) delete dismissed[id];
  const waiting = new Set(["on its way", "received"]);
  const rounds = records("rounds", "ticket").map((round) =>
    waiting.has(round.outcome) ? { ...round, outcome: "unknown" } : round,
  );
  const saved = Array.isArray(content.later) ? content.later.map(String) : [];
  const later = [...new Set([...(stored.later ?? []), ...saved])];
  return {
    changes: {
      history,
      dismissed,
      ledger: added(records("ledger", "id"), stored.ledger, "id"),
      rounds: added(rounds, stored.rounds, "ticket"),
      records: { later },
    },
    count: Object.keys(history).length,
  };
}
