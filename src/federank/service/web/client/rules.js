/* The rules that every device keeps, whatever it is written in: service/client/rules.py has the same, and a test
compares them.

They say how much of a server's answers a device takes, how long it waits, and how often it tries again. What the protocol
itself fixes (draws, steps, messages) is in federation/ and methods/.
*/

export const API = 1;
export const METHODS = ["fpl", "frugal", "pmf"];
export const SUMMED_METHODS = ["frugal", "pmf"]; // where no single server may read a message

// What an answer may hold.
export const MOST_ITEMS = 10_000_000;
export const MOST_FACTORS = 1024;
export const MOST_TRIPLES = 1_000_000;
export const MOST_PASSES = 10_000;
export const MOST_MESSAGES = 1000; // a promise of more would be none
export const MOST_SUPPORT = 10_000_000; // users that an item may need
export const MOST_ROUND = 2 ** 32 - 1;
export const MOST_VERSION = 10 ** 15 - 1;
export const LONGEST_TEXT = 512; // of a ticket, a token, a digest
export const MOST_SMALL_BYTES = 2 ** 20; // of any answer that is neither a model nor a catalogue
export const MOST_CATALOGUE_BYTES = 256 * 2 ** 20;
export const MOST_OLDER_OFFERS = 10; // in a row: one of the server's workers may lag

// Seconds.
export const LONG_POLL = 25;
export const BETWEEN_POLLS = 1;
export const FIRST_BACKOFF = 0.5;
export const LONGEST_BACKOFF = 60;
export const FIRST_WAIT = 30; // after an upload was discarded with its round
export const LONGEST_WAIT = 3600; // every further discarded round doubles the wait, up to this
export const MOST_PERIODS = 8; // with an upload period, waits begin with one period and grow up to this many
export const LONGEST_PERIOD = 366 * 86_400; // longest upload period that a device accepts
export const LONGEST_RETRY_AFTER = 3600;
