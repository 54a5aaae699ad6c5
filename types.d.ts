// Types that several of the page's modules share.

declare global {
  // What servers answer and sign.

  /** A round as the operator sees it; what has not been counted is not there. */
  type Round = {
    number: number;
    version: number;
    state: string;
    granted?: number;
    reports?: number;
    dropouts?: number;
    bytes?: number;
    clipped?: number;
    drift?: number;
    seconds?: number;
    rejected?: Record<string, number>;
    ended?: number | null;
    clients?: number | null;
    departures?: number | null;
  };

  /** What devices have said of a version: a share and its interval; where ratings are held back, errors and theirs. */
  type Judged = {
    version: number;
    answers: number;
    share?: number;
    low?: number;
    high?: number;
    mae?: number;
    mae_low?: number;
    mae_high?: number;
    rmse?: number;
    rmse_low?: number;
    rmse_high?: number;
  };

  /** How the federation is doing, for its operator. */
  type Overview = {
    version: number;
    round: number;
    open: boolean;
    paused: boolean;
    reports: number;
    clients: number;
    left?: number;
    health?: Health;
    waiting: number;
    rounds_aggregated: number;
    rounds_abandoned: number;
    aggregates_rejected?: number;
    accuracy?: Record<string, unknown>;
    name?: string;
    description?: string | null;
    run_by?: string | null;
    joining?: { address: string; fingerprint: string | null; code: string[] } | null;
    rounds?: Round[];
    rejected?: Record<string, number>;
    largest_move?: number;
    moved_most?: { item: string; move: number }[];
    held_rows?: number;
    capped_rows?: number;
    capped_items?: number;
    busiest_range_reports?: number;
    limits?: { minimum: number; enough: number; deadline: number };
    evaluation?: Judged[];
    trend?: Judged[];
    latency_ms?: Record<string, { requests: number; p50: number; p99: number }>;
  };

  /** What a federation says it is; what is optional is only ever shown, or checked where it is used. */
  type FederationInfo = {
    api: number;
    method: string;
    name?: string;
    description?: any;
    run_by?: any;
    noun?: any;
    seen?: any;
    joining?: any;
    language?: any;
    translations?: any;
    upload_period_seconds?: any;
    trained?: boolean | null;
    uploads?: string;
    sums?: any;
    season?: any;
    items: number;
    recipe: any;
    catalogue: string;
    federation_id: string;
    version: number;
    suggested_policy?: any;
  };

  /** Leave to take part in one round. */
  type Task = { ticket: string; round: number; version: number; most_rows?: number; season?: number; counts?: boolean };

  /** How the federation is doing. */
  type Status = {
    version: number;
    round?: number;
    reports?: number;
    items?: number;
    season?: number;
    clients?: number;
    rounds_aggregated?: number;
    federation_id?: string;
    accuracy?: Record<string, number>;
    health?: Health;
    simulated?: { state?: string; clients?: number } | null;
  };

  /** Its state in a word, and the reasons for it by their codes. */
  type Health = { state: string; reasons: { code: string; state: string; count: number; of: number }[] };

  type SecureConfig = {
    federation_id: string;
    catalogue: string;
    settings: string;
    recipe: string;
    items: number;
    columns: number;
    clip: string;
    noises: number[];
    power: string;
    delta: string;
    messages: number;
    least_cohort: number;
    largest_cohort: number;
    helper_origin: string;
    helper_key: string;
    leader_key: string;
    season: number;
    before: string;
    starts_from: number;
    first: string;
    until: string;
    bound: number;
    ring: number;
    suite: string;
    projections: number;
    limit: number;
    proof_bytes: number;
    min_support?: number;
    format: string;
  };

  type RoundConfig = {
    config: string;
    round: number;
    version: number;
    model: string;
    length: number;
    stage: number;
    columns: number;
    clip: string;
    scale: number;
    noise: number;
    key: string;
    expires: number;
  };

  type RoundRecord = {
    config: string;
    offer: string;
    round: number;
    state: string;
    messages: number;
    set: string;
    sum: string;
    model: string;
    people: number;
  };

  // What a client keeps (client/store.js).

  /** Who this device is: to its own draws (two words that are never sent), and to the server once it has joined. */
  type Identity = { seed: number; user: number; device: string | null; token: string | null };

  /** What a vector or a message was learnt from. */
  type LearntFrom = { basis: string; ids: string[] };

  /** Something the user has, or has dismissed; `how` it came here, and whether it has been `shown` since. */
  type Owned = { id: string; title: string; at: number; how?: string; shown?: boolean; rating?: number };

  /** An item that has left, under its id. */
  type StoredEntry = Omit<Entry, "item"> & { id: string; title: string };

  /** What a round sent, what became of it (outcomes.js), `why` where it is not in the model, and when the round was found to have `ended`; where messages are counted, its number and how many there may be, the noise on the sum that it went into, and the digest of the round config that it was made for and its random id. */
  type StoredRound = {
    ticket: string;
    round: number;
    at: number;
    liked: string[];
    compared: number;
    bytes: number;
    outcome: string;
    season?: number;
    why?: Said;
    ended?: number;
    uploads?: number;
    number?: number;
    of?: number | null;
    noise?: number;
    roundConfig?: string;
    id?: string;
  };

  /** An Update on its way; where it was made from pairs, from how many. */
  type Pending = {
    ticket: string;
    liked: string[];
    from: LearntFrom;
    body: Uint8Array<ArrayBuffer>;
    at: number;
    pairs?: number;
  };

  /** What the owner allows, in ids; with `byHand`, these items and no others may leave. */
  type Choice = Omit<Policy, "neverItems"> & { neverIds: string[]; byHand?: string[] | null };

  /** What a season guarantees: its uploads, and mu squared of its noise where there is any. */
  type StoredSeason = { number: number; uploads: number | null; cost: number | null; until: string };

  /** The owner's choices and what has left. */
  type Stored = {
    revision?: number;
    taking?: boolean;
    identity?: Identity;
    policy?: Partial<Choice>;
    later?: string[];
    joined?: string;
    agreed?: number;
    federation_id?: string;
    answered?: string;
    restarted?: boolean;
    seasons?: StoredSeason[];
    seasonBegun?: string;
    sums?: SecureConfig;
    vector?: LearntFrom & { values: Float32Array };
    history: Owned[];
    dismissed: Owned[];
    ledger: StoredEntry[];
    rounds: StoredRound[];
    pending: Pending[];
  };

  /** A copy of the public model, and whose it is. */
  type StoredModel = Model & { federation_id: string; catalogue: string };

  /** What to write: {store: {key: value}}; undefined deletes. */
  type Changes = Record<string, Record<string, unknown>>;

  /** A message before it is split: numbers per row, and which items it has rows of (null: all). */
  type Before = { values: Float32Array; columns: number; items: Int32Array | null };

  // What the page shows (client/view.js).

  /** An address for others on the same network, with a code to scan in rows of 0 and 1. */
  type Joining = { address: string; fingerprint: string | null; code: string[] };

  /** One item, as the page shows it. */
  type ShownItem = {
    id: string;
    title: string;
    year: number | null;
    local: Record<string, string>;
    lang: string;
    categories: string[];
    has: boolean;
    later: boolean;
    rating: number | null;
    predicted?: { rating: number; isMean: boolean } | null;
  };

  /** An item of the user's own list, and where it is or may go. */
  type OwnItem = ShownItem & { at: number; mayLeave: boolean; left: boolean; waits: boolean; unshown: boolean };

  /** What the rounds are doing, as it is said and in a word. */
  type Progress = { says: Said; state: string };

  /** Who the two servers are and what their noise is worth, as the page says it. */
  type Guarantee = {
    helper: string;
    fingerprint: string;
    together: "machine" | "host" | null;
    leastCohort: number;
    epsilon: number | null;
    delta: number;
  };

  // The rest, each from the module that it belongs to.

  type Catalogue = import("./src/federank/service/web/client/catalogue.js").Catalogue;
  type Query = import("./src/federank/service/web/client/catalogue.js").Query;
  type Client = import("./src/federank/service/web/client/client.js").Client;
  type Met = import("./src/federank/service/web/client/client.js").Met;
  type Model = import("./src/federank/service/web/client/client.js").Model;
  type Outcome = import("./src/federank/service/web/client/federation.js").Outcome;
  type Rows = import("./src/federank/service/web/client/federation.js").Rows;
  type Shape = import("./src/federank/service/web/client/federation.js").Shape;
  type Say = import("./src/federank/service/web/client/participation.js").Say;
  type SeasonLine = import("./src/federank/service/web/client/seasons.js").SeasonLine;
  type View = import("./src/federank/service/web/client/view.js").View;
  type Key = import("./src/federank/service/web/faults.js").Key;
  type Said = import("./src/federank/service/web/faults.js").Said;
  type Item = import("./src/federank/service/web/federation/item.js").Item;
  type Kind = import("./src/federank/service/web/federation/wire.js").Kind;
  type Parts = import("./src/federank/service/web/federation/wire.js").Parts;
  type Update = import("./src/federank/service/web/methods/fpl.js").Update;
  type Message = import("./src/federank/service/web/methods/registry.js").Message;
  type Method = import("./src/federank/service/web/methods/registry.js").Method;
  type Point = import("./src/federank/service/web/operator/charts.js").Point;
  type Entry = import("./src/federank/service/web/privacy/ledger.js").Entry;
  type Policy = import("./src/federank/service/web/privacy/policy.js").Policy;
  type SharedProfile = import("./src/federank/service/web/privacy/policy.js").SharedProfile;
  type Bytes = import("./src/federank/service/web/secagg/canonical.js").Bytes;
  type Secrets = import("./src/federank/service/web/secagg/upload.js").Secrets;
  type Split = import("./src/federank/service/web/secagg/upload.js").Split;
  type Act = import("./src/federank/service/web/show/ask.js").Act;
  type Attributes = import("./src/federank/service/web/show/elements.js").Attributes;
  type Child = import("./src/federank/service/web/show/elements.js").Child;
  type Noun = import("./src/federank/service/web/show/language.js").Noun;
}

export {};
