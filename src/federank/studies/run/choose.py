"""Choosing: which values, and which epoch, the runs on the development part speak for.

For every combination of the grid the curves of its runs (one for each seed that chooses) are averaged, and the best
point taken; of the combinations, the one with the best point. Ties go to the earlier epoch and to the combination
that is written first. A combination of which a run has failed is out; where all are, the reason is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from federank.studies.plan.plan import Case, Run
from federank.studies.results.line import Line


class Choice(NamedTuple):
    """What was chosen for a case, and the value it was chosen by."""

    values: dict[str, Any]
    epoch: int | None
    value: float
    """The metric there, negative where lower is better: a greater value is a better one."""


class NoChoice(NamedTuple):
    """Nothing could be chosen: every combination has failed."""

    reason: str


def choose(case: Case, line_of: Callable[[Run], Line]) -> Choice | NoChoice:
    """The best combination of a case whose choosing runs are all finished."""
    best: Choice | None = None
    reasons = []
    for runs in case.candidates:
        lines = [line_of(run) for run in runs]
        reasons += [line.reason for line in lines if not line.done]
        if all(line.done for line in lines):
            epoch, value = _best_point(lines, case)
            if best is None or value > best.value:
                best = Choice(runs[0].chosen, epoch, value)
    if best is not None:
        return best
    how_many = "the only run" if len(case.candidates) == 1 else f"every one of {len(case.candidates)} combinations"
    return NoChoice(f"Nothing could be chosen, because {how_many} failed. {reasons[0]}")


def best_of_sweep(choices: Mapping[int, Choice]) -> int:
    """Which case of a sweep has the best value where values are chosen; the first of equals."""
    return max(choices, key=lambda number: (choices[number].value, -number))


def _best_point(lines: Sequence[Line], case: Case) -> tuple[int | None, float]:
    metric, sign = case.choose.metric, -1 if case.choose.lower_is_better else 1
    curves = [line.curve for line in lines]
    if not all(curves):
        return None, sign * _mean([line.metrics[metric] or 0.0 for line in lines])
    # Runs that were stopped early have shorter curves: only epochs that every seed has seen are compared.
    points = [
        (together[0].epoch, sign * _mean([point.values[metric] for point in together]))
        for together in zip(*curves, strict=False)
    ]
    return max(points, key=lambda point: (point[1], -point[0]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
