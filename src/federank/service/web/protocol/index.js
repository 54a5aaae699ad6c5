/* The protocol of a device, as in src/federank/protocol/ and under the same names, in JavaScript's spelling.

    draws                every random choice, as a function of (seed, user, round, counter)
    policy               what the owner allows to leave: the outward profile
    wire                 the one format of messages, and how strictly it is read
    messages             Broadcast and Update, where pairs are learnt
    ledger               what has left this device
    pairs/computation    pairs, the step of the own vector, item gradients
    pairs/transmission   the Update: what the owner lets the server see of them
    pairs/home           the vector that recommendations come from; it takes no part in rounds
    squares/             the same steps where squares are learnt, from a handful of messages in a life
    ratings/             the same steps where ratings are learnt
    solving              systems of equations, for squares and ratings
    sums/                messages that no single server can open; loaded where a federation plays them (sums/index.js)

Tests run both languages on the same seed, profile and Broadcast, and compare pairs and Updates.
*/

export * from "./draws.js";
export * from "./policies/policy.js";
export * from "./wire.js";
export * from "./messages.js";
export * from "./ledger.js";
export * from "./pairs/computation.js";
export * from "./pairs/transmission.js";
export * from "./pairs/home.js";
export * from "./squares/codec.js";
export * from "./squares/computation.js";
export * from "./squares/messages.js";
export * from "./squares/transmission.js";
export * from "./ratings/codec.js";
export * from "./ratings/computation.js";
export * from "./ratings/home.js";
export * from "./ratings/sums.js";
export * from "./ratings/virtual.js";
