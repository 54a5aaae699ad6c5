/* The protocol of a device, as in src/federank/protocol/ and under the same names, in JavaScript's spelling.

    draws          every random choice, as a function of (seed, user, round, counter)
    policy         what the owner allows to leave: the outward profile
    computation    pairs, the step of the own vector, item gradients
    transmission   the Update: what the owner lets the server see of them
    messages       Broadcast and Update on the wire
    ledger         what has left this device
    home           the vector that recommendations come from; it takes no part in rounds

Tests run both languages on the same seed, profile and Broadcast, and compare pairs and Updates.
*/

export * from "./protocol/draws.js";
export * from "./protocol/policy.js";
export * from "./protocol/computation.js";
export * from "./protocol/transmission.js";
export * from "./protocol/messages.js";
export * from "./protocol/ledger.js";
export * from "./protocol/home.js";
