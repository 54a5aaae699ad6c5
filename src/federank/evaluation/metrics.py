"""How well lists hit what users chose later: precision, recall and their kin, one value per user.

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

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from federank import extensions
from federank._numerics.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.data.interactions import Categories, Interactions, Profiles
from federank.data.splits import Split
from federank.data.statistics import gini as corrected_gini
from federank.errors import DataError, SettingError

Hits = NDArray[np.bool_]
Metric = Callable[[Hits, LongVector, int], RealVector]
"""A metric: from hits, how many test items each user has, and N, a value for each user."""


def find_hits(items: IntMatrix, users: IntVector, test: Profiles) -> Hits:
    """Which positions of the lists hold a test item; row k of `items` is the list of `users[k]`, -1 where it ends."""
    width = int(max(items.max(initial=0), test.items.max(initial=0))) + 1
    wanted = np.repeat(np.arange(len(test.sizes)), test.sizes) * width + test.items
    given = users.astype(np.int64)[:, None] * width + items
    positions = np.minimum(np.searchsorted(wanted, given), len(wanted) - 1)
    result: Hits = (items >= 0) & (wanted[positions] == given) if len(wanted) else np.zeros(items.shape, dtype=bool)
    return result


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


# What the lists show of the catalogue: how many items, how evenly, how well known.


def count_items(items: IntMatrix | IntVector, n_items: int) -> LongVector:
    """How often each item of a catalogue of `n_items` is in the lists."""
    return np.bincount(items[items >= 0], minlength=n_items).astype(np.int64)


def item_coverage(counts: LongVector) -> int:
    """How many different items are recommended to anyone."""
    return int(np.count_nonzero(counts))


def gini_diversity(counts: LongVector) -> float:
    """The papers' form: 1 where all items are recommended equally often, 0 where one item is all there is."""
    # G = 1 - sum over k = 1..n of (2k - n - 1) c_k / ((n - 1) sum c), c ascending
    return 1 - corrected_gini(counts) if counts.any() else 0.0


def gini(counts: LongVector) -> float:
    """The Gini coefficient: 0 where all items are recommended equally often, (n - 1) / n where one item is all."""
    n = len(counts)
    return (1 - gini_diversity(counts)) * (n - 1) / n if counts.any() else 0.0


def popularity(items: IntMatrix, training_counts: LongVector) -> RealVector:
    """The mean number of training users of each list's items; not a number where a list is empty."""
    held = items >= 0
    return _means(np.where(held, training_counts[items], 0).sum(axis=1), held.sum(axis=1))


def novelty(items: IntMatrix, training_counts: LongVector, n_users: int) -> RealVector:
    """The mean share of training users who do not have a list's item; not a number where a list is empty."""
    return 1 - popularity(items, training_counts) / n_users


def profile_popularity(profiles: Profiles, training_counts: LongVector) -> RealVector:
    """The mean number of training users of the items that each user has; not a number where there are none."""
    running = np.concatenate(([0], np.cumsum(training_counts[profiles.items])))
    return _means(np.diff(running[profiles.starts]), profiles.sizes)


def popularity_lift(of_lists: RealVector, of_profiles: RealVector) -> float:
    """By how much lists are more popular than their users' profiles, over users who have both."""
    both = ~(np.isnan(of_lists) | np.isnan(of_profiles))
    if not both.any():
        return 0.0
    before = float(of_profiles[both].mean())
    return (float(of_lists[both].mean()) - before) / before


def _means(totals: LongVector, sizes: LongVector) -> RealVector:
    means: RealVector = np.divide(totals, sizes, out=np.full(len(totals), np.nan), where=sizes > 0)
    return means


# How far predicted ratings are off, and how far a federated method is from its centralised twin.


Values = Sequence[float] | NDArray[Any]


def mae(predicted: Values, true: Values, scale: tuple[float, float] | None = None) -> float:
    """The mean absolute error; `scale` is the range of ratings that predictions are clipped to."""
    return float(np.abs(_errors(predicted, true, scale)).mean())


def rmse(predicted: Values, true: Values, scale: tuple[float, float] | None = None) -> float:
    """The root of the mean squared error; `scale` is the range of ratings that predictions are clipped to."""
    return float(np.sqrt(np.square(_errors(predicted, true, scale)).mean()))


def mean_difference(federated: Values, unfederated: Values) -> float:
    """MD: how far the means over folds are apart, in per cent of the unfederated mean."""
    ours, theirs = _folds(federated), _folds(unfederated)
    return float(abs(ours.mean() - theirs.mean()) / theirs.mean() * 100)


def standard_deviation_range(federated: Values, unfederated: Values) -> float:
    """STDR, the standard deviation range: the two deviations together, in per cent of the unfederated mean."""
    ours, theirs = _folds(federated), _folds(unfederated)
    return float((ours.std() + theirs.std()) / theirs.mean() * 100)


def _errors(predicted: Values, true: Values, scale: tuple[float, float] | None) -> RealVector:
    guesses, truths = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if guesses.shape != truths.shape or guesses.ndim != 1:
        raise DataError(f"There are {guesses.size} predictions for {truths.size} ratings; one for each is needed.")
    if not truths.size:
        raise DataError("There are no ratings to predict; a test part with ratings is needed.")
    if np.isnan(guesses).any():
        raise DataError(f"{int(np.isnan(guesses).sum()):,} predictions are not numbers; every rating needs one.")
    if scale is not None:
        low, high = scale
        if not low < high:
            raise SettingError(f"The scale of ratings is {low:g} to {high:g}; the lower end must come first.")
        guesses = np.clip(guesses, low, high)
    return guesses - truths


def _folds(values: Values) -> RealVector:
    folds = np.asarray(values, dtype=np.float64)
    if not folds.size:
        raise DataError("There are no folds to compare; give the error of each fold.")
    return folds


# Bias of categories: which kinds of items users choose more than their number suggests, and how lists shift that.


ALL_USERS = "all users"


def bias(categories: Categories, counts: LongVector, catalogue: LongVector) -> RealVector:
    """B of each category: `counts` is how often each item was chosen, `catalogue` is 1 for each item there is.

    Not a number where a category has no item in the catalogue, or nothing at all was chosen.
    """
    if not counts.any():
        return np.full(len(categories.names), np.nan)
    of_interactions = categories.weights(counts) / counts.sum()
    of_items = categories.weights(catalogue) / catalogue.sum()
    return _ratio(of_interactions, of_items)


def bias_disparity(recommended: RealVector, training: RealVector) -> RealVector:
    """BD of each category: 0 where lists are as biased as training, -1 where they leave the category out."""
    return _ratio(recommended - training, training)


def bias_table(
    categories: Categories,
    train: Interactions,
    users: IntVector,
    items: IntMatrix,
    groups: Mapping[Any, str] | None = None,
) -> pl.DataFrame:
    """B_train, B_recommended and BD per group of users and category of training items; everyone comes first.

    `users` and `items` are the lists. `groups` maps a user's original id to the name of the user's group.
    """
    catalogue = (train.popularity > 0).astype(np.int64)
    occurring = categories.weights(catalogue) > 0
    names, group_of = _groups(train, groups)
    frames = []
    for code, name in enumerate(names, start=-1):
        mine = np.ones(train.n_users, dtype=bool) if code < 0 else group_of == code
        chosen = train.popularity if code < 0 else count_items(train.items[mine[train.users]], train.n_items)
        before = bias(categories, chosen, catalogue)
        after = bias(categories, count_items(items[mine[users]], train.n_items), catalogue)
        columns = {"bias_train": before, "bias": after, "bias_disparity": bias_disparity(after, before)}
        frames.append(
            pl.DataFrame(
                {
                    "group": [name] * int(occurring.sum()),
                    "category": [
                        category for category, there in zip(categories.names, occurring, strict=True) if there
                    ],
                    **{title: pl.Series(column[occurring]).fill_nan(None) for title, column in columns.items()},
                }
            )
        )
    return pl.concat(frames)


def _groups(train: Interactions, groups: Mapping[Any, str] | None) -> tuple[list[str], IntVector]:
    """The groups' names, everyone first, and each user's position in the rest of them."""
    if groups is None:
        return [ALL_USERS], np.full(train.n_users, -1, dtype=np.int32)
    ids = train.user_ids.tolist()
    missing = [user for user in ids if user not in groups]
    if missing:
        raise DataError(f"{len(missing):,} users have no group (the first: {missing[0]!r}); give one to every user.")
    named = sorted({groups[user] for user in ids})
    position = {name: code for code, name in enumerate(named)}
    return [ALL_USERS, *named], np.array([position[groups[user]] for user in ids], dtype=np.int32)


def _ratio(above: RealVector, below: RealVector) -> RealVector:
    ratio: RealVector = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return ratio


# Metrics by group: users by activity, items by popularity, at most four groups each.
#
# Group 1 has the least active users or the least popular items. Users are cut at the quartiles of the sizes of their
# histories; items so that each group has about a quarter of the training interactions. Equal users or items share a
# group, so there may be fewer than four. Recall of a group of items is the share of the test interactions with them
# that are in the lists.


GROUPS = 4
ACTIVITY, POPULARITY = "activity", "popularity"


def activity_groups(sizes: LongVector) -> LongVector:
    """The group of each user, from 1: least active."""
    bounds = np.quantile(sizes, np.arange(1, GROUPS) / GROUPS)
    return 1 + np.searchsorted(bounds, sizes, side="left")


def popularity_groups(popularity: LongVector) -> LongVector:
    """The group of each item, from 1: least popular; 0 for items that are not in training."""
    counts = np.sort(popularity[popularity > 0])
    shares = np.cumsum(counts) / max(counts.sum(), 1)
    # The popularity at which each quarter of the interactions is reached, from the least popular item up.
    bounds = counts[np.searchsorted(shares, np.arange(1, GROUPS) / GROUPS)] if len(counts) else counts
    return np.where(popularity > 0, 1 + np.searchsorted(bounds, popularity, side="left"), 0)


def group_table(
    split: Split, users: IntVector, items: IntMatrix, hits: Hits, values: Mapping[int, Mapping[str, RealVector]]
) -> pl.DataFrame:
    """A row per N, kind of group and group: its bounds, its size, and the means of the metrics that it has."""
    sizes, popularity = split.history.profiles.sizes[users], split.train.popularity
    of_users, of_items = activity_groups(sizes), popularity_groups(popularity)
    tested = np.bincount(split.test.items[np.isin(split.test.users, users)], minlength=len(popularity))
    rows: list[dict[str, Any]] = []
    for n, metrics in values.items():
        for group in np.unique(of_users):
            inside = of_users == group
            row = {"at": n, "by": ACTIVITY, "group": int(group)}
            row |= {"least": int(sizes[inside].min()), "most": int(sizes[inside].max()), "size": int(inside.sum())}
            rows.append(row | {name: float(value[inside].mean()) for name, value in metrics.items()})
        for group in np.unique(of_items[of_items > 0]):
            inside = of_items == group
            counts = popularity[inside]
            row = {"at": n, "by": POPULARITY, "group": int(group)}
            row |= {"least": int(counts.min()), "most": int(counts.max()), "size": int(inside.sum())}
            held = int(tested[inside].sum())
            hit = int(inside[items[:, :n][hits[:, :n]]].sum())
            rows.append(row | {"recall": hit / held if held else None})
    return pl.DataFrame(rows, infer_schema_length=None)


def group_means(table: pl.DataFrame) -> dict[str, float]:
    """The same as named figures: `recall@10/activity-1`, `recall@10/popularity-4`."""
    about = ("at", "by", "group", "least", "most", "size")
    return {
        f"{name}@{row['at']}/{row['by']}-{row['group']}": value
        for row in table.iter_rows(named=True)
        for name, value in row.items()
        if name not in about and value is not None
    }
