/* How long the page waits: `node outcomes.mjs OUTCOMES` is asked {rounds, now}, and answers the milliseconds before the device takes
part again, and whether it waits for a round to end. */

import { converse } from "./conversing.mjs";

const { isWaiting, waitAfter } = await import(process.argv[2]);

await converse(({ rounds, now }) => ({ wait: waitAfter(rounds, now), isWaiting: isWaiting(rounds) }));
