"""Learned: an attacker that practises on devices of its own.

Anyone who runs a server can also enrol devices, with histories it has made up or bought. It sees their Updates (or the
sums of their rounds) as it sees everyone's, and of these it knows the truth. So it need not think about what a count
or a gradient means: a logistic regression over the (device, item) pairs of its own devices finds out, and is applied
to everyone else. The features are what the other attacks look at.

    single Updates   how often sent as liked, and whether at all; ever a negative; the signed gradient in the latest
                     Update, which also tells what was seen last; what neighbours send; the recovered vector's score;
                     popularity
    sums             the difference of sums; the same smoothed by the public item vectors; the vector's score;
                     popularity

Fitted by Newton's method with a small ridge. Of each device's missing items only a sample is used, which moves the
intercept by the logarithm of the sampled share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, IntVector, RealVector
from federank.audit.scoring import Guess, standardised
from federank.methods.fpl.views import AnyView, PairsView, ShadowModel, SumsView

_MISSING_PER_ITEM = 10
_FEWEST_MISSING = 500
_FEWEST_ITEMS = 5
_RIDGE = 1e-3
_STEPS = 25
_FARTHEST = 30.0


def learned(view: AnyView) -> Guess:
    """Rank by the probability that the attacker's own devices suggest; claim as many items as it adds up to."""
    assert view.shadow_model is not None, "the attacker has no devices of its own"
    return _apply(view, view.shadow_model)


def held_back(view: AnyView) -> Guess:
    """The same by lessons about nothing but what was never sent: who looks for secrets need not rank the rest."""
    assert view.shadow_model_held_back is not None, "the attacker's own devices have held nothing back"
    return _apply(view, view.shadow_model_held_back)


def _apply(view: AnyView, shadow_model: ShadowModel) -> Guess:
    scores = np.full((len(view.vectors), len(view.broadcast.biases)), shadow_model.intercept, dtype=np.float32)
    for feature, centre, scale, weight in zip(
        features(view), shadow_model.centres, shadow_model.scales, shadow_model.weights, strict=True
    ):
        scores += ((feature - np.float32(centre)) * np.float32(weight / scale)).astype(np.float32)
    np.clip(scores, -_FARTHEST, _FARTHEST, out=scores)
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
    """What the attacker's own devices teach: their view, and their true histories.

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
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ beta, -_FARTHEST, _FARTHEST)))
        slope = design.T @ (y - p) - ridge @ beta
        curvature = (design * (p * (1 - p))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, slope)
        beta += step
        if np.abs(step).max() < 1e-6:
            break
    return beta
