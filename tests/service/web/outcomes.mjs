/* How long the page waits: `node outcomes.mjs OUTCOMES` is asked {rounds, now, period}, and answers the milliseconds before the next
upload may leave, and whether the client waits for a round to end. */

import { converse } from "./conversing.mjs";

const { isWaiting, waitAfter } = await import(process.argv[2]);

await converse(({ rounds, now, period }) => ({ wait: waitAfter(rounds, now, period), isWaiting: isWaiting(rounds) }));
