"""Dividing interactions into what is learnt from and what is tested on.

Every way of splitting gives a `Split`: train, test and, where asked for, validation, all with the numbering of
the full data set. A split whose parts share a (user, item) pair cannot be made: it would reward memory.

The papers hold out, for each user, the floor(r n) newest of n interactions, and cut validation from what is left
in the same way. Of interactions of the same moment, the item that comes first in the sorted order of ids is held
out first: on data with times by the day this decides much, and it is the order that gives the papers' training
catalogues (34,526 items on Amazon Digital Music, 3,666 on MovieLens 1M) and their Most Popular row to five decimals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank import checks
from federank._numerics.arrays import Ids, IntVector, LongVector
from federank.checks import check_choice, check_int
from federank.data.datasets import find_parts
from federank.data.interactions import Categories, Interactions, number_ids, text_ids
from federank.errors import BadSplit, DataError, SettingError


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """What to learn from and what to test on; refuses to exist if the parts overlap."""

    train: Interactions
    test: Interactions
    validation: Interactions | None = None
    how: str = "given"
    """The way it was made, as one line for reports."""
    fold_in: Interactions | None = None
    """Strong generalisation: what is known of held-out users when they are tested. No method trains on it."""

    def __post_init__(self) -> None:
        if not len(self.train):
            raise BadSplit("Nothing is left to train on; hold out less.")
        held_out = {"test": self.test, "validation": self.validation, "fold_in": self.fold_in}
        for name, part in held_out.items():
            if part is not None:
                _refuse_overlap(self.train, part, "train", name)
                if self.fold_in is not None and name != "fold_in":
                    _refuse_overlap(self.fold_in, part, "fold_in", name)
        if self.validation is not None:
            _refuse_overlap(self.validation, self.test, "validation", "test")

    def __repr__(self) -> str:
        held = "" if self.validation is None else f", {len(self.validation):,} validation"
        return f"<split of {self.train.name} ({self.how}): {len(self.train):,} train{held}, {len(self.test):,} test>"

    @property
    def unseen_items(self) -> IntVector:
        """Items of the full data set that training never shows, so that no method can recommend them."""
        return np.flatnonzero(self.train.popularity == 0).astype(np.int32)

    @property
    def history(self) -> Interactions:
        """What each tested user already has: the training part, or the fold-in part of held-out users."""
        return self.train if self.fold_in is None else self.fold_in

    @property
    def development(self) -> Split:
        """The same training part with validation in the place of test: where settings are chosen."""
        if self.validation is None:
            raise BadSplit("This split has no validation part to choose settings on; make it with validation > 0.")
        return Split(self.train, self.validation, how=f"{self.how}, validation as test", fold_in=self.fold_in)


def split_temporal(data: Interactions, test: float = 0.2, validation: float = 0.0) -> Split:
    """Hold out each user's newest interactions, as the papers do."""
    _check(data, test, validation)
    how = f"newest {test:g} of each user" + (f", then {validation:g} for validation" if validation else "")
    return _by_share(data, _age_ranks(data), test, validation, how)


def mirrored(data: Interactions) -> Interactions:
    """The same with time running backwards: the newest becomes the oldest."""
    times = _times(data)
    return replace(data, times=times.max() + times.min() - times) if len(times) else data


def split_leave_last_out(data: Interactions, *, validation: bool = False) -> Split:
    """Hold out each user's newest interaction, and the one before it for validation; users with one keep it."""
    _check(data)
    sizes = data.profiles.sizes
    n_validation = (sizes > 2) & validation
    return _by_rank(data, _age_ranks(data), (sizes > 1) * 1, n_validation * 1, "newest one of each user")


def split_temporal_global(data: Interactions, test: float = 0.2, validation: float = 0.0) -> Split:
    """Hold out everything after one moment in time, the same for all users."""
    _check(data, test, validation)
    times = _times(data)
    ordered = np.sort(times)
    test_from = ordered[len(times) - int(test * len(times))] if int(test * len(times)) else ordered[-1] + 1
    before = int(np.searchsorted(ordered, test_from))
    n_validation = int(validation * before)
    validation_from = ordered[before - n_validation] if n_validation else test_from
    where = np.where(times >= test_from, 2, np.where(times >= validation_from, 1, 0))
    return _by_part(data, where, validation > 0, f"all from time {int(test_from)} on")


def split_random(data: Interactions, test: float = 0.2, validation: float = 0.0, seed: int = 1) -> Split:
    """Hold out a share of each user's interactions at random: floor(r n), as in the temporal form."""
    _check(data, test, validation)
    checks.check_seed(seed)
    ranks = _ranks(data, np.random.default_rng(seed).random(len(data)))
    return _by_share(data, ranks, test, validation, f"random {test:g} of each user, seed {seed}")


def split_folds(data: Interactions, folds: int = 5, seed: int = 1) -> list[Split]:
    """A random partition of all interactions into folds; each is the test part of one split."""
    _check(data)
    checks.check_int("folds", folds, 2, len(data))
    checks.check_seed(seed)
    fold = np.random.default_rng(seed).permutation(len(data)) % folds
    how = f"random folds, seed {seed}, {{}} of {folds}"
    return [_by_part(data, np.where(fold == k, 2, 0), False, how.format(k + 1)) for k in range(folds)]


def split_strong(
    data: Interactions,
    held_out_users: float | Sequence[Any] = 0.2,
    *,
    validation_users: float = 0.0,
    fold_in: float = 0.8,
    seed: int = 1,
) -> Split:
    """Strong generalisation (Liang et al., 2018): test on users of whom nothing is trained on.

    `held_out_users` and `validation_users` are shares of all users, or integer counts; `held_out_users` may be a list
    of ids. A random `fold_in` share of each held-out history is given to the model when the user is tested, the rest
    is what the user is tested on. Held-out users with too few interactions for both parts are in neither.
    """
    _check(data)
    checks.check_seed(seed)
    checks.check_fraction("fold_in", fold_in)
    rng = np.random.default_rng(seed)
    order = rng.permutation(data.n_users)
    if isinstance(held_out_users, int | float | np.number):
        test_users = order[: _count_users("held_out_users", held_out_users, data.n_users)]
        if not len(test_users):
            raise SettingError(f"held_out_users is {held_out_users}; at least one user must be held out.")
    else:
        checks.check_iterable("held_out_users", held_out_users, "a share, a count, or a list of ids")
        test_users = np.array(sorted({data.user_index(user) for user in held_out_users}), dtype=np.int64)
        order = order[~np.isin(order, test_users)]
        order = np.concatenate((test_users, order))
    n_validation = _count_users("validation_users", validation_users, data.n_users)
    if len(test_users) + n_validation >= data.n_users:
        raise SettingError(
            f"{len(test_users):,} users for the test and {n_validation:,} for validation leave none of the "
            f"{data.n_users:,} to train on; hold out fewer."
        )
    role = np.zeros(data.n_users, dtype=np.int64)
    role[test_users] = 2
    role[order[len(test_users) : len(test_users) + n_validation]] = 1
    ranks, sizes = _ranks(data, rng.random(len(data))), data.profiles.sizes
    known = np.ceil(fold_in * sizes)[data.users]
    tested = (sizes - np.ceil(fold_in * sizes) >= 1)[data.users] & (known >= 1)
    part = role[data.users]
    how = f"{len(test_users):,} held-out users, {fold_in:g} of each history for fold-in, seed {seed}"
    return Split(
        train=data.take(part == 0),
        test=data.take((part == 2) & tested & (ranks >= known)),
        validation=data.take((part == 1) & tested & (ranks >= known)) if n_validation else None,
        how=how,
        fold_in=data.take((part > 0) & tested & (ranks < known)),
    )


def _count_users(name: str, wanted: Any, n_users: int) -> int:
    """A number of users, given as a count or as a share of all."""
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
        checks.check_int(name, wanted, 0, n_users)
        return int(wanted)
    checks.check_fraction(name, wanted)
    return int(wanted * n_users)


def split_given(train: Any, test: Any = None, validation: Any = None) -> Split:
    """Parts that someone else has made: interactions, or whatever `load` reads (frames, columns, rows, files).

    A known set that is published with its split needs its name alone: `split_given("gowalla")`.
    Users and items are matched by their original ids and numbered together.
    """
    from federank.data.loading import read_parts

    if test is None:
        checks.check_type("train", train, str, "beside test=None, the name of a set with a published split,")
        files = find_parts(train)
        split = split_given(files["train"], files["test"])
        return replace(split, train=replace(split.train, name=train), how=f"{train}, as published")
    given = {"train": train, "test": test} | ({} if validation is None else {"validation": validation})
    read = read_parts({name: part for name, part in given.items() if not isinstance(part, Interactions)})
    parts = {name: read.get(name, part) for name, part in given.items()}
    first = parts["train"]
    alike = all(
        np.array_equal(first.user_ids, part.user_ids) and np.array_equal(first.item_ids, part.item_ids)
        for part in parts.values()
    )
    numbered = parts if alike else numbered_together(parts)
    return Split(numbered["train"], numbered["test"], numbered.get("validation"))


def numbered_together(parts: Mapping[str, Interactions]) -> dict[str, Interactions]:
    """The same parts with one numbering of the users and items of all of them."""
    user_numbers, user_ids = number_ids(_joined([part.user_ids for part in parts.values()]), "user")
    item_numbers, item_ids = number_ids(_joined([part.item_ids for part in parts.values()]), "item")
    titles, categories = _item_details(parts.values(), item_ids)
    numbered, user_from, item_from = {}, 0, 0
    for name, part in parts.items():
        users = user_numbers[user_from : user_from + part.n_users][part.users]
        items = item_numbers[item_from : item_from + part.n_items][part.items]
        user_from, item_from = user_from + part.n_users, item_from + part.n_items
        order = np.lexsort((items, users))
        numbered[name] = replace(
            part,
            users=users[order],
            items=items[order],
            ratings=None if part.ratings is None else part.ratings[order],
            times=None if part.times is None else part.times[order],
            user_ids=user_ids,
            item_ids=item_ids,
            titles=titles,
            categories=categories,
            name=parts["train"].name,
        )
    return numbered


def _joined(ids: list[Ids]) -> Ids:
    """All ids in a row; where some are text, numbers become the text they are written as."""
    if len({one.dtype.kind for one in ids}) > 1:
        ids = [one.astype(np.dtypes.StringDType()) for one in ids]
    joined: Ids = np.concatenate(ids)
    return joined


def _item_details(parts: Iterable[Interactions], item_ids: Ids) -> tuple[Ids | None, Categories | None]:
    """Titles and categories of all items, from the parts that know them; the first to know an item is believed."""
    titles: dict[str, str] = {}
    categories: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for number, item in enumerate(part.item_ids.tolist()):
            if part.titles is not None:
                titles.setdefault(str(item), str(part.titles[number]))
            if part.categories is not None:
                categories.setdefault(str(item), part.categories.of(number))
    names = [str(item) for item in item_ids.tolist()]
    titled = text_ids(titles.get(name, "") for name in names)
    return (
        titled if titles else None,
        Categories.from_lists(categories.get(name, ()) for name in names) if categories else None,
    )


def _age_ranks(data: Interactions) -> LongVector:
    """Each row's rank among its user's rows, oldest first, ties in the authors' order."""
    return _ranks(data, -data.items, _times(data))


def _ranks(data: Interactions, *keys: NDArray[Any]) -> LongVector:
    """Each row's rank among its user's rows by these keys (the last weighs most)."""
    order = np.lexsort((*keys, data.users))
    ranks = np.empty(len(data), dtype=np.int64)
    ranks[order] = np.arange(len(data)) - data.profiles.starts[data.users[order]]
    return ranks


def _by_share(data: Interactions, ranks: LongVector, test: float, validation: float, how: str) -> Split:
    """Hold out these shares of each user's rows, the last by rank; validation is a share of what is left."""
    sizes = data.profiles.sizes
    n_test = np.floor(test * sizes).astype(np.int64)
    return _by_rank(data, ranks, n_test, np.floor(validation * (sizes - n_test)).astype(np.int64), how)


def _by_rank(data: Interactions, ranks: LongVector, n_test: LongVector, n_validation: LongVector, how: str) -> Split:
    from_end = (data.profiles.sizes - 1)[data.users] - ranks
    in_test = from_end < n_test[data.users]
    in_validation = from_end < (n_test + n_validation)[data.users]
    return _by_part(data, np.where(in_test, 2, np.where(in_validation, 1, 0)), bool(n_validation.any()), how)


def _by_part(data: Interactions, where: LongVector, validation: bool, how: str) -> Split:
    """A split from each row's part: 0 train, 1 validation, 2 test."""
    return Split(
        train=data.take(where == 0),
        test=data.take(where == 2),
        validation=data.take(where == 1) if validation else None,
        how=how,
    )


def _times(data: Interactions) -> LongVector:
    if data.times is None:
        raise DataError(f"{data.name} has no times, so it cannot be split by time; split it at random instead.")
    return data.times


def _check(data: Any, test: float = 0.0, validation: float = 0.0) -> None:
    checks.check_type("data", data, Interactions, "what fr.load gives")
    checks.check_fraction("test", test)
    checks.check_fraction("validation", validation)


def _refuse_overlap(one: Interactions, other: Interactions, one_name: str, other_name: str) -> None:
    width = max(one.n_items, other.n_items, 1)
    keys, others = (part.users.astype(np.int64) * width + part.items for part in (one, other))
    positions = np.minimum(np.searchsorted(keys, others), len(keys) - 1)
    shared = others[keys[positions] == others]
    if len(shared):
        user, item = one.user_ids[shared[0] // width], one.item_ids[shared[0] % width]
        raise BadSplit(
            f"{len(shared):,} interactions are in both {one_name} and {other_name} (the first: user {user}, item "
            f"{item}); a test on what was learnt proves nothing. Make the parts disjoint."
        )


# The ways of dividing a data set, by their names: what commands and studies may ask for, and what they get.


GIVEN = "given"
"""The way of a set that is published with its split; validation is drawn at random from its training part."""
WAYS = ("temporal", "global-temporal", "leave-last-out", "random", "strong")
"""The ways that give one split."""
FOLDS = "folds"
"""The way that gives several."""


@dataclass(frozen=True, kw_only=True)
class Division:
    """How a data set is to be divided."""

    way: str = "temporal"
    test: float = 0.2
    """The share held out for the test (strong: of the users); of no account where one interaction or a fold is."""
    validation: float = 0.0
    """The share of the rest held out for choosing (strong: of all users); with leave-last-out anything above 0 is one
    interaction."""
    seed: int = 1
    """Of random splits and folds."""
    folds: int | None = None
    mirrored: bool = False
    """Let time run backwards: a stand-in for a source that kept the latest of repeated visits, not the first."""

    def __post_init__(self) -> None:
        check_choice("The way of a split", self.way, (*WAYS, FOLDS, GIVEN))
        if self.way == FOLDS:
            check_int("folds", self.folds, 2)
        elif self.folds is not None:
            raise SettingError(f'folds go with way = "folds"; the way of this split is {self.way!r}.')
        if not isinstance(self.mirrored, bool):
            raise SettingError(f"mirrored is {self.mirrored!r}; true or false is needed.")
        if self.mirrored and self.way in ("random", "strong", FOLDS, GIVEN):
            raise SettingError(f"mirrored is about time, and a {self.way} split has none; leave it out.")

    def as_dict(self) -> dict[str, Any]:
        """What of it counts."""
        if self.way == FOLDS:
            return {"way": FOLDS, "seed": self.seed, "folds": self.folds}
        mirrored = {"mirrored": True} if self.mirrored else {}
        return {"way": self.way, "test": self.test, "validation": self.validation, "seed": self.seed} | mirrored


def divide(data: Interactions, division: Division) -> list[Split]:
    """The splits that are asked for: one, or one for each fold."""
    if division.mirrored:
        splits = divide(mirrored(data), replace(division, mirrored=False))
        return [replace(split, how=f"{split.how}, time mirrored") for split in splits]
    test, validation, seed = division.test, division.validation, division.seed
    match division.way:
        case "temporal":
            split = split_temporal(data, test, validation)
        case "global-temporal":
            split = split_temporal_global(data, test, validation)
        case "leave-last-out":
            split = split_leave_last_out(data, validation=validation > 0)
        case "random":
            split = split_random(data, test, validation, seed)
        case "given":
            split = split_given(data.name)
            if validation:  # drawn from training at random
                cut = split_random(split.train, validation, seed=seed)
                how = f"{split.how}, random {validation:g} of each user for validation, seed {seed}"
                split = Split(cut.train, split.test, cut.test, how=how)
        case "strong":
            split = split_strong(data, test, validation_users=validation, seed=seed)
        case _:
            return split_folds(data, division.folds or 0, seed)
    return [split]


def refuse_empty_parts(splits: Sequence[Split], division: Division) -> None:
    """A part that no one has anything in cannot be tested on: say so before anything is done with it."""
    for split in splits:
        empty = [] if len(split.test) else ["test"]
        if division.validation and not split.validation:
            empty.append("validation")
        if empty:
            raise SettingError(
                f"The {empty[0]} part would be empty: a share of everyone's history is rounded down, and no one has "
                "enough of it. Ask for a larger share, or keep users with more interactions (--min-interactions)."
            )


def joined(known: Interactions, new: Interactions) -> Interactions:
    """Everything of both, users and items matched by their ids; of a pair that both have, the new row stays."""
    if known.ratings is not None and new.ratings is None:
        raise DataError("The model has learnt from rows with ratings, and the new rows have none; give them theirs.")
    before, after = numbered_together({"train": known, "new": new}).values()
    users, items = np.concatenate((before.users, after.users)), np.concatenate((before.items, after.items))
    keys = users.astype(np.int64) * before.n_items + items
    # Of equal keys the last stays: the new one.
    _, last = np.unique(keys[::-1], return_index=True)
    rows = len(keys) - 1 - last
    both = (before.times is not None, after.times is not None)
    return replace(
        before,
        users=users[rows],
        items=items[rows],
        ratings=None if before.ratings is None else np.concatenate((before.ratings, after.ratings))[rows],  # type: ignore[arg-type]
        times=np.concatenate((before.times, after.times))[rows] if all(both) else None,  # type: ignore[arg-type]
        repeats_left_out=known.repeats_left_out + new.repeats_left_out,
    )
