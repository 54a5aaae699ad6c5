"""The data of a study: read, filtered and split, once in each process.

    full           everyone's training part and test part: what a chosen model learns from and is tested on
    development    the training part without its newest fifth, and that fifth in the place of the test: for choosing

Both come from one division: validation is cut from the training part, so choosing never sees the test part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from federank.data.datasets import KNOWN, find, how_to_get
from federank.data.interactions import Interactions, filtered
from federank.data.loading import load
from federank.data.splits import FOLDS, Division, Split, divide
from federank.errors import BadSplit, DataError
from federank.studies.spec import DataSet

_STORED = 3


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
    """The data set with its divisions; read once in a process, the latest few are stored."""
    key = _key(data)
    if key not in _sources:
        read = filtered(load(data.source, **data.reading), data.filters)
        parts = tuple(_divided(read, data.split))
        _sources[key] = Source(read.fingerprint, len(read), read.n_users, read.repeats_left_out, parts)
        for oldest in list(_sources)[:-_STORED]:
            del _sources[oldest]
    return _sources[key]


def provide(data: DataSet, source: Source) -> None:
    """Use what another process has read: a machine of a cluster need not have the files."""
    _sources.setdefault(_key(data), source)


def _key(data: DataSet) -> str:
    """Equal where what is read and how it is divided are equal."""
    return repr((data.source, data.reading, data.filters, data.split))


_sources: dict[str, Source] = {}


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
