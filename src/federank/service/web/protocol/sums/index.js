/* Sums that no single server can open: the device's side, as in src/federank/protocol/sums/ and under the same names.

norm_check/ is loaded by itself, where the charter asks for proofs.
*/

export * from "./canonical.js";
export * from "./charter.js";
export * from "./identities.js";
export * from "./masks.js";
export * from "./offer.js";
export * from "./records.js";
export * from "./rounding.js";
export * from "./sealing.js";
export * from "./upload.js";
