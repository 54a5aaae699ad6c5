"""Evaluation: lists against what users chose later, for all who have something to be tested on.

    evaluation = evaluate(model, split, at=(5, 10))
    evaluation.means["ndcg@10"]          the mean over users
    evaluation.per_user                  a table with a row per user

1. The evaluated users are those with a test item. Everything in training that a user does not have yet is ranked
   (a recommender does this in blocks of users, so that users x items is never in memory), and the first N kept.
2. Each user's list is compared with the user's test items (metrics.py); means are taken over all evaluated
   users: one without a list counts as zero, and `user_coverage` says what share of the users has one.
3. The lists together are compared with the catalogue and with its categories.

What a reader of the numbers should know (users left out, lists that end early, items without category) is in
`notes`, a sentence each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from federank._numerics.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.checks import check_choice, check_iterable, check_type, unknown_name
from federank.data.interactions import Categories, Interactions, id_series, text_ids
from federank.data.splits import Split
from federank.data.statistics import top_categories
from federank.errors import BadFile, BadSplit, DataError, SettingError
from federank.evaluation import metrics as exposure
from federank.evaluation.lists import NEGATIVES, SAMPLED, Source, lists_of, sampled_means
from federank.evaluation.metrics import (
    ALL_USERS,
    RANKING,
    Hits,
    Metric,
    bias_table,
    find_hits,
    group_table,
    mae,
    recall,
    registered_metrics,
    rmse,
)
from federank.files import atomic_write
from federank.methods.predicting import PredictsRatings
from federank.methods.recommendations import match_ids, numbered_lines
from federank.methods.recommender import Recommender

_NEEDED = "an item, a tab and a category are needed on every line, and no header"


def items_without_category(categories: Categories, data: Interactions) -> int:
    """How many items that have an interaction have no category."""
    return int(np.count_nonzero((np.diff(categories.starts) == 0) & (data.popularity > 0)))


def read_categories(path: str | os.PathLike[str], data: Interactions) -> tuple[Categories, int]:
    """Categories from a file of two columns, item and category; and how many of its items the data do not know.

    An item may stand on several lines, one per category. The columns are separated by a tab; there is no header.
    """
    rows = _two_columns(Path(path), _NEEDED)
    named = rows["first"].unique(maintain_order=True)
    numbers = match_ids(text_ids(named), data.item_ids)
    if (numbers < 0).all():
        raise BadFile(
            f"None of the {len(named):,} items of {path} is in {data.name} (the first: {named[0]!r}); give the file of "
            f"this data set: {_NEEDED}."
        )
    number = dict(zip(named.to_list(), numbers.tolist(), strict=True))
    lists: list[list[str]] = [[] for _ in range(data.n_items)]
    for item, category in rows.select("first", "second").iter_rows():
        if number[item] >= 0:
            lists[number[item]].append(category)
    return Categories.from_lists(lists), int((numbers < 0).sum())


def read_groups(path: str | os.PathLike[str], data: Interactions) -> tuple[dict[Any, str], int]:
    """Groups of users from a file of two columns, user and group; and how many of its users the data do not know."""
    path = Path(path)
    rows = _two_columns(path, "a user, a tab and a group are needed on every line, and no header")
    twice = rows.filter(~pl.col("first").is_first_distinct())
    if len(twice):
        line, user, _ = twice.row(0)
        raise BadFile(f"Line {line} of {path} gives user {user} a second group; each user can be in one.")
    places = match_ids(text_ids(rows["first"]), data.user_ids)
    ids = data.user_ids.tolist()
    groups = {ids[place]: group for place, group in zip(places.tolist(), rows["second"], strict=True) if place >= 0}
    return groups, int((places < 0).sum())


def _two_columns(path: Path, needed: str) -> pl.DataFrame:
    """The lines of a file of two columns: their number, what comes first and what second."""
    fields = pl.col("text").str.splitn("\t", 2).struct.rename_fields(["first", "second"])
    rows = numbered_lines(path, needed).select("line", fields).unnest("text")
    unavailable = rows.filter(pl.col("second").is_null() | pl.col("second").str.contains("\t", literal=True))
    if len(unavailable):
        raise BadFile(f"Line {unavailable['line'][0]} of {path} has other than two columns; {needed}.")
    return rows


class PredictionErrors(NamedTuple):
    """What a test on ratings found."""

    mae: float
    rmse: float
    ratings: int
    unrated_items: int
    unknown_users: int

    @property
    def notes(self) -> list[str]:
        """Sentences on predictions that were fallbacks, where there were any."""
        content = {
            f"Test ratings of items never rated in training, predicted as the user's mean: {self.unrated_items:,}.": (
                self.unrated_items
            ),
            f"Test ratings of users without any in training, predicted as the mean of all: {self.unknown_users:,}.": (
                self.unknown_users
            ),
        }
        return [sentence for sentence, count in content.items() if count]


def prediction_errors(model: PredictsRatings, test: Interactions) -> PredictionErrors:
    """MAE and RMSE of a model on the ratings of a test part."""
    check_type("model", model, PredictsRatings, "a model that predicts ratings, such as fr.PMF,")
    check_type("test", test, Interactions, "the test part of a split")
    if test.ratings is None:
        raise DataError(f"{test.name} has no ratings to compare predictions with.")
    result = model.predict_all(test.user_ids[test.users], test.item_ids[test.items])
    scale = (model.settings.lowest, model.settings.highest)
    return PredictionErrors(
        mae(result.values, test.ratings, scale),
        rmse(result.values, test.ratings, scale),
        len(test),
        result.unrated_items,
        result.unknown_users,
    )


def over_folds(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every figure over the folds, and as `name_std` its deviation, of the folds as a population."""
    names = [name for name in figures[0] if all(name in fold for fold in figures)]
    means = {name: float(np.mean([fold[name] for fold in figures])) for name in names}
    return means | {f"{name}_std": float(np.std([fold[name] for fold in figures])) for name in names}


Part = Literal["test", "validation"]
EXPOSURE = ("item_coverage", "item_coverage_share", "gini_diversity", "gini", "epc", "arp", "popularity_lift")
BIAS = ("bias", "bias_disparity")
METRICS = (*RANKING, *EXPOSURE, *BIAS)
RATING = ("mae", "rmse")
Over = Literal["all", "covered"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What an evaluation found."""

    means: dict[str, float]
    """Each metric by its name and N ("ndcg@10"), bias also by category ("bias@10/Food"); `users`, `user_coverage`."""
    per_user: pl.DataFrame
    """A row per evaluated user: id, number of test items, length of the list, and the metrics that users have."""
    bias: pl.DataFrame | None
    """Bias and bias disparity per N, group of users and category, where items have categories."""
    notes: tuple[str, ...]
    """What was left out or counted in a special way."""
    at: tuple[int, ...]
    by_group: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The metrics of lists by user activity and by item popularity, four groups each (metrics.py)."""

    def __repr__(self) -> str:
        n = self.at[-1]
        shown = [f"{name}@{n} {self.means[f'{name}@{n}']:.5f}" for name in RANKING if f"{name}@{n}" in self.means]
        return f"<evaluation of {self.means['users']:,} users: {', '.join(shown)}>"

    def write_per_user(self, path: str | os.PathLike[str]) -> None:
        """Write the table of users as its name ends: .parquet, .json, or .tsv or .csv with a header."""
        kind = Path(path).suffix.lower()
        if kind not in (".parquet", ".tsv", ".csv", ".json"):
            raise SettingError(f"{path} ends in {kind or 'nothing'!r}; end the name in .parquet, .csv, .tsv or .json.")
        if kind == ".parquet":
            atomic_write(path, self.per_user.write_parquet)
        elif kind == ".json":
            atomic_write(path, self.per_user.write_json())
        else:
            separator = "\t" if kind == ".tsv" else ","
            atomic_write(path, lambda file: self.per_user.write_csv(file, separator=separator))


def evaluate(
    source: Source,
    split: Split,
    *,
    at: int | Sequence[int] = 10,
    part: Part = "test",
    metrics: Sequence[str | Metric] | None = None,
    over: Over = "all",
    categories: Categories | None = None,
    groups: Mapping[Any, str] | None = None,
    negatives: int | None = None,
) -> Evaluation:
    """Judge lists of recommendations by what a split holds out.

    `source` is a fitted recommender, any object with `recommend(users, n)` that answers with a list of item ids per
    user, a `Recommendations`, a frame with the columns user, item and score, a dictionary of lists by user, or the
    path of a three-column file. `metrics` names those wanted (all by default; `mae` and `rmse` of models that predict
    ratings), and may hold functions of your own with the form of those in metrics.py: `f(hits, relevant, n)`, a
    value per user. Means are over all users with a test item; `over="covered"` takes those who got a list.
    `categories` replaces the categories of the split's items; kinds of places are gathered into the papers' nine.
    `groups` maps users' ids to names of groups, for bias per group.
    `negatives` adds the metrics of test items ranked among this many items drawn at random (lists.py), which some
    papers print; they can be asked for by name too (`sampled_hit_rate`, `sampled_ndcg`, `sampled_mrr`: among 99).
    """
    check_type("split", split, Split, "a Split, such as fr.split_random(data) gives,")
    split = split.development if part == "validation" else split
    cuts = _cuts(at, split)
    check_choice("over", over, get_args(Over))
    ranking, wanted = _wanted(metrics)
    sizes = split.test.profiles.sizes
    users = np.flatnonzero(sizes).astype(np.int32)
    if not len(users):
        raise BadSplit(f"No user has anything in the {part} part; hold out more to have something to test on.")
    errors = _rating_errors(source, split, wanted)
    sampled = _sampled(source, split, wanted, cuts, negatives)
    items = lists_of(source, split, users, cuts[-1])
    coverage = float((items[:, 0] >= 0).mean())
    if over == "covered":
        kept = items[:, 0] >= 0
        if not kept.any():
            raise BadSplit("No one who is tested has a list, so there is no one to take means over; use over='all'.")
        users, items = users[kept], items[kept]
        sampled = {name: values[kept] for name, values in sampled.items()}
    lengths = (items >= 0).sum(axis=1)

    hits = find_hits(items, users, split.test.profiles)
    means: dict[str, float] = dict(errors)
    columns: dict[str, Any] = {"test_items": sizes[users], "recommended": lengths}
    of_users: dict[int, dict[str, RealVector]] = {}
    for n in cuts:
        values = {name: _values(name, metric, hits, sizes[users], n) for name, metric in ranking.items()}
        of_users[n] = {"recall": recall(hits, sizes[users], n)} | values
        columns |= {f"{name}@{n}": value for name, value in values.items()}
        means |= {f"{name}@{n}": float(value.mean()) for name, value in values.items()}
        exposed, per_user = _exposure(items[:, :n], users, split)
        means |= {f"{name}@{n}": value for name, value in exposed.items() if name in wanted}
        columns |= {f"{name}@{n}": value for name, value in per_user.items() if name in wanted}

    columns |= sampled
    means |= {name: float(values.mean()) for name, values in sampled.items()}
    kinds = categories if categories is not None else split.train.categories
    biases = None
    if kinds is not None and wanted.intersection(BIAS):
        kinds = top_categories(kinds)
        biases = pl.concat(
            bias_table(kinds, split.train, users, items[:, :n], groups).insert_column(0, pl.lit(n).alias("at"))
            for n in cuts
        )
        means |= _bias_means(biases, wanted)
    means |= {"users": len(users), "user_coverage": coverage}
    notes = _notes(split, users, items, kinds)
    if over == "covered":
        notes.insert(0, f"Means are over the {len(users):,} users who got a list, {coverage:.1%} of those tested.")
    if sampled:
        notes.append(f"Sampled: each test item among {negatives or NEGATIVES} items drawn at random, not among all.")
    by_group = group_table(split, users, items, hits, of_users)
    return Evaluation(means, _table(users, split, columns), biases, tuple(notes), cuts, by_group)


def _exposure(items: IntMatrix, users: IntVector, split: Split) -> tuple[dict[str, float], dict[str, RealVector]]:
    """What the lists show of the catalogue: over all users, and for each."""
    train = split.train
    counts = exposure.count_items(items, train.n_items)
    n_training_users = int(np.count_nonzero(train.profiles.sizes))
    popularity = exposure.popularity(items, train.popularity)
    novelty = exposure.novelty(items, train.popularity, n_training_users)
    of_profiles = exposure.profile_popularity(split.history.profiles, train.popularity)[users]
    covered = exposure.item_coverage(counts)
    overall = {
        "item_coverage": covered,
        "item_coverage_share": covered / train.n_items,
        "gini_diversity": exposure.gini_diversity(counts),
        "gini": exposure.gini(counts),
        "epc": _mean(novelty),
        "arp": _mean(popularity),
        "popularity_lift": exposure.popularity_lift(popularity, of_profiles),
    }
    return overall, {"epc": novelty, "arp": popularity}


def _mean(values: RealVector) -> float:
    """The mean over users who have a value; 0 if no one has."""
    held = values[~np.isnan(values)]
    return float(held.mean()) if len(held) else 0.0


def _bias_means(biases: pl.DataFrame, wanted: set[str]) -> dict[str, float]:
    """Bias of everyone's lists by category; groups of users are in the table only."""
    all_users = biases.filter(pl.col("group") == ALL_USERS)
    return {
        f"{name}@{row['at']}/{row['category']}": row[name]
        for name in BIAS
        if name in wanted
        for row in all_users.iter_rows(named=True)
        if row[name] is not None
    }


def _table(users: IntVector, split: Split, columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame({"user": id_series(split.train.user_ids[users]), **columns}).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )


def _notes(split: Split, users: IntVector, items: IntMatrix, kinds: Categories | None) -> list[str]:
    """Sentences on what was left out or counted in a special way, where there was any."""
    train, n = split.train, items.shape[1]
    lengths = (items >= 0).sum(axis=1)
    untested = int(np.count_nonzero(train.profiles.sizes) - np.count_nonzero(train.profiles.sizes[users]))
    empty, short = int((lengths == 0).sum()), int(((lengths > 0) & (lengths < n)).sum())
    unseen = int(np.count_nonzero(train.popularity[items[items >= 0]] == 0))
    bare = 0 if kinds is None else items_without_category(kinds, train)
    new_users = int(np.count_nonzero(split.history.profiles.sizes[users] == 0))
    new_items = int(np.count_nonzero(train.popularity[split.test.items] == 0))
    content = {
        f"Users of training without a test item, left out: {untested:,}.": untested,
        f"Test users without training data, to whom no list can be made: {new_users:,}.": new_users,
        f"Test interactions with items that are not in training, counted as misses: {new_items:,}.": new_items,
        f"Users without recommendations, counted as zero: {empty:,} of {len(users):,}.": empty,
        f"Lists of fewer than {n} items, the places they lack counted as misses: {short:,}.": short,
        f"Places filled with items that training never shows, counted like any other: {unseen:,}.": unseen,
        f"Training items without a category, counted in the total only: {bare:,}.": bare,
    }
    return [sentence for sentence, count in content.items() if count]


def _cuts(at: int | Sequence[int], split: Split) -> tuple[int, ...]:
    """The values of N, ascending."""
    listed = [at] if isinstance(at, int | np.integer) else at
    needed = "a length of a list, or several, such as 10 or [5, 10],"
    check_iterable("at", listed, needed)
    for n in listed:
        check_type("at", n, (int, np.integer), needed)
    cuts = tuple(sorted({int(n) for n in listed}))
    catalogue = int(np.count_nonzero(split.train.popularity))
    if not cuts or cuts[0] < 1:
        raise SettingError(f"at is {at}; give one or more lengths of a list, each at least 1.")
    if cuts[-1] > catalogue:
        raise SettingError(f"at is {cuts[-1]}, but training has only {catalogue:,} items to recommend; ask for fewer.")
    return cuts


def _wanted(metrics: Sequence[str | Metric] | None) -> tuple[dict[str, Metric], set[str]]:
    """The metrics of lists that are wanted, and the names of all that are."""
    brought = registered_metrics()
    if metrics is None:
        return RANKING | brought, {*METRICS, *brought}
    check_iterable("metrics", metrics, "a list of names, such as ['ndcg'],")
    result: dict[str, Metric] = {}
    names = set()
    for metric in metrics:
        if callable(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            if name in (*METRICS, *SAMPLED) or not name.isidentifier():
                raise SettingError(f"A metric of your own is called {name!r}; give the function another name.")
            result[name] = metric
        elif metric in brought:
            result[metric], name = brought[metric], metric
        elif metric in (*METRICS, *RATING, *SAMPLED):
            name = metric
        else:
            raise SettingError(unknown_name("metric", metric, (*METRICS, *RATING, *SAMPLED, *brought)))
        names.add(name)
    return {name: metric for name, metric in RANKING.items() if name in names} | result, names


def _values(name: str, metric: Metric, hits: Hits, relevant: LongVector, n: int) -> RealVector:
    """Everyone's value of a metric, once it is sure that there is one for each."""
    values = np.asarray(metric(hits, relevant, n), dtype=np.float64)
    if values.shape != (len(hits),) or not np.isfinite(values).all():
        raise SettingError(
            f"The metric {name} answered with something of shape {values.shape}, or with what is no number; a finite "
            f"number for each of the {len(hits):,} users is needed."
        )
    return values


def _sampled(
    source: Source, split: Split, wanted: set[str], cuts: tuple[int, ...], negatives: int | None
) -> dict[str, RealVector]:
    """Everyone's values among sampled negatives, where they were asked for."""
    asked = SAMPLED if negatives is not None else [name for name in SAMPLED if name in wanted]
    if not asked:
        return {}
    if not isinstance(source, Recommender):
        raise SettingError(f"A {type(source).__name__} has no scores, which {asked[0]} goes by; evaluate a model.")
    result = sampled_means(source, split, cuts, negatives=NEGATIVES if negatives is None else negatives)
    return {name: values for name, values in result.items() if name.partition("@")[0] in asked}


def _rating_errors(source: Source, split: Split, wanted: set[str]) -> dict[str, float]:
    """MAE and RMSE, where they were asked for by name."""
    asked = [name for name in RATING if name in wanted]
    if not asked:
        return {}
    if not isinstance(source, PredictsRatings):
        raise SettingError(f"A {type(source).__name__} predicts no ratings, so it has no {asked[0]}; leave that out.")
    result = prediction_errors(source, split.test)
    return {name: float(getattr(result, name)) for name in asked}
