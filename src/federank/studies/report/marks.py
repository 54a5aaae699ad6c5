"""Marks of significance in a table: does a row differ from the table's reference, person by person?

The reference is the row the study names (`against`), or else the one with the best mean of the first metric that
people have; with `matched`, each row has its own: that of the named group at the same swept values. For every other
row and every such metric, each person's values (the mean over seeds) are paired and tested by Student's t-test;
p-values are corrected after Holm over the whole table (evaluation/significance.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from federank.evaluation.significance import holm, paired_tests
from federank.studies.results.metric_words import score
from federank.studies.results.rows import Row

Marks = dict[tuple[int, str], str]


def significance_marks(
    rows: Sequence[Row],
    metrics: Sequence[str],
    users_of: Callable[[str], Any],
    against: str | None = None,
    *,
    matched: bool = False,
) -> tuple[Marks, str | None]:
    """A mark for each (row's position, metric) that differs from its reference, and what that is called, if any is."""
    people = [_people(row, metrics, users_of) for row in rows]
    tested = [metric for metric in metrics if sum(metric in table.columns for table in people) > 1]
    if not tested:
        return {}, None
    references = _matched(rows, against) if matched else [_reference(rows, people, tested[0], against)] * len(rows)
    positions, p_values = [], []
    for position, (table, reference) in enumerate(zip(people, references, strict=True)):
        for metric in tested:
            if (
                reference is not None
                and position != reference
                and metric in table.columns
                and metric in people[reference].columns
            ):
                pairs = table.select("user", ours=metric).join(
                    people[reference].select("user", theirs=metric), on="user", how="inner", maintain_order="left"
                )
                differences = (pairs["ours"] - pairs["theirs"]).drop_nulls().to_numpy()
                if len(differences) > 1:
                    positions.append((position, metric))
                    p_values.append(paired_tests(differences)[0])
    corrected = holm(p_values)
    marks = {key: "**" if p < 0.01 else "*" for key, p in zip(positions, corrected, strict=True) if p < 0.05}
    if not positions:
        return marks, None
    return marks, f"{against} at the same point" if matched else rows[references[0] or 0].label


def _people(row: Row, metrics: Sequence[str], users_of: Callable[[str], Any]) -> pl.DataFrame:
    """Each person's mean over the row's seeds; no column for what people have no values of."""
    tables = [table for table in (users_of(line.id) for line in row.lines) if table is not None]
    if not tables:
        return pl.DataFrame({"user": []})
    held = [metric for metric in metrics if all(metric in table.columns for table in tables)]
    narrow: pl.DataFrame = pl.concat([table.select("user", *held) for table in tables])
    return narrow.group_by("user", maintain_order=True).agg(pl.col(held).mean())


def _matched(rows: Sequence[Row], against: str | None) -> list[int | None]:
    """For each row the position of the named group's row at the same swept values."""
    named = {(row.data, row.swept): position for position, row in enumerate(rows) if row.group == against}
    return [named.get((row.data, row.swept)) for row in rows]


def _reference(rows: Sequence[Row], people: Sequence[pl.DataFrame], metric: str, against: str | None) -> int:
    held = [position for position, table in enumerate(people) if metric in table.columns]
    named = [position for position in held if against in (rows[position].group, rows[position].label)]
    return max(named or held, key=lambda position: score(metric, rows[position].mean(metric) or 0.0))
