"""Fused: all that single Updates show, combined by one fixed rule of Bayes.

The odds that an item is somebody's are prior odds times likelihood ratios, so their logarithms are added up:

    taste     the recovered vector's scores, standardised: what a device likes, its owner probably has. Where there are
              decoys the vector has learnt these too, and popularity is believed more
    sent      ever sent as liked: certain where the policy sends no decoys; else ln(pi / q) for and ln((1-pi)/(1-q))
              against, with pi = P(sent | liked) and q = P(sent | not liked) kept for life
    excluded  ever sent as a negative: impossible where negatives are drawn outside the whole history; says nothing
              where they are drawn outside the outward profile, because what was held back is among them

Kind and numbers of a policy are taken to be public; what it does to which item is not.

How many items it claims. Without decoys: never an excluded one, always the certain ones, and in all as many as it takes
the person to have. That number shows in the negatives: of N items that somebody does not have, m drawn rows leave
about N e^(-m/N) unseen. With the catalogue of I items the unseen ones are I - N + N e^(-m/N) many, which gives N once a
device has sent three times as many negative rows as there are items. Before that it is too vague, and the attacker
claims what is certain; or, where nothing is, as many items as a device has on average. With decoys: as many as the
odds say there are.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, LongVector
from federank.audit.guess import Guess, standardised
from federank.audit.pairs.view import PairsView

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
