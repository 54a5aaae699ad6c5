/* The norm check, the device's side, as in src/federank/protocol/sums/norm_check/ (docs/norm-proof.md). */

export { add, multiply, subtract } from "./field.js";
export * from "./parameters.js";
export * from "./proving.js";
export * from "./upload.js";
