"""The finding: a report's first sentence, worked out from its first table.

On each data set, the best row by the table's first metric that leaves histories on people's devices, beside the best
that collects them; where there is only one kind, the best of it. Rows drawn by lot are nobody's finding. Where devices
lie, the finding is how many of the attacks the defences hold off, and the one that they hold off least. Where the table
has shares of one row's figures, the finding is from where to where they go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from federank.recommenders.registry import audited_names
from federank.studies.plan.wishes import TableWish, Wishes, tables_wished
from federank.studies.report.tables import ALIKE, by_lot, rows_of_table
from federank.studies.results.metric_words import FORMULA, LOSS, SHARE, score, words_of, written, written_once
from federank.studies.results.priced import AUDIT, with_shares
from federank.studies.results.rows import Row

_EXPOSED, FEW = "exposure_", 0.05
MOST_DATA = 3
"""Data sets that one sentence can hold."""


def finding(wishes: Wishes, rows: Sequence[Row]) -> str:
    """The sentence; empty where nothing has finished, or where nothing is better or worse."""
    wish = next(iter(tables_wished(wishes, rows)), None)
    if wish is not None and any(metric.startswith(SHARE) for metric in wish.metrics):
        return _shares(wish, rows)
    metric = None if wish is None else _told(wish)
    if wish is None or metric is None:
        return ""
    names = wish.data or list(dict.fromkeys(row.data for row in rows))
    told_of = (metric for metric in wish.metrics if metric.startswith(_EXPOSED) and "undefended" not in metric)
    exposure = next(told_of, None)
    if exposure is not None:
        told = [clause for data in names if (clause := _held_off(rows_of_table(wish, rows, data), data, exposure))]
        return f"With the defences, {'; '.join(told)}." if told else ""
    clauses = [clause for data in names if (clause := _clause(rows_of_table(wish, rows, data), data, metric))]
    more = f"; and {len(clauses) - MOST_DATA} more data sets below" if len(clauses) > MOST_DATA else ""
    return f"{words_of(metric).axis}: {'; '.join(clauses[:MOST_DATA])}{more}." if clauses else ""


def _shares(wish: TableWish, rows: Sequence[Row]) -> str:
    """From where to where the other rows' shares go, formulas aside."""
    metrics = [metric for metric in wish.metrics if metric.startswith(SHARE) and FORMULA not in metric]
    sentences = []
    for data in wish.data or list(dict.fromkeys(row.data for row in rows)):
        shown = with_shares(rows_of_table(wish, rows, data), wish.metrics, wish.against)
        told = []
        for metric in metrics:
            held = [value for row in shown if row.group != wish.against and (value := row.mean(metric)) is not None]
            if held:
                name = words_of(metric.removeprefix(SHARE)).short
                ends = f"{written(metric, min(held))} to {written(metric, max(held))}"
                told.append(f"{name[0].lower()}{name[1:]} {ends}")
        sentences += [f"On {data}, as shares of what {wish.against} takes: {'; '.join(told)}."] if told else []
    return " ".join(sentences)


def _held_off(rows: Sequence[Row], data: str, exposure: str) -> str:
    """How many attacks that reach somebody without the defences show their item to few people with them."""
    without = exposure.replace(_EXPOSED, f"{_EXPOSED}undefended_")
    reached = [
        (held, row) for row in rows if (row.mean(without) or 0.0) >= 0.01 and (held := row.mean(exposure)) is not None
    ]
    if not reached:
        return ""
    few = sum(held <= FEW for held, _ in reached)
    most, worst = max(reached, key=lambda pair: pair[0])
    return (
        f"{few} of {len(reached)} attacks on {data} show the pushed item to {FEW:.0%} of people at most, and "
        f"{worst.label} to {most:.0%}"
    )


def _told(wish: TableWish) -> str | None:
    plain = (metric for metric in wish.metrics if not metric.startswith((AUDIT, LOSS)))
    return next((metric for metric in plain if words_of(metric).better is not None), None)


def _clause(rows: Sequence[Row], data: str, metric: str) -> str:
    federated = set(audited_names())
    at_home = _best([row for row in rows if row.lines[0].model in federated], metric)
    collected = _best([row for row in rows if row.lines[0].model not in federated], metric)
    if at_home and collected:
        return f"on {data}, {at_home} with histories left on devices, {collected} with histories collected"
    best = at_home or collected
    return f"on {data}, {best} is the best" if best else ""


def _best(rows: Sequence[Row], metric: str) -> str:
    held = [(score(metric, value), row) for row in rows if (value := row.mean(metric)) is not None and not by_lot(row)]
    if not held:
        return ""
    best = max(found for found, _ in held)
    alike = [row.label for found, row in held if math.isclose(found, best, rel_tol=ALIKE)]
    value = next(row.mean(metric) for found, row in held if found == best)
    named = " and ".join(alike) if len(alike) < 3 else f"{alike[0]} and {len(alike) - 1} others"
    return f"{written_once(metric, value)} by {named}"
