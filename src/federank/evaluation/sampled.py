"""Sampled-negative metrics: each test item ranked among a few items drawn at random, beside the full ranking.

They are cheap, and many papers print them: the newest item of each user among 99 drawn ones, as hit rate and nDCG at
10. But they may order methods differently than the full ranking does (Krichene and Rendle, 2020). So every figure says
`sampled`, and they are computed only where they are asked for, by name or with `negatives`.

For each test interaction, `negatives` different items are drawn that the user has neither in training nor in test.
Its rank is 1 + the number of drawn items that come before it: a higher score, or the same score and a smaller
number. A test item that the model has never seen is a miss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federank.arrays import FloatVector, LongVector, RealVector
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.lists import refuse_learnt_test
from federank.recommenders.recommendations import match_ids
from federank.recommenders.recommender import Recommender

SAMPLED = ("sampled_hit_rate", "sampled_ndcg", "sampled_mrr")
"""The metrics of this kind."""
NEGATIVES = 99
"""How many items a test item is ranked among, unless told otherwise."""


def sampled_means(
    model: Recommender, split: Split, at: Sequence[int], *, negatives: int = NEGATIVES, seed: int = 1
) -> dict[str, RealVector]:
    """Each metric at each N, a value per user who is tested, in the order of their numbers: the mean of their items."""
    ranks = _refusing_ranks(model, split, negatives, max(at), seed)
    sizes = split.test.profiles.sizes
    owners = np.repeat(np.arange(np.count_nonzero(sizes)), sizes[sizes > 0])
    found = {}
    for n in at:
        for name, values in _worth(ranks, n).items():
            found[f"{name}@{n}"] = np.bincount(owners, weights=values) / np.bincount(owners)
    return found


def evaluate_with_sampled_negatives(
    model: Recommender, split: Split, *, negatives: int = 100, at: int = 10, seed: int = 1
) -> dict[str, float]:
    """Sampled hit rate, nDCG and reciprocal rank at N, as means over test interactions."""
    ranks = _refusing_ranks(model, split, negatives, at, seed)
    means = {f"{name}@{at}": float(values.mean()) for name, values in _worth(ranks, at).items()}
    return means | {"sampled_negatives": negatives, "test_interactions": len(ranks)}


def _refusing_ranks(model: Recommender, split: Split, negatives: int, at: int, seed: int) -> RealVector:
    if negatives < 1 or at < 1:
        raise SettingError(f"negatives is {negatives} and at is {at}; both must be at least 1.")
    refuse_learnt_test(model.training, split)
    if not len(split.test):
        raise SettingError("The test part is empty; hold out more to have something to test on.")
    return _ranks(model, split, negatives, seed)


def _worth(ranks: RealVector, at: int) -> dict[str, RealVector]:
    """What each rank is worth in a list of this length."""
    inside = ranks <= at
    values = inside.astype(np.float64), np.where(inside, 1 / np.log2(ranks + 1), 0), np.where(inside, 1 / ranks, 0)
    return dict(zip(SAMPLED, values, strict=True))


def _ranks(model: Recommender, split: Split, negatives: int, seed: int) -> RealVector:
    """The rank of each test interaction among its negatives; infinite where the model knows the user or item not."""
    users = match_ids(split.test.user_ids, model.user_ids)
    items = match_ids(split.test.item_ids, model.item_ids)
    ranks = np.full(len(split.test), np.inf)
    position = 0
    for user in np.flatnonzero(split.test.profiles.sizes):
        wanted = items[split.test.profiles.of(int(user))]
        positions = slice(position, position := position + len(wanted))
        if users[user] < 0:
            continue
        free = np.ones(len(model.item_ids), dtype=bool)
        free[model.seen.of(int(users[user]))] = False
        free[wanted[wanted >= 0]] = False
        candidates = np.flatnonzero(free)
        if len(candidates) < negatives:
            raise SettingError(
                f"User {split.test.user_ids[user]} leaves only {len(candidates):,} items to draw {negatives:,} "
                "negatives from; ask for fewer."
            )
        scores = model._score_users(users[user : user + 1].astype(np.int32))[0]
        rng = np.random.default_rng((seed, int(user)))
        ranks[positions] = [
            _rank(scores, int(item), rng.choice(candidates, negatives, replace=False)) if item >= 0 else np.inf
            for item in wanted
        ]
    return ranks


def _rank(scores: FloatVector, item: int, drawn: LongVector) -> float:
    if np.isnan(scores[item]):
        return np.inf
    before = (scores[drawn] > scores[item]) | ((scores[drawn] == scores[item]) & (drawn < item))
    return 1 + int(before.sum())
