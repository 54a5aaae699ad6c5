"""Who chose what, and when: the one type that everything after the readers works on.

An `Interactions` is a set of (user, item) pairs, each with an optional rating and an optional time. Users and
items are numbered 0, 1, 2, ... in the sorted order of their original ids, rows are sorted by user and then by
item, and no pair occurs twice: so the same content gives the same arrays, and the same fingerprint, from
whatever file and in whatever order it came.

Values never change: a filter or a split answers with a new `Interactions`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatVector, Ids, IntVector, LongVector, RealVector
from federank.checks import check_int
from federank.errors import DataError, SettingError, UnknownId


def keep_users(data: Interactions, min_interactions: int) -> Interactions:
    """Only the users with at least this many interactions."""
    check_int("min_interactions", min_interactions, 1)
    counts = np.bincount(data.users, minlength=data.n_users)
    return _kept(data, counts[data.users] >= min_interactions, f"no user has {min_interactions} or more interactions")


def keep_items(data: Interactions, min_interactions: int) -> Interactions:
    """Only the items with at least this many interactions."""
    check_int("min_interactions", min_interactions, 1)
    return _kept(
        data,
        data.popularity[data.items] >= min_interactions,
        f"no item has {min_interactions} or more interactions",
    )


def k_core(data: Interactions, k: int) -> Interactions:
    """Only users and items with at least k interactions each."""
    check_int("k", k, 1)
    core = keep_items(keep_users(data, k), k)
    while np.bincount(core.users).min() < k:  # without an item, some users have less
        core = keep_items(keep_users(core, k), k)
    return core


def binarise(data: Interactions, threshold: float) -> Interactions:
    """Only the interactions rated at least this high, as liked or not: the ratings themselves are dropped."""
    if data.ratings is None:
        raise DataError(f"{data.name} has no ratings, so no threshold can be laid on them; leave the threshold out.")
    if not np.isfinite(threshold):
        raise SettingError(f"The threshold is {threshold}; a finite number is needed.")
    liked = _kept(data, data.ratings >= threshold, f"no rating reaches {threshold:g}")
    return replace(liked, ratings=None)


def filtered(data: Interactions, filters: dict[str, Any]) -> Interactions:
    """What the filters keep, in this order whatever the order they are written in."""
    try:
        if "min_rating" in filters:
            data = data.binarise(filters["min_rating"])
        if "min_interactions" in filters:
            data = data.keep_users(filters["min_interactions"])
        if "k_core" in filters:
            data = data.k_core(filters["k_core"])
        return _sampled(data, filters["sample"]) if "sample" in filters else data
    except TypeError as reason:
        raise SettingError(f"The filters {filters!r} cannot be used: {reason}.") from reason


def _sampled(data: Interactions, users: int) -> Interactions:
    """Some of the users, always the same: for trying a study out."""
    check_int("sample", users, 1)
    if users >= data.n_users:
        return data
    chosen = np.zeros(data.n_users, dtype=bool)
    chosen[np.random.default_rng(1).permutation(data.n_users)[:users]] = True
    return data.take(chosen[data.users]).compact()


def _kept(data: Interactions, mask: np.ndarray[tuple[int], np.dtype[np.bool_]], nothing: str) -> Interactions:
    if not mask.any():
        raise DataError(f"Nothing of {data.name} is left: {nothing}. Filter less strictly.")
    return data.take(mask).compact()


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each item of a catalogue."""

    names: tuple[str, ...]
    starts: LongVector
    codes: IntVector

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[str]]) -> Categories:
        """From one sequence of category names per item; names are numbered in sorted order."""
        rows = [list(dict.fromkeys(row)) for row in lists]
        names = tuple(sorted({name for row in rows for name in row}))
        number = {name: code for code, name in enumerate(names)}
        starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
        codes = np.array([number[name] for row in rows for name in row], dtype=np.int32)
        return cls(names, starts, codes)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, item: int) -> tuple[str, ...]:
        """The names of one item's categories."""
        return tuple(self.names[code] for code in self.codes[self.starts[item] : self.starts[item + 1]])

    def take(self, items: IntVector | LongVector) -> Categories:
        """The categories of these items, in this order."""
        return Categories.from_lists(self.of(int(item)) for item in items)

    def renamed(self, names: dict[str, str]) -> Categories:
        """Coarser categories: each name replaced by what it maps to; names without an entry are dropped."""
        rows = (self.of(item) for item in range(len(self)))
        return Categories.from_lists([names[name] for name in row if name in names] for row in rows)

    def weights(self, per_item: LongVector) -> RealVector:
        """How much of `per_item` falls to each category; an item in several counts fully in each."""
        return np.bincount(
            self.codes, weights=np.repeat(per_item, np.diff(self.starts)), minlength=len(self.names)
        ).astype(np.float64)


Column = TypeVar("Column", bound=NDArray[Any])
Repeats = Literal["latest", "first", "refuse"]


class Profiles(NamedTuple):
    """Rows of a sparse matrix: the items of user u are `items[starts[u]:starts[u + 1]]`, ascending."""

    starts: LongVector
    items: IntVector

    def of(self, user: int) -> IntVector:
        """The items of one user, ascending."""
        return self.items[self.starts[user] : self.starts[user + 1]]

    def between(self, first: int, last: int) -> Profiles:
        """The profiles of the users from `first` to just before `last` alone."""
        starts = self.starts[first : last + 1]
        return Profiles(starts - starts[0], self.items[starts[0] : starts[-1]])

    @property
    def sizes(self) -> LongVector:
        """How many items each user has."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Pairs of a user and an item, sorted, without repeats; make one with `Interactions.from_columns`."""

    users: IntVector
    items: IntVector
    user_ids: Ids
    item_ids: Ids
    ratings: FloatVector | None = None
    times: LongVector | None = None
    titles: Ids | None = None
    categories: Categories | None = None
    name: str = "interactions"
    repeats_left_out: int = 0
    """How many rows of the source repeated a (user, item) pair and were left out when it was read."""

    @classmethod
    def from_columns(
        cls,
        users: Any,
        items: Any,
        ratings: Any = None,
        times: Any = None,
        *,
        titles: dict[Any, str] | None = None,
        categories: dict[Any, Sequence[str]] | None = None,
        repeats: Repeats = "latest",
        name: str = "interactions",
    ) -> Interactions:
        """Number the ids, sort the rows, and keep one row of each repeated pair.

        Columns are NumPy arrays, Polars series or lists of equal length. `titles` and `categories` map an
        original item id to its name and to the categories it belongs to. Of a repeated pair the latest row
        stays: by time where there are times, by position otherwise.
        """
        user_codes, user_ids = number_ids(users, "user")
        item_codes, item_ids = number_ids(items, "item")
        if len(user_codes) != len(item_codes):
            raise DataError(
                f"There are {len(user_codes)} users but {len(item_codes)} items; one of each is needed per row."
            )
        rating_column = None if ratings is None else np.asarray(ratings, dtype=np.float32)
        time_column = None if times is None else np.asarray(times, dtype=np.int64)
        order = _sorted_order(user_codes, item_codes, time_column, len(item_ids), repeats)
        return cls(
            users=frozen(user_codes[order]),
            items=frozen(item_codes[order]),
            user_ids=user_ids,
            item_ids=item_ids,
            ratings=None if rating_column is None else frozen(rating_column[order]),
            times=None if time_column is None else frozen(time_column[order]),
            titles=None if titles is None else _titles(item_ids, titles),
            categories=None
            if categories is None
            else Categories.from_lists(categories.get(i, ()) for i in item_ids.tolist()),
            name=name,
            repeats_left_out=0 if isinstance(order, slice) else len(user_codes) - len(order),
        )

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self):,} interactions of {self.n_users:,} users with {self.n_items:,} items>"

    @property
    def n_users(self) -> int:
        """How many users are numbered, whether or not they have a row here."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """How many items are numbered, whether or not they have a row here."""
        return len(self.item_ids)

    @cached_property
    def profiles(self) -> Profiles:
        """Each user's items, ascending."""
        return Profiles(_offsets(self.users, self.n_users), self.items)

    @cached_property
    def audiences(self) -> Profiles:
        """Each item's users, ascending: the profiles of the transposed data."""
        order = np.argsort(self.items, kind="stable")
        return Profiles(_offsets(self.items, self.n_items), frozen(self.users[order]))

    @cached_property
    def popularity(self) -> LongVector:
        """How many users each item has."""
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    def matrix(self, values: Literal["ones", "ratings"] = "ones") -> csr_array:
        """Users x items as a SciPy sparse array, of ones or of ratings."""
        if values == "ratings" and self.ratings is None:
            raise DataError(f"{self.name} has no ratings; ask for the matrix of ones.")
        content = self.ratings if values == "ratings" else np.ones(len(self), dtype=np.float32)
        return csr_array((content, self.items, self.profiles.starts), shape=(self.n_users, self.n_items))

    def user_index(self, user: Any) -> int:
        """The number of the user with this original id."""
        return _lookup(self._user_numbers, user, self.user_ids, "user", self.name)

    def item_index(self, item: Any) -> int:
        """The number of the item with this original id."""
        return _lookup(self._item_numbers, item, self.item_ids, "item", self.name)

    @cached_property
    def _user_numbers(self) -> dict[Any, int]:
        return {identity: number for number, identity in enumerate(self.user_ids.tolist())}

    @cached_property
    def _item_numbers(self) -> dict[Any, int]:
        return {identity: number for number, identity in enumerate(self.item_ids.tolist())}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content: equal for equal data, whatever the file, the order of rows or the name."""
        digest = hashlib.sha256()
        for column in (self.users, self.items, self.ratings, self.times):
            digest.update(b"none" if column is None else np.ascontiguousarray(column).tobytes())
        for ids in (self.user_ids, self.item_ids):
            digest.update(ids.tobytes() if ids.dtype.kind == "i" else "\0".join(ids.tolist()).encode())
        return digest.hexdigest()[:32]

    def take(self, rows: Any) -> Interactions:
        """Only these rows (ascending positions, or a mask); users and items keep their numbers."""
        return replace(
            self,
            users=frozen(self.users[rows]),
            items=frozen(self.items[rows]),
            ratings=None if self.ratings is None else frozen(self.ratings[rows]),
            times=None if self.times is None else frozen(self.times[rows]),
        )

    def compact(self) -> Interactions:
        """Only the users and items that have a row, numbered again in the same order."""
        users, user_codes = _occurring(self.users, self.n_users)
        items, item_codes = _occurring(self.items, self.n_items)
        return replace(
            self,
            users=frozen(user_codes[self.users]),
            items=frozen(item_codes[self.items]),
            user_ids=frozen(self.user_ids[users]),
            item_ids=frozen(self.item_ids[items]),
            titles=None if self.titles is None else frozen(self.titles[items]),
            categories=None if self.categories is None else self.categories.take(items),
        )

    keep_users = keep_users
    keep_items = keep_items
    k_core = k_core
    binarise = binarise


def text_ids(values: Iterable[str]) -> Ids:
    """Ids, or titles, that are text."""
    ids: Ids = np.array(list(values), dtype=np.dtypes.StringDType())
    return ids


def id_series(ids: Ids) -> pl.Series:
    """Ids as a column of a table."""
    return pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)


def number_ids(values: Any, kind: str) -> tuple[IntVector, Ids]:
    """Number ids in their sorted order: the number of each value, and the id of each number."""
    column = values if isinstance(values, pl.Series) else _series(values, kind)
    if column.null_count():
        raise DataError(f"Row {int(column.is_null().arg_true()[0]) + 1} has no {kind} id; every row needs one.")
    if column.dtype.is_integer():
        ids = column.unique().sort().to_numpy().astype(np.int64)
        return np.searchsorted(ids, column.to_numpy()).astype(np.int32), frozen(ids)
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise DataError(f"The {kind} ids are of type {column.dtype}; integers or text are needed.")
    text = column.cast(pl.String)
    known = text.unique().sort()
    codes = text.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int32)
    return codes, frozen(text_ids(known))


def _series(values: Any, kind: str) -> pl.Series:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return pl.Series(values)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    types = {type(value) for value in listed}
    if types <= {int} or types <= {str}:
        return pl.Series(listed, dtype=pl.Int64 if types <= {int} and listed else pl.String)
    mixed = " and ".join(sorted(t.__name__ for t in types))
    raise DataError(f"The {kind} ids mix types ({mixed}); make them all integers or all text.")


def _sorted_order(
    users: IntVector, items: IntVector, times: LongVector | None, n_items: int, repeats: Repeats
) -> LongVector | slice:
    """Positions that sort rows by user and item and leave out repeats; a slice of all where they are so already."""
    keys = users.astype(np.int64) * max(n_items, 1) + items
    if np.all(keys[1:] > keys[:-1]):
        return slice(None)
    by_time = None if times is None else np.argsort(times, kind="stable")
    order = np.argsort(keys if by_time is None else keys[by_time], kind="stable")
    if by_time is not None:
        order = by_time[order]
    keys = keys[order]
    new = np.flatnonzero(keys[1:] != keys[:-1])
    if repeats == "refuse" and len(new) + 1 < len(keys):
        raise DataError(
            f"{len(keys) - len(new) - 1:,} rows repeat a (user, item) pair; "
            "choose which to keep with repeats='latest' or 'first'."
        )
    if repeats == "first":
        return order[np.concatenate(([0], new + 1))]
    return order[np.concatenate((new, [len(keys) - 1]))]


def _occurring(codes: IntVector, count: int) -> tuple[LongVector, IntVector]:
    """Which numbers occur, and the place of each number among those that do."""
    occurs = np.bincount(codes, minlength=count) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).astype(np.int32)


def _offsets(codes: IntVector, count: int) -> LongVector:
    return np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count)))).astype(np.int64)


def _titles(item_ids: Ids, titles: dict[Any, str]) -> Ids:
    named = text_ids(titles.get(identity, "") for identity in item_ids.tolist())
    return frozen(named)


def _lookup(numbers: dict[Any, int], identity: Any, ids: Ids, kind: str, name: str) -> int:
    """The number of an id, given as it is or as the text a command line makes of it."""
    try:
        key = int(identity) if ids.dtype.kind == "i" else str(identity)
        return numbers[key]
    except (KeyError, ValueError, TypeError):
        example = f"; one that it has is {ids[0]}" if len(ids) else ""
        raise UnknownId(f"No {kind} in {name} has the id {identity!r}{example}.") from None


def frozen(array: Column) -> Column:
    """The array itself, read-only."""
    array.flags.writeable = False
    return array
