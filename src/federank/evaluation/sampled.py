"""Sampled-negative metrics: each test item ranked among a few items drawn at random. Not what `evaluate` does.

They are cheap, and many papers print them; but they may order methods differently than the full ranking does
(Krichene and Rendle, 2020). So they live under a name of their own, every figure says `sampled`, and none of them
should stand beside a figure of the full ranking.

For each test interaction, `negatives` different items are drawn that the user has neither in training nor in test.
Its rank is 1 + the number of drawn items that come before it: a higher score, or the same score and a smaller
number. A test item that the model has never seen is a miss.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatVector, LongVector, RealVector
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.lists import refuse_learnt_test
from federank.recommenders.recommendations import match_ids
from federank.recommenders.recommender import Recommender


def evaluate_with_sampled_negatives(
    model: Recommender, split: Split, *, negatives: int = 100, at: int = 10, seed: int = 1
) -> dict[str, float]:
    """Sampled hit rate, nDCG and reciprocal rank at N, as means over test interactions."""
    if negatives < 1 or at < 1:
        raise SettingError(f"negatives is {negatives} and at is {at}; both must be at least 1.")
    refuse_learnt_test(model.training, split)
    ranks = _ranks(model, split, negatives, seed)
    if not len(ranks):
        raise SettingError("The test part is empty; hold out more to have something to test on.")
    inside = ranks <= at
    return {
        f"sampled_hit_rate@{at}": float(inside.mean()),
        f"sampled_ndcg@{at}": float(np.where(inside, 1 / np.log2(ranks + 1), 0).mean()),
        f"sampled_mrr@{at}": float(np.where(inside, 1 / ranks, 0).mean()),
        "sampled_negatives": negatives,
        "test_interactions": len(ranks),
    }


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
