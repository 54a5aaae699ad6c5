"""Rows with a price tag: what was lost for privacy, and what every server that watched has found.

Three kinds of metrics of a table are not in any run; they are worked out here and put into copies of its rows:

    loss:METRIC   the share of a metric that is lost against the row of the group `against` at the same swept values,
                  run by run (same seed and fold), so that it has a mean and a deviation like any other metric
    share:METRIC  the metric as a share of that of the group `against`: at the same swept values, or of its only row
    audit:NAME    stands for `updates:NAME`, `sums:NAME`, ...: the row is told once for every server that watched it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from federank.errors import SettingError
from federank.studies.results.line import Line
from federank.studies.results.metric_words import LOSS, SHARE
from federank.studies.results.rows import Row

AUDIT = "audit:"
_EVERYTHING = 0.9995
"""From this share of histories on everything counts as sent: an order of the one item that is left says nothing."""
_SERVERS = {
    "updates": "messages, linked",
    "plain": "messages, linked",
    "both": "both servers' parts",
    "anonymous": "one message",
    "sums": "sums over {cohort:,}",
    "leader": "sums with noise",
    "helper": "sums with the leader's noise",
    "outsider": "sums with both noises",
}


def asks_for(metrics: Sequence[str], kind: str) -> bool:
    """Whether any of these metrics is of this kind (LOSS, SHARE or AUDIT)."""
    return any(metric.startswith(kind) for metric in metrics)


def with_losses(rows: Sequence[Row], metrics: Sequence[str], against: str | None) -> list[Row]:
    """The rows with the losses that are asked for; the same rows where none is."""
    lost = _asked(rows, metrics, LOSS, against)
    if not lost:
        return list(rows)
    references = {(row.data, row.swept): row for row in rows if row.group == against}
    return [
        replace(row, lines=tuple(_with_loss(line, references.get((row.data, row.swept)), lost) for line in row.lines))
        for row in rows
    ]


def _with_loss(line: Line, reference: Row | None, lost: Sequence[str]) -> Line:
    theirs = next((other for other in reference.lines if _run(other) == _run(line)), None) if reference else None
    if theirs is None:
        return line
    losses: dict[str, float] = {}
    for metric in lost:
        ours, base = line.metrics.get(metric), theirs.metrics.get(metric)
        if ours is not None and base:
            losses[f"{LOSS}{metric}"] = 1 - ours / base
    return replace(line, metrics={**line.metrics, **losses})


def with_shares(rows: Sequence[Row], metrics: Sequence[str], against: str | None) -> list[Row]:
    """The rows with the shares that are asked for; the same rows where none is."""
    shared = _asked(rows, metrics, SHARE, against)
    return [_with_shares(row, [other for other in rows if other.group == against], shared) for row in rows]


def _with_shares(row: Row, references: Sequence[Row], shared: Sequence[str]) -> Row:
    there = [other for other in references if other.data == row.data]
    reference = next((other for other in there if other.swept == row.swept or len(there) == 1), None)
    if reference is None:
        return row
    wholes = {metric: reference.mean(metric) for metric in shared}
    return replace(row, lines=tuple(_with_share(line, wholes) for line in row.lines))


def _with_share(line: Line, wholes: Mapping[str, float | None]) -> Line:
    held = {**line.extra, **line.metrics}
    shares = {f"{SHARE}{name}": held[name] / whole for name, whole in wholes.items() if whole and name in held}
    return replace(line, metrics={**line.metrics, **shares})


def _asked(rows: Sequence[Row], metrics: Sequence[str], kind: str, against: str | None) -> list[str]:
    """Of which metrics a loss or a share is asked for; refused where it is not said against what."""
    asked = [metric.removeprefix(kind) for metric in metrics if metric.startswith(kind)]
    if asked and against is None:
        raise SettingError(
            f"A table asks for {kind}{asked[0]} and not against what; name a group, such as against = "
            f"{rows[0].group if rows else 'FPL'!r}."
        )
    return asked


def _run(line: Line) -> tuple[int | None, int | None]:
    return line.seed, line.fold


def seen_rows(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Every row once for each server that watched it, with its position among `rows`; an unwatched one as it is."""
    seen: list[tuple[int, Row]] = []
    for position, row in enumerate(rows):
        servers = [server for server in _SERVERS if any(f"{server}:auc" in line.metrics for line in row.lines)]
        seen += [(position, _as_seen_by(row, server)) for server in servers] or [(position, row)]
    return seen


def _as_seen_by(row: Row, server: str) -> Row:
    lines = tuple(_line_as_seen_by(line, server) for line in row.lines)
    cohort = row.extra(f"{server}:cohort") or 0
    everybody = any(_everybody_at_once(line) for line in row.lines)
    sees = "sums over all" if server == "sums" and everybody else _SERVERS[server].format(cohort=cohort)
    return replace(row, lines=lines, sees=sees)


def _line_as_seen_by(line: Line, server: str) -> Line:
    metrics, extra = _renamed(line.metrics, server), _renamed(line.extra, server)
    if (metrics.get(f"{AUDIT}disclosed_share") or 0.0) >= _EVERYTHING:
        metrics, extra = (
            {name: value for name, value in held.items() if not (name.startswith(AUDIT) and "_held_back" in name)}
            for held in (metrics, extra)
        )
    return replace(line, metrics=metrics, extra=extra)


def _everybody_at_once(line: Line) -> bool:
    """Whether a round has everybody in it: of pairs where it is asked for, of few messages unless there are cohorts."""
    if line.model in ("frugal", "fcf"):
        return int(line.settings.get("cohorts", 1)) == 1
    return str(line.settings.get("clients_per_round")) == "all"


def _renamed(held: Mapping[str, Any], server: str) -> dict[str, Any]:
    """What is held, and under the name of any server what this one has found."""
    found = {name: value for name, value in held.items() if name.startswith(f"{server}:")}
    return {**held, **{f"{AUDIT}{name.partition(':')[2]}": value for name, value in found.items()}}


def best_attack(row: Row) -> str:
    """Which attack was best at what was held back; several where the runs differ."""
    names = [line.extra.get(f"{AUDIT}attack_held_back") for line in row.lines]
    return " or ".join(dict.fromkeys(name.replace("_", " ") for name in names if name)) or "-"


def meets(row: Row, goal: Mapping[str, float]) -> bool | None:
    """Whether a row is at or below every bound of a goal; None where it has no such figure."""
    held = {metric: row.mean(metric) for metric in goal}
    if any(value is None for value in held.values()):
        return None
    return all((held[metric] or 0.0) <= bound for metric, bound in goal.items())
