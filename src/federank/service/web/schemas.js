/* What Python declares. Written by `python -m tests.service.web.schemas --write`; a test compares. */

export const MOST_FACTORS = 1024;
export const MOST_SUPPORT = 10000000;
export const MOST_MESSAGES = 1000;
export const API = 1;
export const METHODS = ["fpl", "frugal", "pmf"];
export const SUMMED_METHODS = ["frugal", "pmf"];
export const MOST_ITEMS = 10000000;
export const MOST_ROUND = 4294967295;
export const MOST_VERSION = 999999999999999;
export const LONGEST_TEXT = 512;
export const MOST_SMALL_BYTES = 1048576;
export const MOST_CATALOGUE_BYTES = 268435456;
export const MOST_OLDER_OFFERS = 10;
export const LONG_POLL = 25;
export const BETWEEN_POLLS = 1;
export const FIRST_BACKOFF = 0.5;
export const LONGEST_BACKOFF = 60;
export const FIRST_WAIT = 30;
export const LONGEST_WAIT = 3600;
export const MOST_PERIODS = 8;
export const LONGEST_PERIOD = 31622400;
export const LONGEST_RETRY_AFTER = 3600;
export const HOME_ROUND = 4294967295;
export const HOME_STEPS = 1000;
export const LEVELS = 127;
export const C_INT = 4096;
export const FARTHEST = 9.1;
export const LEAST_DEVIATION = 64;
export const MOST_DEVIATION = 4194304;
export const PUBLIC_BYTES = 65;
export const SIGNATURE_BYTES = 64;
export const SUITE = "DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM";
export const FORMAT = "federank sums 1";
export const RING_BITS = 32;
export const RECIPES = ["private", "spectral", "gradients"];
export const CLOCKS_APART = 600;
export const LIMITS = [64, 95, 128, 144];
export const MOST_LENGTH = 33554432;
export const RANGE_BITS = 16;

/** @type {import("./methods/registry.js").Schemas} */
// prettier-ignore
export const SETTINGS = {
  "fpl": {
    n_items: {"integer": true, "low": 2, "high": 10000000}, factors: {"integer": true, "low": 1, "high": 1024},
    seed: {"integer": true, "low": 0, "high": 4294967295}, uploads: {"choices": ["plain", "secure"]},
    uploads_per_client: {"integer": true, "low": 0, "high": 10000}, clip: {"low": 0},
    noise: {"integer": true, "low": 0}, learning_rate: {"above": 0}, user_regulariser: {"low": 0},
    positive_regulariser: {"low": 0}, negative_regulariser: {"low": 0}, initial_scale: {"above": 0},
    initial_biases: {"choices": ["normal", "zero"]}, order: {"choices": ["as-in-code", "as-printed"]},
    mask: {"choices": ["as-in-code", "as-printed"]},
    most_triples: {"integer": true, "low": 1, "high": 1000000, "open": true}, server: {"choices": ["plain", "adam"]},
    beta1: {"below": 1, "low": 0}, beta2: {"below": 1, "low": 0}, weight_decay: {"low": 0},
    triples: {"integer": true, "low": 1, "high": 1000000},
  },
  "frugal": {
    factors: {"integer": true, "low": 1, "high": 1024}, clip: {"above": 0, "open": true},
    messages: {"integer": true, "low": 1}, min_support: {"integer": true, "low": 1}, alpha: {"low": 0},
    unobserved_weight: {"low": 0, "high": 1}, activity: {"low": 0, "high": 1, "open": true},
  },
  "pmf": {
    n_items: {"integer": true, "low": 2, "high": 10000000}, factors: {"integer": true, "low": 1, "high": 1024},
    seed: {"integer": true, "low": 0, "high": 4294967295}, uploads: {"choices": ["plain", "secure"]},
    uploads_per_client: {"integer": true, "low": 0, "high": 10000}, clip: {"low": 0},
    noise: {"integer": true, "low": 0}, filling: {"choices": ["hybrid", "average", "none"]}, rho: {"low": 0},
    sampling: {"choices": ["fresh", "fixed"]}, t_predict: {"integer": true, "low": 0, "high": 10000},
    t_local: {"integer": true, "low": 0, "high": 10000}, learning_rate: {"above": 0, "open": true}, decay: {"above": 0},
    regulariser: {"low": 0}, initial_range: {"above": 0}, item_gradients: {"choices": ["before", "after"]},
    filling_start: {"choices": ["late", "early"]}, local_training: {"choices": ["copy", "own"]}, lowest: {},
    highest: {}, prior_count: {"low": 0}, first_prediction: {"choices": ["mean", "zero"]}, step: {"open": true},
  },
};

/** @type {Record<string, import("./federation/wire.js").Schema>} */
// prettier-ignore
export const MESSAGES = {
  "fpl-broadcast": {
    vectors: {"kind": "F32", "axes": ["items", "factors"]}, biases: {"kind": "F32", "axes": ["items"]},
  },
  "fpl-update": {
    items: {"kind": "I32", "axes": ["rows"], "index": true}, vectors: {"kind": "F32", "axes": ["rows", "factors"]},
    biases: {"kind": "F32", "axes": ["rows"]},
  },
  "frugal-broadcast": {
    vectors: {"kind": "F32", "axes": ["items", "factors"]}, weights: {"kind": "F32", "axes": ["items"], "minimum": 0},
    regulariser: {"kind": "F64", "axes": [1], "minimum": 0},
    ridge_starts: {"kind": "I32", "axes": ["ends"], "minimum": 0},
    ridge_items: {"kind": "I32", "axes": ["pairs"], "minimum": 0},
    ridge_codes: {"kind": "I8", "axes": ["pairs"], "minimum": -127},
    ridge_scales: {"kind": "F32", "axes": ["targets"], "minimum": 0},
  },
  "frugal-update": {
    strengths: {"kind": "F32", "axes": ["covered"]}, vector: {"kind": "F32", "axes": ["own"]},
    scale: {"kind": "F32", "axes": [1], "minimum": 0, "maximum": 1},
  },
  "pmf-broadcast": {
    vectors: {"kind": "F32", "axes": ["items", "factors"]},
    reported: {"kind": "I8", "axes": ["items"], "minimum": 0, "maximum": 1},
    iteration: {"kind": "I32", "axes": [1], "minimum": 0},
  },
  "pmf-update": {
    items: {"kind": "I32", "axes": ["rows"], "index": true}, vectors: {"kind": "F32", "axes": ["rows", "factors"]},
  },
};

/** @type {Record<string, Record<string, string>>} */
// prettier-ignore
export const STATEMENTS = {
  "config": {
    federation_id: "string", catalogue: "string", settings: "string", recipe: "string", items: "number",
    columns: "number", clip: "string", noises: "list", power: "string", delta: "string", messages: "number",
    least_cohort: "number", largest_cohort: "number", helper_origin: "string", helper_key: "string",
    leader_key: "string", season: "number", before: "string", starts_from: "number", first: "string", until: "string",
    bound: "number", ring: "number", suite: "string", projections: "number", limit: "number", proof_bytes: "number",
    min_support: "number", format: "string",
  },
  "offer": {
    config: "string", round: "number", version: "number", model: "string", length: "number", stage: "number",
    columns: "number", clip: "string", scale: "number", noise: "number", key: "string", expires: "number",
  },
  "record": {
    config: "string", offer: "string", round: "number", state: "string", messages: "number", set: "string",
    sum: "string", model: "string", people: "number",
  },
};
