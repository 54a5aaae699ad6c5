"""Metrics in words: what a table's column and a figure's axis are called, how numbers are written, which way is better.

A metric's name may carry the length of the lists (`precision@10`) and a category (`bias_disparity@10/Food`); the words
follow it. What a server has found in an audit goes by its name (`sums:gain`; `audit:` is any of them). What was lost
goes by that of the metric (`loss:precision@10`), and so do a share of another row's figure (`share:bytes_up`) and what
a paper's formula says (`formula:bytes_up`). What is not known here is shown by its own name, with no better or worse.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

Better = Literal["higher", "lower", "nearest to 0"] | None


class Words(NamedTuple):
    """How a metric is spoken of."""

    short: str
    """The head of a column."""
    axis: str
    """The label of an axis."""
    digits: str
    """How its numbers are written, as Python's format has it."""
    better: Better


POISONED: tuple[tuple[str, str, str, str, Better], ...] = (
    ("exposure", "Exposure", "Users who have the pushed item in their top 10", ".3f", "lower"),
    ("precision", "P@10", "Precision of the top 10", ".4f", "higher"),
    ("rank", "Rank", "Median rank of the pushed item", ",.0f", "higher"),
)
"""What honest users get from a poisoned federation (task.py)."""

_SIDE_KNOWLEDGE = {
    "shares": "shares of users",
    "cosines": "cosines of items",
    "model": "the published model",
    "weights": "item-item weights",
}
"""What an attacker who knows ten items of a user goes by."""
_KNOWN_ITEMS: tuple[tuple[str, str, str, str, Better], ...] = (
    ("", "In", "Right of 10 names, 10 items known, ", ".3f", "lower"),
    ("_left_out", "Out", "The same of users left out of the federation", ".3f", None),
    ("_advantage", "In - out", "What taking part adds, ", "+.3f", "lower"),
)


def _words(table: str) -> dict[str, Words]:
    """The words of one table of metric_words.toml."""
    content = tomllib.loads(Path(__file__).with_name("metric_words.toml").read_text(encoding="utf-8"))
    rows = content[table].items()
    return {name: Words(short, axis, digits, better or None) for name, (short, axis, digits, better) in rows}


COMPLEXITY = _words("complexity")
"""What a round costs a client and the server (simulation/complexity.py)."""

KNOWN = {
    **COMPLEXITY,
    **_words("metrics"),
    **{
        f"known_{attack}{of}": Words(
            f"{short}: {attack}", f"{axis}by {by}" if axis[-1] == " " else axis, digits, better
        )
        for attack, by in _SIDE_KNOWLEDGE.items()
        for of, short, axis, digits, better in _KNOWN_ITEMS
    },
    **{
        f"{name}{undefended}_{percent}": Words(
            f"{short}{', undefended' if undefended else ''}, {percent} %",
            f"{axis} where {percent} % of the clients are malicious{', undefended' if undefended else ''}",
            digits,
            better,
        )
        for percent in ("0.1", "0.3", "1", "5", "10")
        for undefended in ("_undefended", "")
        for name, short, axis, digits, better in POISONED
    },
}


LOSS, SHARE, FORMULA = "loss:", "share:", "formula:"
"""Before a metric's name: what is lost of it, its share of another row's, and what a paper's formula says it is."""
MD, STDR = "md:", "stdr:"
"""Before an error's name: how far a federated row is from its unfederated twin (FedRec, Eq. 10-11), in percent."""

_DERIVED: dict[str, Callable[[Words], Words]] = {
    MD: lambda of: Words(f"MD of {of.short}, %", f"Mean difference of {of.short}, %", ".2f", "lower"),
    STDR: lambda of: Words(f"STDR of {of.short}, %", f"Standard deviation range of {of.short}, %", ".2f", "lower"),
    SHARE: lambda of: Words(f"{of.short}, share", f"{of.axis}, as a share", ".1%", "lower"),
    FORMULA: lambda of: of._replace(short=f"{of.short} (formula)", axis=f"{of.axis}, by the paper's formula"),
    LOSS: lambda of: Words(f"Loss of {of.short}", f"Loss of: {of.axis}", "+.1%", "lower"),
}

_WITHOUT_CHANCE = {*COMPLEXITY, "cce", "rounds_per_epoch", "normalised_freshness"}


def has_chance(metric: str) -> bool:
    """Whether another seed could give another value; else it follows from the training part and the settings."""
    return metric.rpartition(":")[2] not in _WITHOUT_CHANCE


_OF_N = re.compile(r" (of|in) (the first )?\{n\}")


def words_of(metric: str) -> Words:
    """A metric's words, with its N and its category worked in."""
    for prefix, derived in _DERIVED.items():
        if metric.startswith(prefix):
            return derived(words_of(metric.removeprefix(prefix)))
    server, _, rest = metric.rpartition(":")
    name, n, category = parts(rest)
    known = KNOWN.get(name, Words(name.replace("_", " "), name.replace("_", " "), ".4f", None))
    axis = known.axis.format(n=n) if n else _OF_N.sub("", known.axis)
    if server and server != "audit":
        known, axis = known._replace(short=f"{known.short} ({server})"), f"{axis} ({server})"
    if category:
        return known._replace(short=category, axis=f"{axis}, {category}")
    return known._replace(short=f"{known.short}@{n}" if n else known.short, axis=axis)


def parts(metric: str) -> tuple[str, str, str]:
    """The metric's plain name, its N and its category, each empty where there is none."""
    full, _, category = metric.partition("/")
    name, _, n = full.partition("@")
    return name, n, category


def written(metric: str, value: float | None) -> str:
    """A value as the metric's numbers are written."""
    return "-" if value is None else format(value, words_of(metric).digits)


def written_once(metric: str, value: float | None) -> str:
    """A value of a single run: three significant digits, because no one knows how the others would differ.

    Counts stay integers, and nothing gets more decimals than its metric has.
    """
    digits = words_of(metric).digits
    decimals = re.search(r"\.(\d)f$", digits)
    if not value or not math.isfinite(value) or decimals is None or decimals[1] == "0":
        return written(metric, value)
    fewer = min(int(decimals[1]), max(0, 2 - math.floor(math.log10(abs(value)))))
    return format(value, digits[: decimals.start()] + f".{fewer}f")


def score(metric: str, value: float) -> float:
    """The value turned so that more is better."""
    better = words_of(metric).better
    return -value if better == "lower" else -abs(value) if better == "nearest to 0" else value
