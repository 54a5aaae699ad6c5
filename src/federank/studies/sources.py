"""The data of a study: read, filtered and split, once in each process.

    full           everyone's training part and test part: what a chosen model learns from and is tested on
    development    the training part without its newest fifth, and that fifth in the place of the test: for choosing

Both come from one division: validation is cut from the training part, so choosing never sees the test part.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from federank.checks import check_int
from federank.data.datasets import KNOWN, find, how_to_get
from federank.data.interactions import Interactions
from federank.data.loading import load
from federank.data.splits import FOLDS, Division, Split, divide
from federank.errors import BadSplit, DataError, SettingError
from federank.studies.spec import DataSet

_KEPT = 3


class Splits(NamedTuple):
    """One division of a data set."""

    full: Split
    development: Split | None


class Source(NamedTuple):
    """A data set of a study, and its divisions: one, or as many as there are folds."""

    fingerprint: str
    interactions: int
    users: int
    repeats_left_out: int
    parts: tuple[Splits, ...]


def missing(data: DataSet) -> str | None:
    """What to say if this known data set is not installed; None where it can be read."""
    known = KNOWN.get(data.source)
    if known is None or known.generated or find(data.source) is not None:
        return None
    return f"{known.title} is not installed, so its runs are left out. {how_to_get(known)}"


def source_of(data: DataSet) -> Source:
    """The data set with its divisions; read once in a process, the latest few are kept."""
    named = _Named(data)
    return _handed[named] if named in _handed else _source(named)


def hand(data: DataSet, source: Source) -> None:
    """Use what another process has read: a machine of a cluster need not have the files."""
    _handed.setdefault(_Named(data), source)


class _Named:
    """A data set as a key of the cache: equal where what is read and how it is divided are equal."""

    def __init__(self, data: DataSet) -> None:
        self.data = data
        self.key = repr((data.source, data.reading, data.filters, data.split))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and self.key == other.key


_handed: dict[_Named, Source] = {}


@lru_cache(maxsize=_KEPT)
def _source(named: _Named) -> Source:
    data = filtered(load(named.data.source, **named.data.reading), named.data.filters)
    return Source(
        data.fingerprint, len(data), data.n_users, data.repeats_left_out, tuple(_divided(data, named.data.split))
    )


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


def _sampled(data: Interactions, people: int) -> Interactions:
    """Some of the people only, always the same: for trying a study out."""
    check_int("sample", people, 1)
    if people >= data.n_users:
        return data
    chosen = np.zeros(data.n_users, dtype=bool)
    chosen[np.random.default_rng(1).permutation(data.n_users)[:people]] = True
    return data.take(chosen[data.users]).compact()


def _divided(data: Interactions, how: Division) -> list[Splits]:
    if how.way == FOLDS:
        return [Splits(fold, None) for fold in divide(data, how)]
    [full], [with_validation] = divide(data, replace(how, validation=0)), divide(data, how)
    if not len(full.test):
        raise BadSplit(f"The split of {data.name} leaves nothing to test on; hold out more than {how.test:g}.")
    return [Splits(full, None if with_validation.validation is None else with_validation.development)]


def part_of(data: DataSet, fold: int | None, part: str) -> Split:
    """The division that a run learns from and is judged by."""
    result = source_of(data).parts[0 if fold is None else fold - 1]
    if part == "test":
        return result.full
    if result.development is None:
        raise DataError(
            f"{data.name} is divided without a validation part ({data.split.way}), so nothing can be chosen on it; "
            'choose part = "test", give fixed values with best_epoch = false, or split otherwise.'
        )
    return result.development
