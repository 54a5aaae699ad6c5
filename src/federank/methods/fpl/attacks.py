"""Attacks on pairwise learning, by threat model: the baseline first, the strongest last.

Each attack sees a view: what an honest-but-curious server knows about a block of users.

    updates      each client's updates, linked over rounds: the observer's counts, and one more update
    anonymous    single updates that cannot be linked
    sums         the sum over each round's clients, and who they were
    outsider     the public model before and after a round, hence its sum, but not who took part
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
    """A logistic regression: how much each feature of a (user, item) pair indicates ownership."""

    centres: RealVector
    scales: RealVector
    weights: RealVector
    intercept: float


class PairsView(NamedTuple):
    """What the server knows from single updates: one row, or one update, per user."""

    times_positive: NDArray[np.uint8]  # users x items: number of updates with a positive bias
    seen_negative: NDArray[np.bool_]  # users x items: whether any update had a negative bias
    negative_rows: LongVector  # users: rows with a negative bias, over all updates
    updates: list[FPLUpdate]  # one more update of each user, in answer to the current broadcast
    vectors: FloatMatrix  # users x factors: each user's own vector, recovered from that update
    broadcast: FPLModel
    typical_size: int  # interactions per client: public, since rounds per epoch are
    policies: KnownPolicies
    neighbours: FloatMatrix | None = (
        None  # users x items: what users with similar updates send; None if updates cannot be linked
    )
    shadow_model: ShadowModel | None = None  # trained on the attacker's own clients
    shadow_model_held_back: ShadowModel | None = None  # the same for items that were never sent


class SumsView(NamedTuple):
    """What the server knows from sums: a user's cohorts against all cohorts, one row per user."""

    differences: FloatMatrix  # users x items: bias sums with the user minus without, in standard deviations of chance
    vectors: FloatMatrix  # users x factors: a user's own vector, estimated from differences of sums
    broadcast: FPLModel
    typical_size: int
    policies: KnownPolicies
    shadow_model: ShadowModel | None = None
    shadow_model_held_back: ShadowModel | None = None


AnyView = PairsView | SumsView


# Vector recovery: one row of a negative item reveals the user's own vector.


_LEAST = 1e-9  # below this g, a row is all regularization in 32-bit floats


def recovered_vectors(updates: list[FPLUpdate], broadcast: FPLModel, negative_regulariser: np.float32) -> FloatMatrix:
    """Each user's own vector, from one negative row; zeros if there is none, or only rounding errors remain."""
    recovered = np.zeros((len(updates), broadcast.vectors.shape[1]), dtype=np.float32)
    for row, update in enumerate(updates):
        position = int(np.argmin(update.biases)) if len(update.biases) else 0
        g = -float(update.biases[position]) if len(update.biases) else 0.0
        if g > _LEAST:
            q_j = broadcast.vectors[update.items[position]]
            recovered[row] = -(update.vectors[position] + negative_regulariser * q_j) / g
    return recovered


def taste_of(view: AnyView) -> FloatMatrix:
    """Users x items: the model's scores for the vectors that the server has recovered or estimated."""
    scores: FloatMatrix = view.vectors @ view.broadcast.vectors.T + view.broadcast.biases
    return scores


def vector_recovery(view: AnyView) -> Guess:
    """Rank the catalogue with the recovered vector; with sums, the vector that their differences give."""
    return claim_typical(taste_of(view), view.typical_size)


def absence(view: PairsView) -> Guess:
    """Claim every item that was never seen as a negative."""
    return claim(~view.seen_negative)


def accumulation(view: PairsView) -> Guess:
    """Claim every item that was ever sent as a positive."""
    return claim(view.times_positive > 0)


def frequency(view: PairsView) -> Guess:
    """Rank by the number of updates that sent an item as a positive; claim items sent more than once."""
    return Guess(view.times_positive.astype(np.float32), (view.times_positive > 1).sum(axis=1, dtype=np.int64))


# Fused: all evidence of single updates, combined by Bayes' rule.


CERTAIN = 100.0
"""Log odds that outweigh all other evidence."""
_TASTE = 1.5
"""Log odds per standard deviation of taste."""
_ENOUGH = 3
_STEPS = 50


def fused(view: PairsView) -> Guess:
    """Add the evidence of taste, of sent items and of excluded items."""
    n_items = view.seen_negative.shape[1]
    sent, decoys = view.times_positive > 0, view.policies.unliked > 0
    taste = standardised(taste_of(view))
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
    """Log odds of an item that was sent as liked, and of one that was not: a column each, one row per user."""
    liked, unliked = view.policies.liked, view.policies.unliked
    decoys = unliked > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        for_it = np.where(decoys, np.log(liked / unliked), CERTAIN)
        against = np.where(decoys, np.log((1 - liked) / (1 - unliked)), 0.0)
    return tuple(np.clip(part, -CERTAIN, CERTAIN)[:, None] for part in (for_it, against))  # type: ignore[return-value]


def _expected(scores: FloatMatrix, typical_size: int) -> LongVector:
    """Expected number of items of a user, if scores are log odds relative to the typical share."""
    share = min(typical_size / scores.shape[1], 0.5)
    odds = np.log(share / (1 - share)) + scores
    expected: LongVector = np.rint((1 / (1 + np.exp(-odds))).sum(axis=1)).astype(np.int64)
    return expected


def profile_sizes(view: PairsView, otherwise: LongVector) -> LongVector:
    """Estimated number of items of each user: from the negatives if there are enough, else as given."""
    n_items = view.seen_negative.shape[1]
    enough = (view.negative_rows >= _ENOUGH * n_items) & view.policies.excluding
    drawn, seen = view.negative_rows[enough], view.seen_negative[enough].sum(axis=1)
    missing = seen.astype(np.float64)
    for _ in range(_STEPS):  # a fixed point: N = seen + N e^(-m/N)
        missing = seen + missing * np.exp(-drawn / missing)
    sizes = otherwise.copy()
    sizes[enough] = np.rint(n_items - missing)
    return sizes


def magnitude(view: PairsView) -> Guess:
    """Rank items sent as liked by small gradients; claim those below one half."""
    scores = taste_of(view)
    slopes = 1 / (1 + np.exp(np.clip(scores - np.median(scores, axis=1, keepdims=True), -30, 30)))
    for row, update in enumerate(view.updates):
        sent = update.biases > 0
        slopes[row, update.items[sent]] = np.minimum(update.biases[sent], 1)
    often = view.times_positive / (1 + view.times_positive.astype(np.float32))
    ranked = np.where(view.times_positive > 0, 1 + (1 - slopes) * often, 0).astype(np.float32)
    named = (view.times_positive > 0) & (slopes < 0.5)
    return Guess(ranked, named.sum(axis=1, dtype=np.int64))


def neighbours(view: PairsView) -> Guess:
    """Rank by what similar users have sent."""
    assert view.neighbours is not None, "the updates are not linked"
    return claim_typical(view.neighbours, view.typical_size)


def popularity(view: AnyView) -> Guess:
    """Rank by the public biases."""
    return claim_typical(np.tile(view.broadcast.biases, (len(view.vectors), 1)), view.typical_size)


def sign(view: PairsView) -> Guess:
    """Claim every item of one update with a positive bias gradient."""
    positive = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        positive[row, update.items[update.biases > 0]] = True
    return claim(positive)


# Signs of the vectors: what an update reveals if its biases are hidden from the server (FPL, 2022, Eq. 2-3).


def vector_signs(view: PairsView) -> Guess:
    """Claim the items of one update whose vectors are in the smaller cluster."""
    liked = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        liked[row, smaller_cluster(update, view.broadcast)] = True
    return claim(liked)


def smaller_cluster(update: FPLUpdate, broadcast: FPLModel) -> IntVector:
    """The items that a server takes for liked from the signs of an update's vectors; none for a single cluster."""
    if not len(update.items):
        return update.items
    # The longest row represents its cluster: regularization matters least in it.
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


# Fused, for sums: taste as the prior, membership as the evidence.


_NEVER_SURE = 0.98
"""Even an item that is always sent may not have been drawn."""
_FARTHEST = 30.0


def fused_sums(view: SumsView) -> Guess:
    """Add taste and membership, each with its weight."""
    policies = view.policies
    # If negatives exclude the history, an item that is never sent stands out too: it is missing among the negatives.
    pi = np.where(policies.excluding, _NEVER_SURE, np.minimum(policies.liked, _NEVER_SURE))[:, None]
    q = policies.unliked[:, None]
    owned = min(max(view.typical_size / view.differences.shape[1], 1e-6), 0.5)
    share = np.clip(owned * pi + (1 - owned) * q, 1e-6, 0.5)
    beyond_chance = np.maximum(np.var(view.differences, axis=1, keepdims=True) - 1, 0)
    mu = np.sqrt(beyond_chance / (share * (1 - share)))
    r = np.exp(np.clip(mu * view.differences - mu**2 / 2, -_FARTHEST, _FARTHEST))
    evidence = np.log((1 - pi + pi * r) / (1 - q + q * r))
    taste = standardised(taste_of(view))
    return claim_typical((taste + evidence).astype(np.float32), view.typical_size)


def membership(view: SumsView) -> Guess:
    """Rank by how far the sums of a user's rounds exceed the others; claim items three deviations above."""
    return Guess(view.differences, (view.differences > 3.0).sum(axis=1, dtype=np.int64))


# Learned: a shadow-model attack. A server can enrol clients of its own, whose histories it knows. A logistic regression
# on their (client, item) pairs learns what counts and gradients mean, and is applied to all other clients. Features:
#
#     single updates   how often sent as positive, and whether at all; ever a negative; the signed gradient in the
#                      latest update; what neighbours send; the recovered vector's score; popularity
#     sums             the difference of sums; the same smoothed by the public item vectors; the vector's score;
#                      popularity
#
# Fitted by Newton's method with a small ridge. Only a sample of each client's missing items is used, which shifts the
# intercept by the logarithm of the sampled share.


_MISSING_PER_ITEM = 10
_FEWEST_MISSING = 500
_FEWEST_ITEMS = 5
_RIDGE = 1e-3
_NEWTON_STEPS = 25
_FARTHEST_LOGIT = 30.0


def learned(view: AnyView) -> Guess:
    """Rank by the predicted probability; claim as many items as the probabilities add up to."""
    assert view.shadow_model is not None, "the attacker has no clients of its own"
    return _apply(view, view.shadow_model)


def held_back(view: AnyView) -> Guess:
    """The same, trained only on items that were never sent: an attack on withheld items."""
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
    """The features: one table of users x items each."""
    taste = standardised(taste_of(view))
    popular = np.broadcast_to(standardised(view.broadcast.biases[None, :]), taste.shape)
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
    """Train the shadow model on the attacker's own clients: their view and their histories.

    With what they have `sent`, it trains on the rest of their histories; returns None if that is too little.
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


_READING: dict[str, Attack] = {
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
}
_LINKING = ("accumulation", "frequency", "absence", "neighbours")
_UNLINKED = {name: attack for name, attack in _READING.items() if name not in _LINKING}
_SUMS: dict[str, Attack] = {
    BASELINE: popularity,
    "membership": membership,
    "sum_vector": vector_recovery,
    "learned": learned,
    "held_back": held_back,
    "fused": fused_sums,
}
# An outsider sees a round's sum, which with one client per round is an update.
ATTACKS = {"updates": _READING, "anonymous": _UNLINKED, "sums": _SUMS, "outsider": _UNLINKED}
"""The attacks of each threat model."""
