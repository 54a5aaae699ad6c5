"""Where people go next, known places included: an evaluation for check-ins (data/revisits.py divides them).

    found = evaluate_revisits(model, later, at=10)
    found["recall@10"], found["recall_known@10"], found["recall_new@10"], found["known_share"]

All items are ranked, those that a person has in training too. A method that only tells people of what they have is
good at `known` and gets nothing of `new`: the two are told apart, and `known_share` says how much of the test is which.
`evaluate` leaves out what people have, and tests on new items alone; its figures do not stand beside these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.checks import whole
from federank.data.interactions import Interactions, Profiles
from federank.data.loading import read_part
from federank.errors import BadSplit
from federank.evaluation.metrics.ranking import RANKING, find_hits
from federank.models.topn import top_n
from federank.recommenders.recommendations import match_ids
from federank.recommenders.recommender import Recommender

_METRICS = ("precision", "recall", "ndcg", "hit_rate")
_BLOCK = 256
_NOTHING_SEEN = np.zeros(0, dtype=np.int32)


def evaluate_revisits(model: Recommender, later: Any, *, at: int = 10) -> dict[str, float]:
    """Judge a model by where its people went later: `later` is interactions, or whatever `load` reads.

    Means are over the people of `later` whom the model knows and who went to a place it knows.
    """
    whole("at", at, 1)
    part = later if isinstance(later, Interactions) else read_part(later)
    users = match_ids(part.user_ids, model.user_ids)[part.users]
    items = match_ids(part.item_ids, model.item_ids)[part.items]
    known = (users >= 0) & (items >= 0)
    if not known.any():
        raise BadSplit(
            "Nobody of these data is known to the model, or none of their items; give later rows of its own."
        )
    visits = _profiles(users[known], items[known], len(model.user_ids))
    people = np.flatnonzero(visits.sizes).astype(np.int32)
    lists = np.concatenate(
        [_lists(model, people[begin : begin + _BLOCK], at) for begin in range(0, len(people), _BLOCK)]
    )
    hits, sizes = find_hits(lists, people, visits), visits.sizes[people]
    found = {f"{name}@{at}": float(RANKING[name](hits, sizes, at).mean()) for name in _METRICS}
    had = find_hits(lists, people, model.seen) & hits
    old = _counts(visits, model.seen, people)
    for kind, hit, count in (("known", had, old), ("new", hits & ~had, sizes - old)):
        tested = count > 0
        shares: RealVector = hit.sum(axis=1)[tested] / count[tested]
        found[f"recall_{kind}@{at}"] = float(shares.mean()) if tested.any() else 0.0
    told = {"users": len(people), "rows_left_out": int(len(part) - known.sum())}
    return found | {"known_share": float(old.sum() / sizes.sum())} | told


def _lists(model: Recommender, people: IntVector, at: int) -> IntMatrix:
    """The best items of all, whoever has them already."""
    nothing = Profiles(np.zeros(len(model.user_ids) + 1, dtype=np.int64), _NOTHING_SEEN)
    items, scores = top_n(model._score_users(people), people, nothing, min(at, len(model.item_ids)))
    if model.zero_is_nothing:
        items[scores == 0] = -1
    return items


def _profiles(users: LongVector, items: LongVector, n_users: int) -> Profiles:
    order = np.lexsort((items, users))
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users))))
    return Profiles(starts.astype(np.int64), items[order].astype(np.int32))


def _counts(visits: Profiles, seen: Profiles, people: IntVector) -> RealVector:
    """How many of the places of each of these people are known to them."""
    return np.array(
        [np.isin(visits.of(int(u)), seen.of(int(u)), assume_unique=True).sum() for u in people], dtype=float
    )
