"""Rows: a study's finished test runs, gathered for tables and figures.

A row is what a table shows in one line: one method (the runs' `group`) on one data set, at one value of what was swept
(pi = 0.3), over all its seeds. A setting that was *chosen* (a learning rate) may differ from seed to seed and makes no
rows of its own. A sweep whose best point was chosen on validation has that point once more, under a label of its own
("FPL, best pi").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from federank._numerics.arrays import RealVector
from federank.errors import SettingError
from federank.evaluation.metrics import mean_difference, standard_deviation_range
from federank.studies.metric_words import LOSS, MD, SHARE, STDR
from federank.studies.results import RunRecord


@dataclass(frozen=True, kw_only=True)
class Row:
    """The runs of one method on one data set at one point of a sweep, a line per seed."""

    data: str
    group: str
    swept: tuple[tuple[str, Any], ...]
    """The swept settings with their values; empty where the group is one row."""
    records: tuple[RunRecord, ...]
    server: str = ""
    """The server whose findings a metric with `audit:` is of, in a table of audits."""
    sees: str = ""
    """What this server saw."""

    @property
    def is_best(self) -> bool:
        """Whether this is the point of a sweep that was chosen on validation."""
        return any(record.best for record in self.records)

    @property
    def family(self) -> str:
        """The group, or the group of whose sweep this is the best point."""
        return self.group.rsplit(", best ", 1)[0] if self.is_best else self.group

    @property
    def label(self) -> str:
        """The method and where in the sweep it is."""
        if self.is_best:
            values = dict.fromkeys(_plain(value) for record in self.records for value in record.swept.values())
            return f"{self.group} = {' or '.join(values)}"
        return ", ".join([self.group, *(f"{name} = {_plain(value)}" for name, value in self.swept)])

    def at(self, name: str) -> Any:
        """The value of a swept setting, or of any setting that all lines share; None where there is none."""
        values = [dict(self.swept).get(name, record.settings.get(name)) for record in self.records]
        return values[0] if values and all(value == values[0] for value in values) else None

    def values(self, metric: str) -> RealVector:
        """The metric of every line that has it, in the order of seeds."""
        result = (self._value(record, metric) for record in self.records)
        return np.array([value for value in result if value is not None], dtype=np.float64)

    def mean(self, metric: str) -> float | None:
        """The mean over seeds; None where no line has the metric."""
        values = self.values(metric)
        return float(values.mean()) if len(values) else None

    def deviation(self, metric: str) -> float | None:
        """The standard deviation over seeds and folds; None with less than two."""
        values = self.values(metric)
        if len(values) < 2:
            return None
        return 0.0 if (values == values[0]).all() else float(values.std())  # equal values deviate by rounding alone

    def extra(self, name: str) -> Any:
        """What the first line has under this name beyond its metrics."""
        return next((record.extra[name] for record in self.records if name in record.extra), None)

    def found(self, record: RunRecord, metric: str) -> Any:
        """A metric or extra of a run; with `audit:`, as this row's server has found it."""
        held = {**record.extra, **record.metrics}
        if not (self.server and metric.startswith(AUDIT)):
            return held.get(metric)
        if "_held_back" in metric and (held.get(f"{self.server}:disclosed_share") or 0.0) >= _EVERYTHING:
            return None
        return held.get(metric.replace(AUDIT, f"{self.server}:", 1))

    def _value(self, record: RunRecord, metric: str) -> float | None:
        value = self.found(record, metric)
        return float(value) if isinstance(value, int | float) else None


def gather(records: Iterable[RunRecord]) -> list[Row]:
    """The rows of all finished test runs: in the order of their groups' first lines, sweeps ascending."""
    families: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        if record.task == "test" and record.done:
            families.setdefault((record.data, record.group), []).append(record)
    rows = []
    for (data, group), members in families.items():
        # The best point of a sweep is one row, whatever was best for each fold.
        names = (
            []
            if any(record.best for record in members)
            else sorted({name for record in members for name in record.swept})
        )
        points: dict[tuple[tuple[str, Any], ...], list[RunRecord]] = {}
        for record in members:
            point = tuple((name, _setting(record, name)) for name in names)
            points.setdefault(point, []).append(record)
        for point in sorted(points, key=lambda point: [_sort_key(value) for _, value in point]):
            ordered = sorted(points[point], key=lambda record: (record.seed or 0, record.fold or 0))
            rows.append(Row(data=data, group=group, swept=point, records=tuple(ordered)))
    return rows


def best_of_sweeps(rows: Sequence[Row], score: Callable[[Row], float]) -> list[Row]:
    """Of each method on one data set one row: the best point chosen on validation, else the one of highest score."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row.data, row.family)
        if key not in best or (row.is_best, score(row)) > (best[key].is_best, score(best[key])):
            best[key] = row
    return list(best.values())


def _setting(record: RunRecord, name: str) -> Any:
    value = record.swept[name] if name in record.swept else record.settings.get(name)
    # 0.1 + 0.2 in one run and 0.3 in another are one point of a sweep
    return round(value, 9) if isinstance(value, float) else tuple(value) if isinstance(value, list) else value


def _sort_key(value: Any) -> tuple[bool, float, str]:
    """Numbers in their order, then everything else by its text."""
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, str(value)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# Rows with a price tag: what was lost for privacy, and what every server that watched has found.


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


def compared(rows: Sequence[Row], metrics: Sequence[str], against: str | None, twins: Mapping[str, str]) -> list[Row]:
    """The rows with those of these metrics that compare them with another row.

    A loss is against the same run of the group `against` at the same swept values; a share is of that group's mean; MD
    and STDR are against the unfederated twin, one value of all folds.
    """
    wanted = {kind: [name.removeprefix(kind) for name in metrics if name.startswith(kind)] for kind in _COMPARED}
    for kind, names in wanted.items():
        if names and not (twins if kind in _OF_TWINS else against):
            example = 'twins = { "PMF, federated" = "PMF, unfederated" }' if kind in _OF_TWINS else 'against = "FPL"'
            raise SettingError(f"A table asks for {kind}{names[0]} and names nothing to compare with; add {example}.")
    result = []
    for row in rows:
        references = [other for other in rows if (other.data, other.group) == (row.data, against)]
        same = next((other for other in references if other.swept == row.swept), None)
        full = same or (references[0] if len(references) == 1 else None)
        means = {metric: full.mean(metric) for metric in wanted[SHARE]} if full is not None else {}
        records = [
            _with_metrics(record, _losses(record, same, wanted[LOSS]) | _shares(record, means))
            for record in row.records
        ]
        twin = next((other for other in rows if (other.data, other.group) == (row.data, twins.get(row.group))), None)
        if twin is not None:
            figures = {
                f"{kind}{name}": compare(row.values(name), twin.values(name))
                for kind, compare in _OF_TWINS.items()
                for name in wanted[kind]
            }
            records[0] = _with_metrics(records[0], figures)
        result.append(replace(row, records=tuple(records)))
    return result


_OF_TWINS = {MD: mean_difference, STDR: standard_deviation_range}
_COMPARED = (LOSS, SHARE, *_OF_TWINS)


def _with_metrics(record: RunRecord, more: Mapping[str, float]) -> RunRecord:
    return replace(record, metrics={**record.metrics, **more})


def _losses(record: RunRecord, reference: Row | None, metrics: Sequence[str]) -> dict[str, float]:
    runs = reference.records if reference else ()
    theirs = next((other for other in runs if (other.seed, other.fold) == (record.seed, record.fold)), None)
    values = {} if theirs is None else {name: (record.metrics.get(name), theirs.metrics.get(name)) for name in metrics}
    return {f"{LOSS}{name}": 1 - ours / base for name, (ours, base) in values.items() if ours is not None and base}


def _shares(record: RunRecord, means: Mapping[str, float | None]) -> dict[str, float]:
    held = {**record.extra, **record.metrics}
    return {f"{SHARE}{name}": held[name] / full for name, full in means.items() if full and name in held}


def seen_rows(rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Every row once for each server that watched it, with its position among `rows`; an unwatched one as it is."""
    seen: list[tuple[int, Row]] = []
    for position, row in enumerate(rows):
        servers = [server for server in _SERVERS if any(f"{server}:auc" in record.metrics for record in row.records)]
        seen += [(position, _as_seen_by(row, server)) for server in servers] or [(position, row)]
    return seen


def _as_seen_by(row: Row, server: str) -> Row:
    cohort = row.extra(f"{server}:cohort") or 0
    all_users = any(_all_at_once(record) for record in row.records)
    sees = "sums over all" if server == "sums" and all_users else _SERVERS[server].format(cohort=cohort)
    return replace(row, server=server, sees=sees)


def _all_at_once(record: RunRecord) -> bool:
    """Whether a round has everyone in it: of values where it is asked for, of few messages unless there are cohorts."""
    if record.model in ("frugal", "fcf"):
        return int(record.settings.get("cohorts", 1)) == 1
    return str(record.settings.get("clients_per_round")) == "all"


def best_attack(row: Row) -> str:
    """Which attack was best at what was held back; several where the runs differ."""
    names = [row.found(record, f"{AUDIT}attack_held_back") for record in row.records]
    return " or ".join(dict.fromkeys(name.replace("_", " ") for name in names if name)) or "-"


def meets(row: Row, goal: Mapping[str, float]) -> bool | None:
    """Whether a row is at or below every bound of a goal; None where it has no such figure."""
    held = {metric: row.mean(metric) for metric in goal}
    if any(value is None for value in held.values()):
        return None
    return all((held[metric] or 0.0) <= bound for metric, bound in goal.items())
