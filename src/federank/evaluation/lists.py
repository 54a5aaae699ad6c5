"""The lists to be judged, from anyone who made them, in the split's own numbers.

A recommender, any object with `recommend(users, n)`, a `Recommendations`, a frame with the columns user, item and
score, a dictionary of lists by user, or a file of another toolkit: all become one row of item numbers per evaluated
user. Numbers differ between a model (which knows training only) and a split (which numbers the full data set), so
users and items are matched by their original ids. A model that knows no one (one
that a federation has exported) recommends to everyone as to someone new.

What would make a judgement worthless is refused: a model that has learnt from what it is tested on, an
unknown item, an item twice in a list, an item that the user already has in training. A user without a
list keeps an empty row: every position counts as a miss.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from federank._numerics.arrays import FloatVector, Ids, IntMatrix, IntVector, LongVector, RealVector
from federank.data.interactions import Interactions, text_ids
from federank.data.memory import is_pandas
from federank.data.splits import Split
from federank.errors import BadSplit, DataError, SettingError, UnknownId
from federank.evaluation.metrics import find_hits
from federank.methods.predicting import can_enrol, recommend_to_new_users
from federank.methods.recommendations import Recommendations, match_ids, read_recommendations, recommendations_of
from federank.methods.recommender import Recommender


class MakesLists(Protocol):
    """Anything that recommends: asked for several users' lists, it answers with item ids for each."""

    def recommend(self, users: Any, n: int, /) -> Any:
        """The n best items of each of these users: lists in their order, or a mapping from the users' ids."""
        ...


Source = Recommender | Recommendations | MakesLists | Mapping[Any, Any] | pl.DataFrame | str | os.PathLike[str]
"""Whose lists can be judged."""


def lists_of(source: Any, split: Split, users: IntVector, n: int) -> IntMatrix:
    """The first n positions of each user's list, as the split numbers items; -1 where a list has ended."""
    if isinstance(source, Recommender):
        refuse_learnt_test(source._fitted(), split)
        if split.fold_in is not None and not can_enrol(source):
            raise SettingError(
                f"{source.name} knows only the users it was trained on, and this split tests held-out users; use a "
                "method with a fold-in, or another split."
            )
        if can_enrol(source) and (split.fold_in is not None or not source.training.n_users):
            made = recommend_to_new_users(source, split.history, users[split.history.profiles.sizes[users] > 0], n)
            return _arranged(made, split.history, users, n)
        numbers = match_ids(split.train.user_ids[users], source.user_ids)
        made = source.recommend_numbers(numbers[numbers >= 0].astype(np.int32), n)
    elif isinstance(source, Recommendations):
        made = source
    elif isinstance(source, str | os.PathLike):
        made = read_recommendations(source, known=split.history)
    elif isinstance(source, pl.DataFrame) or is_pandas(source):
        made = recommendations_of(source)
    elif isinstance(source, Mapping):
        made = _listed(source)
    elif callable(getattr(source, "recommend", None)) and not isinstance(source, type):
        made = _asked(source, split.history, users, n)
    else:
        what = f"The class {source.__name__}" if isinstance(source, type) else f"A {type(source).__name__}"
        raise SettingError(
            f"{what} cannot be evaluated; give a fitted recommender, an object with "
            "recommend(users, n), recommendations, a frame or a dictionary of them, or the path of a file of them."
        )
    return _arranged(made, split.history, users, n)


def refuse_learnt_test(training: Interactions, split: Split) -> None:
    """Raise if a model was trained on an interaction that it is to be tested on."""
    user, item = match_ids(training.user_ids, split.test.user_ids), match_ids(training.item_ids, split.test.item_ids)
    users, items = user[training.users].astype(np.int32), item[training.items].astype(np.int32)
    if np.array_equal(users, split.train.users) and np.array_equal(items, split.train.items):
        return  # the training part itself, which no split lets overlap with its test
    both = (users >= 0) & (items >= 0)
    learnt = find_hits(items[both, None], users[both], split.test.profiles)
    if learnt.any():
        raise BadSplit(
            f"The model was trained on {int(learnt.sum()):,} of the {len(split.test):,} interactions that it would be "
            "tested on; a test on what was learnt proves nothing. Train it on this split's training part."
        )


def _asked(source: Any, train: Interactions, users: IntVector, n: int) -> Recommendations:
    """What an object that is not ours recommends to the users who have a training row."""
    known = users[train.profiles.sizes[users] > 0]
    ids = train.user_ids[known].tolist()
    answer = source.recommend(ids, n)
    if isinstance(answer, Recommendations):
        return answer
    if isinstance(answer, Mapping):
        answer = [answer.get(user, ()) for user in ids]
    if not isinstance(answer, Iterable) or len(lists := [_item_ids(row) for row in answer]) != len(ids):
        raise DataError(
            f"{type(source).__name__}.recommend answered with {type(answer).__name__!r} that does not fit; a list of "
            f"items for each of the {len(ids):,} users is needed, in their order or by their id."
        )
    return _as_recommendations(train.user_ids[known], lists)


def _listed(lists: Mapping[Any, Any]) -> Recommendations:
    """Lists of items by the user's id."""
    if not lists:
        raise DataError("The dictionary of recommendations is empty; a list of items by each user's id is needed.")
    wrong = next((user for user, row in lists.items() if isinstance(row, str) or not isinstance(row, Iterable)), None)
    if wrong is not None:
        raise DataError(f"The list of user {wrong!r} is {lists[wrong]!r}; a list of items is needed, the best first.")
    return _as_recommendations(_as_ids(list(lists)), [_item_ids(row) for row in lists.values()])


def _as_recommendations(users: Ids, lists: list[list[Any]]) -> Recommendations:
    """Lists of item ids as recommendations; where they are the same ids, the same item is meant."""
    items = np.full((len(lists), max(map(len, lists), default=0)), -1, dtype=np.int32)
    number = {item: code for code, item in enumerate(dict.fromkeys(item for row in lists for item in row))}
    for position, row in enumerate(lists):
        items[position, : len(row)] = [number[item] for item in row]
    return Recommendations(users, items, np.zeros(items.shape, dtype=np.float32), _as_ids(list(number)))


def _item_ids(row: Iterable[Any]) -> list[Any]:
    """Item ids from a list of ids or of (id, score, ...) tuples."""
    result = [entry[0] if isinstance(entry, tuple) else entry for entry in row]
    return [entry.item() if isinstance(entry, np.generic) else entry for entry in result]


def _as_ids(items: list[Any]) -> Ids:
    if items and all(isinstance(item, int | np.integer) for item in items):
        return np.array(items, dtype=np.int64)
    return text_ids(str(item) for item in items)


def _arranged(made: Recommendations, train: Interactions, users: IntVector, n: int) -> IntMatrix:
    """Check the lists and put them in the order of `users`, cut to n positions."""
    if np.isnan(made.scores[made.items >= 0]).any():
        raise DataError("Some recommended items have a score that is no number; leave them out of the lists.")
    numbers = _known(made.users, train.user_ids, "users")
    if len(np.unique(numbers)) < len(numbers):
        raise DataError("A user has two lists of recommendations; one for each is needed.")
    used = np.unique(made.items[made.items >= 0])
    item_number = np.full(len(made.item_ids) + 1, -1, dtype=np.int32)
    item_number[used] = _known(made.item_ids[used], train.item_ids, "items")
    items = item_number[made.items]
    _refuse_repeats(items, numbers, train)
    _refuse_training_items(items, numbers, train)
    row_of = np.full(train.n_users, -1, dtype=np.int64)
    row_of[numbers] = np.arange(len(numbers))
    arranged = np.full((len(users), n), -1, dtype=np.int32)
    there = row_of[users] >= 0
    width = min(n, items.shape[1])
    arranged[there, :width] = items[row_of[users[there]], :width]
    return arranged


def _known(ids: Ids, known: Ids, kind: str) -> IntVector:
    numbers = match_ids(ids, known)
    if (numbers < 0).any():
        first = ids[int(np.argmax(numbers < 0))]
        raise UnknownId(
            f"Of the {len(ids):,} {kind} in the recommendations, {int((numbers < 0).sum()):,} cannot be found in the "
            f"split (the first: {first}); evaluate on a split of the data that the recommendations were made from."
        )
    return numbers.astype(np.int32)


def _refuse_repeats(items: IntMatrix, numbers: IntVector, train: Interactions) -> None:
    ordered = np.sort(items, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, at = (int(where[0]) for where in np.nonzero(twice))
        raise DataError(
            f"Item {train.item_ids[ordered[row, at]]} is twice in the list of user {train.user_ids[numbers[row]]}; "
            "each item may be recommended once."
        )


def _refuse_training_items(items: IntMatrix, numbers: IntVector, train: Interactions) -> None:
    held = find_hits(items, numbers, train.profiles)
    if held.any():
        row, at = (int(where[0]) for where in np.nonzero(held))
        raise DataError(
            f"{int(held.sum()):,} recommended items are in the training part of the user they are recommended to (the "
            f"first: item {train.item_ids[items[row, at]]} for user {train.user_ids[numbers[row]]}); leave out what "
            "a user already has."
        )


# Sampled-negative metrics: each test item ranked among a few items drawn at random, beside the full ranking.


SAMPLED = ("sampled_hit_rate", "sampled_ndcg", "sampled_mrr")
"""The metrics of this kind."""
NEGATIVES = 99
"""How many items a test item is ranked among, by default."""


def sampled_means(
    model: Recommender, split: Split, at: Sequence[int], *, negatives: int = NEGATIVES, seed: int = 1
) -> dict[str, RealVector]:
    """Each metric at each N, a value per user who is tested, in the order of their numbers: the mean of their items."""
    if negatives < 1 or min(at) < 1:
        raise SettingError(f"negatives is {negatives} and at is {min(at)}; both must be at least 1.")
    refuse_learnt_test(model.training, split)
    if split.fold_in is not None:
        raise SettingError("Sampled negatives are drawn for users of training; this split tests held-out users.")
    if not len(split.test):
        raise SettingError("The test part is empty; hold out more to have something to test on.")
    ranks = _ranks(model, split, negatives, seed)
    sizes = split.test.profiles.sizes
    owners = np.repeat(np.arange(np.count_nonzero(sizes)), sizes[sizes > 0])
    result = {}
    for n in at:
        inside = ranks <= n
        worth = inside.astype(np.float64), np.where(inside, 1 / np.log2(ranks + 1), 0), np.where(inside, 1 / ranks, 0)
        for name, values in zip(SAMPLED, worth, strict=True):
            result[f"{name}@{n}"] = np.bincount(owners, weights=values) / np.bincount(owners)
    return result


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
