"""How well lists hit what people chose later: precision, recall and their kin, one value per user.

All of them see a list as hits and misses. `hits[u, k]` says whether position k (from 0) of user u's list holds one of
the user's test items; `relevant[u]` is how many test items the user has, those that training never showed and that
no list can hold included. Only the first N positions count. A list that is shorter than N misses in its last positions,
and a user without a list misses in all.

    precision   hits / N, also where the list is shorter
    recall      hits / relevant
    f1          harmonic mean of the two, of each user, then the mean; 0 where both are 0
    ndcg        sum over hits of 1 / log2(rank + 1), over the same sum for a perfect list (binary gains)
    map         sum over hits of precision at their rank, over relevant (average precision as in trec_eval)
    mrr         1 / rank of the first hit
    hit_rate    1 if there is a hit

Ranks start at 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from federank import extensions
from federank.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.data.interactions import Profiles
from federank.errors import SettingError

Hits = NDArray[np.bool_]
Metric = Callable[[Hits, LongVector, int], RealVector]
"""A metric: from hits, how many test items each user has, and N, a value for each user."""


def find_hits(items: IntMatrix, users: IntVector, test: Profiles) -> Hits:
    """Which positions of the lists hold a test item; row k of `items` is the list of `users[k]`, -1 where it ends."""
    width = int(max(items.max(initial=0), test.items.max(initial=0))) + 1
    wanted = np.repeat(np.arange(len(test.sizes)), test.sizes) * width + test.items
    given = users.astype(np.int64)[:, None] * width + items
    positions = np.minimum(np.searchsorted(wanted, given), len(wanted) - 1)
    found: Hits = (items >= 0) & (wanted[positions] == given) if len(wanted) else np.zeros(items.shape, dtype=bool)
    return found


def precision(hits: Hits, relevant: LongVector, n: int) -> RealVector:  # noqa: ARG001 (all metrics are asked alike)
    """The share of the N positions that hold a test item."""
    return _count(hits, n) / n


def recall(hits: Hits, relevant: LongVector, n: int) -> RealVector:
    """The share of the test items that are in the list."""
    return _count(hits, n) / relevant


def f1(hits: Hits, relevant: LongVector, n: int) -> RealVector:
    """The harmonic mean of precision and recall."""
    # 2 P R / (P + R) with P = h / N and R = h / relevant is 2 h / (N + relevant).
    return 2 * _count(hits, n) / (n + relevant)


def ndcg(hits: Hits, relevant: LongVector, n: int) -> RealVector:
    """The discounted hits as a share of what a perfect list of N would have."""
    discounts = 1 / np.log2(np.arange(2, n + 2))
    ideal = np.concatenate(([0.0], np.cumsum(discounts)))
    gained: RealVector = hits[:, :n] @ discounts[: hits.shape[1]]
    return gained / ideal[np.minimum(relevant, n)]


def average_precision(hits: Hits, relevant: LongVector, n: int) -> RealVector:
    """Precision at each hit's rank, summed and divided by all that could be hit."""
    cut = hits[:, :n]
    at_rank = np.cumsum(cut, axis=1) / np.arange(1, cut.shape[1] + 1)
    total: RealVector = (at_rank * cut).sum(axis=1)
    return total / relevant


def reciprocal_rank(hits: Hits, relevant: LongVector, n: int) -> RealVector:  # noqa: ARG001
    """One over the rank of the first hit, 0 without one."""
    cut = hits[:, :n]
    first: RealVector = (cut / np.arange(1, cut.shape[1] + 1)).max(axis=1, initial=0.0)
    return first


def hit_rate(hits: Hits, relevant: LongVector, n: int) -> RealVector:  # noqa: ARG001
    """1 for a list with a hit, 0 for one without."""
    return np.minimum(_count(hits, n), 1.0)


def _count(hits: Hits, n: int) -> RealVector:
    counts: RealVector = hits[:, :n].sum(axis=1, dtype=np.float64)
    return counts


RANKING: dict[str, Metric] = {
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "ndcg": ndcg,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "hit_rate": hit_rate,
}
"""The metrics by the names they have in a report."""


def registered_metrics() -> dict[str, Metric]:
    """The metrics that other packages bring, or that were registered, by name."""
    return extensions.found("metrics")


def register_metric(metric: Metric, name: str | None = None) -> Metric:
    """Make a metric of your own known by its name, for this process: `f(hits, relevant, n)`, a value per user.

    `hits[u, k]` says whether position k of user u's list holds a test item, `relevant[u]` how many test items the user
    has. A package that is installed beside this one can name its metrics once for all, as entry points of the group
    `federank.metrics`.
    """
    called = str(name or getattr(metric, "__name__", ""))
    if called in RANKING or not callable(metric):
        raise SettingError(f"{called or metric!r} cannot be a new metric; give a function, under a name of its own.")
    extensions.add("metrics", called, metric)
    return metric
