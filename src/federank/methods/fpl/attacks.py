"""The attacks on pair-wise learning by name for each threat model: the baseline first, the strongest last.

They see a view and nothing else: what an honest-but-curious server has about some users, a block of users at a time.

    updates      each client's updates, linked over rounds: the observer's notes, and one more update
    anonymous    one update and nothing else: unknown which others came from the same client
    sums         the sum over each round's clients, and who they were
    outsider     the public model before and after a round, and so its sum; not who was in it
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank.audit.observer import KnownPolicies
from federank.audit.scoring import BASELINE, Attack, Guess, claim, claim_typical, standardised
from federank.methods.fpl.method import FPLModel, FPLUpdate


class ShadowModel(NamedTuple):
    """A logistic regression: what each feature of a (person, item) says about ownership."""

    centres: RealVector
    scales: RealVector
    weights: RealVector
    intercept: float


class PairsView(NamedTuple):
    """What the server knows from single updates: one row, or one update, per person."""

    times_positive: NDArray[np.uint8]  # people x items: in how many Updates it came with a bias above zero
    seen_negative: NDArray[np.bool_]  # people x items: whether it ever came with a bias below zero
    negative_rows: LongVector  # people: rows with a bias below zero, over all Updates
    updates: list[FPLUpdate]  # one more of each person, in answer to the Broadcast
    vectors: FloatMatrix  # people x factors: each one's own vector, recovered from that Update
    broadcast: FPLModel
    typical_size: int  # interactions per device: public, since rounds per epoch are
    policies: KnownPolicies
    neighbours: FloatMatrix | None = None  # people x items: what those send who send alike; none where no one is linked
    shadow_model: ShadowModel | None = None  # what the attacker's own devices have taught it
    shadow_model_held_back: ShadowModel | None = None  # the same about items that were never sent


class SumsView(NamedTuple):
    """What the server knows from sums: a person's cohorts against all cohorts, one row per person."""

    differences: FloatMatrix  # people x items: bias sums where they took part less all others', by chance's deviation
    vectors: FloatMatrix  # people x factors: a person's own vector, as far as differences of sums give it
    broadcast: FPLModel
    typical_size: int
    policies: KnownPolicies
    shadow_model: ShadowModel | None = None
    shadow_model_held_back: ShadowModel | None = None


AnyView = PairsView | SumsView


# Vector recovery: one row of a negative item hands over the person's own vector.


_LEAST = 1e-9
"""Below this g, a row is all regulariser in 32-bit floats."""


def recovered_vectors(updates: list[FPLUpdate], broadcast: FPLModel, negative_regulariser: np.float32) -> FloatMatrix:
    """Each person's own vector, from one negative row; zeros where there is none, or only rounding errors are left."""
    found = np.zeros((len(updates), broadcast.vectors.shape[1]), dtype=np.float32)
    for row, update in enumerate(updates):
        position = int(np.argmin(update.biases)) if len(update.biases) else 0
        g = -float(update.biases[position]) if len(update.biases) else 0.0
        if g > _LEAST:
            q_j = broadcast.vectors[update.items[position]]
            found[row] = -(update.vectors[position] + negative_regulariser * q_j) / g
    return found


def vector_recovery(view: PairsView) -> Guess:
    """Rank the catalogue with the recovered vector."""
    return claim_typical(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases, view.typical_size)


# Absence: what never appears as a negative.


def absence(view: PairsView) -> Guess:
    """Claim every item that was never seen as a negative."""
    return claim(~view.seen_negative)


# Accumulation: the sign of every update, remembered over rounds.


def accumulation(view: PairsView) -> Guess:
    """Claim every item that was ever sent as a positive."""
    return claim(view.times_positive > 0)


# Frequency: how often an item was sent as a positive.


def frequency(view: PairsView) -> Guess:
    """Rank by the number of Updates that sent an item as a positive; claim what came more than once."""
    return Guess(view.times_positive.astype(np.float32), (view.times_positive > 1).sum(axis=1, dtype=np.int64))


# Fused: all that single Updates show, combined by one fixed rule of Bayes.


CERTAIN = 100.0
"""More than any other evidence could weigh, in logarithms of odds."""
_TASTE = 1.5
"""What one standard deviation of taste is worth, in logarithms of odds."""
_ENOUGH = 3
_STEPS = 50


def fused(view: PairsView) -> Guess:
    """Add up taste, what was sent and what is excluded."""
    n_items = view.seen_negative.shape[1]
    sent, decoys = view.times_positive > 0, view.policies.unliked > 0
    taste = standardised(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases)
    popular = standardised(view.broadcast.biases[None, :])
    prior = np.where(decoys[:, None], popular + taste / 3, taste)
    scores: FloatMatrix = (_TASTE * prior).astype(np.float32)
    scores += np.where(sent, *_evidence(view)).astype(np.float32)
    scores[view.seen_negative & view.policies.excluding[:, None]] -= np.float32(CERTAIN)
    n_sent = sent.sum(axis=1, dtype=np.int64)
    possible = n_items - (view.seen_negative & view.policies.excluding[:, None]).sum(axis=1, dtype=np.int64)
    sizes = profile_sizes(view, np.where(n_sent > 0, n_sent, view.typical_size))
    sizes = np.clip(sizes, np.minimum(n_sent, possible), possible)
    return Guess(scores, np.where(decoys, _expected(scores, view.typical_size), sizes))


def _evidence(view: PairsView) -> tuple[FloatMatrix, FloatMatrix]:
    """What it weighs that an item was ever sent as liked, and that it was not: a column of each, one row a person."""
    liked, unliked = view.policies.liked, view.policies.unliked
    decoys = unliked > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        for_it = np.where(decoys, np.log(liked / unliked), CERTAIN)
        against = np.where(decoys, np.log((1 - liked) / (1 - unliked)), 0.0)
    return tuple(np.clip(part, -CERTAIN, CERTAIN)[:, None] for part in (for_it, against))  # type: ignore[return-value]


def _expected(scores: FloatMatrix, typical_size: int) -> LongVector:
    """How many items a person has if the scores are logarithms of odds around the typical share."""
    share = min(typical_size / scores.shape[1], 0.5)
    odds = np.log(share / (1 - share)) + scores
    expected: LongVector = np.rint((1 / (1 + np.exp(-odds))).sum(axis=1)).astype(np.int64)
    return expected


def profile_sizes(view: PairsView, otherwise: LongVector) -> LongVector:
    """How many items each person is taken to have: from the negatives where these are enough, or else as given."""
    n_items = view.seen_negative.shape[1]
    enough = (view.negative_rows >= _ENOUGH * n_items) & view.policies.excluding
    drawn, seen = view.negative_rows[enough], view.seen_negative[enough].sum(axis=1)
    missing = seen.astype(np.float64)
    for _ in range(_STEPS):  # a fixed point: N = seen + N e^(-m/N)
        missing = seen + missing * np.exp(-drawn / missing)
    sizes = otherwise.copy()
    sizes[enough] = np.rint(n_items - missing)
    return sizes


# Magnitude: how hard the device still has to pull at an item it sends as liked.


_A_HALF = 0.5


def magnitude(view: PairsView) -> Guess:
    """Rank what was ever sent as liked by small gradients; claim those below a half."""
    scores = view.vectors @ view.broadcast.vectors.T + view.broadcast.biases
    slopes = 1 / (1 + np.exp(np.clip(scores - np.median(scores, axis=1, keepdims=True), -30, 30)))
    for row, update in enumerate(view.updates):
        sent = update.biases > 0
        slopes[row, update.items[sent]] = np.minimum(update.biases[sent], 1)
    often = view.times_positive / (1 + view.times_positive.astype(np.float32))
    ranked = np.where(view.times_positive > 0, 1 + (1 - slopes) * often, 0).astype(np.float32)
    named = (view.times_positive > 0) & (slopes < _A_HALF)
    return Guess(ranked, named.sum(axis=1, dtype=np.int64))


# Neighbours: anyone who sends alike has alike (senders.py); who needs no vector to recommend needs none to guess.


def neighbours(view: PairsView) -> Guess:
    """Rank by what similar people have sent."""
    assert view.neighbours is not None, "no one's Updates are linked"
    return claim_typical(view.neighbours, view.typical_size)


# Popularity: the attacker who knows only the public model, and guesses the same for everyone.


def popularity(view: AnyView) -> Guess:
    """Rank everything by the public biases."""
    return claim_typical(np.tile(view.broadcast.biases, (len(view.vectors), 1)), view.typical_size)


# Sign: what a single Update says outright.


def sign(view: PairsView) -> Guess:
    """Claim every item of one Update whose bias gradient is above zero."""
    positive = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        positive[row, update.items[update.biases > 0]] = True
    return claim(positive)


# Signs of the vectors: what an Update says where its biases are kept from the server (FPL, 2022, Eq. 2-3).


def vector_signs(view: PairsView) -> Guess:
    """Claim the items of one Update whose vectors are in the smaller cluster."""
    liked = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        liked[row, smaller_cluster(update, view.broadcast)] = True
    return claim(liked)


def smaller_cluster(update: FPLUpdate, broadcast: FPLModel) -> IntVector:
    """The items that a server takes for liked from the signs of an update's vectors; none in a single cluster."""
    if not len(update.items):
        return update.items
    # The longest row stands for its cluster: in it the regulariser matters least.
    signs = np.sign(update.vectors)
    leader = signs[int(np.argmax((update.vectors**2).sum(axis=1)))]
    cluster = signs @ leader > 0
    one: IntVector = update.items[cluster]
    other: IntVector = update.items[~cluster]
    if not len(one) or not len(other):
        return update.items[:0]
    if len(one) == len(other):
        biases = broadcast.biases
        return one if biases[one].mean() > biases[other].mean() else other
    return one if len(one) < len(other) else other


# Fused, where only sums are seen: taste as the prior, membership as the evidence.


_NEVER_SURE = 0.98
"""Even what is always sent may not have been drawn."""
_FARTHEST = 30.0


def fused_sums(view: SumsView) -> Guess:
    """Add up taste and membership, each for what it is worth."""
    policies = view.policies
    # Where negatives avoid the history, an item that is never sent stands out too: by missing among the negatives.
    pi = np.where(policies.excluding, _NEVER_SURE, np.minimum(policies.liked, _NEVER_SURE))[:, None]
    q = policies.unliked[:, None]
    owned = min(max(view.typical_size / view.differences.shape[1], 1e-6), 0.5)
    share = np.clip(owned * pi + (1 - owned) * q, 1e-6, 0.5)
    beyond_chance = np.maximum(np.var(view.differences, axis=1, keepdims=True) - 1, 0)
    mu = np.sqrt(beyond_chance / (share * (1 - share)))
    r = np.exp(np.clip(mu * view.differences - mu**2 / 2, -_FARTHEST, _FARTHEST))
    evidence = np.log((1 - pi + pi * r) / (1 - q + q * r))
    taste = standardised(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases)
    return claim_typical((taste + evidence).astype(np.float32), view.typical_size)


# Membership in a sum: what is different about the rounds in which a person takes part?


_BEYOND_CHANCE = 3.0
"""Standard deviations."""


def membership(view: SumsView) -> Guess:
    """Rank by how far the sums of a user's rounds are above the others; claim what is far above."""
    return Guess(view.differences, (view.differences > _BEYOND_CHANCE).sum(axis=1, dtype=np.int64))


# The vector in a sum: taste, as far as the sums of a person's rounds differ from the others.


def sum_vector(view: SumsView) -> Guess:
    """Rank the catalogue with the vector that differences of sums give."""
    return claim_typical(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases, view.typical_size)


# Learned: an attack with a shadow model. A server can enrol clients of its own, whose histories it knows. A logistic
# regression over their (client, item) pairs learns what counts and gradients mean, and is applied to all other clients.
# The features are those of the other attacks:
#
#     single Updates   how often sent as positive, and whether at all; ever a negative; the signed gradient in the
#                      latest Update; what neighbours send; the recovered vector's score; popularity
#     sums             the difference of sums; the same smoothed by the public item vectors; the vector's score;
#                      popularity
#
# Fitted by Newton's method with a small ridge. Of each client's missing items only a sample is used, which moves the
# intercept by the logarithm of the sampled share.


_MISSING_PER_ITEM = 10
_FEWEST_MISSING = 500
_FEWEST_ITEMS = 5
_RIDGE = 1e-3
_NEWTON_STEPS = 25
_FARTHEST_LOGIT = 30.0


def learned(view: AnyView) -> Guess:
    """Rank by the probability that the attacker's own clients suggest; claim as many items as it adds up to."""
    assert view.shadow_model is not None, "the attacker has no clients of its own"
    return _apply(view, view.shadow_model)


def held_back(view: AnyView) -> Guess:
    """The same by lessons about nothing but what was never sent: who looks for secrets need not rank the rest."""
    assert view.shadow_model_held_back is not None, "the attacker's own clients have withheld nothing"
    return _apply(view, view.shadow_model_held_back)


def _apply(view: AnyView, shadow_model: ShadowModel) -> Guess:
    scores = np.full((len(view.vectors), len(view.broadcast.biases)), shadow_model.intercept, dtype=np.float32)
    for feature, centre, scale, weight in zip(
        features(view), shadow_model.centres, shadow_model.scales, shadow_model.weights, strict=True
    ):
        scores += ((feature - np.float32(centre)) * np.float32(weight / scale)).astype(np.float32)
    np.clip(scores, -_FARTHEST_LOGIT, _FARTHEST_LOGIT, out=scores)
    return Guess(scores, np.rint((1 / (1 + np.exp(-scores))).sum(axis=1)).astype(np.int64))


def features(view: AnyView) -> list[FloatMatrix]:
    """What is looked at: one table of people x items each."""
    vectors, biases = view.broadcast.vectors, view.broadcast.biases
    taste = standardised(view.vectors @ vectors.T + biases)
    popular = np.broadcast_to(standardised(biases[None, :]), taste.shape)
    own = _of_sums(view) if isinstance(view, SumsView) else _of_updates(view)
    return [*own, taste, popular]


def _of_updates(view: PairsView) -> list[FloatMatrix]:
    latest = np.zeros(view.seen_negative.shape, dtype=np.float32)
    for row, update in enumerate(view.updates):
        latest[row, update.items] = update.biases
    often = np.log1p(view.times_positive.astype(np.float32))
    others = [] if view.neighbours is None else [standardised(view.neighbours)]
    return [*others, often, (view.times_positive > 0).astype(np.float32), view.seen_negative.astype(np.float32), latest]


def _of_sums(view: SumsView) -> list[FloatMatrix]:
    Q = view.broadcast.vectors - view.broadcast.vectors.mean(axis=0)
    within = np.linalg.pinv(Q.T @ Q + 1e-6 * np.eye(Q.shape[1], dtype=np.float32))
    return [view.differences, standardised(view.differences @ Q @ within.astype(np.float32) @ Q.T)]


def learn(
    view: AnyView, histories: list[IntVector], seed: int, sent: NDArray[np.bool_] | None = None
) -> ShadowModel | None:
    """What the attacker's own clients teach: their view, and their true histories.

    With what they have `sent`, only the rest of their histories is asked for; nothing is learnt if that is too little.
    """
    rng = np.random.default_rng(seed)
    n_items = len(view.broadcast.biases)
    rows, columns, owned, weights = [], [], [], []
    for row, history in enumerate(histories):
        missing = np.setdiff1d(np.arange(n_items), history)
        history = history if sent is None else history[~sent[row, history]]
        wanted = min(len(missing), max(_FEWEST_MISSING, _MISSING_PER_ITEM * len(history)))
        some = rng.choice(missing, wanted, replace=False)
        rows.append(np.full(len(history) + len(some), row))
        columns.append(np.concatenate((history, some)))
        owned.append(np.concatenate((np.ones(len(history)), np.zeros(len(some)))))
        weights.append(np.log(len(missing) / max(wanted, 1)))
    if sum(map(len, histories)) == 0 or np.concatenate(owned).sum() < _FEWEST_ITEMS:
        return None
    positions = np.concatenate(rows), np.concatenate(columns)
    X = np.stack([feature[positions] for feature in features(view)], axis=1).astype(np.float64)
    centres, scales = X.mean(axis=0), X.std(axis=0)
    scales[scales == 0] = 1.0
    fitted = _fit((X - centres) / scales, np.concatenate(owned))
    return ShadowModel(centres, scales, fitted[1:], float(fitted[0] - np.mean(weights)))


def _fit(X: NDArray[np.float64], y: RealVector) -> RealVector:
    """Logistic regression by Newton's method: the intercept, then the weights."""
    design = np.concatenate((np.ones((len(X), 1)), X), axis=1)
    ridge = _RIDGE * len(X) * np.diag([1e-6, *np.ones(X.shape[1])])
    beta = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ beta, -_FARTHEST_LOGIT, _FARTHEST_LOGIT)))
        slope = design.T @ (y - p) - ridge @ beta
        curvature = (design * (p * (1 - p))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, slope)
        beta += step
        if np.abs(step).max() < 1e-6:
            break
    return beta


ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": {
        BASELINE: popularity,
        "sign": sign,
        "vector_signs": vector_signs,
        "accumulation": accumulation,
        "frequency": frequency,
        "magnitude": magnitude,
        "absence": absence,
        "vector_recovery": vector_recovery,
        "neighbours": neighbours,
        "learned": learned,
        "held_back": held_back,
        "fused": fused,
    },
    "anonymous": {
        BASELINE: popularity,
        "sign": sign,
        "vector_signs": vector_signs,
        "magnitude": magnitude,
        "vector_recovery": vector_recovery,
        "learned": learned,
        "held_back": held_back,
        "fused": fused,
    },
    "sums": {
        BASELINE: popularity,
        "membership": membership,
        "sum_vector": sum_vector,
        "learned": learned,
        "held_back": held_back,
        "fused": fused_sums,
    },
}
ATTACKS["outsider"] = ATTACKS["anonymous"]  # the sum of a round is taken for an update, as it is where one is alone
"""What each kind of honest-but-curious server tries."""
