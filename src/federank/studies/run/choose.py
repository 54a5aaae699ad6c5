"""Choosing: which values, and which epoch, the runs on the development part speak for.

For every combination of the grid the curves of its runs (one for each seed that chooses) are averaged, and the best
point taken; of the combinations, the one with the best point. Ties go to the earlier epoch and to the combination
that is written first. A combination of which a run has failed is out; where all are, the reason is told.

With halving (plan/halving.py) combinations come through rungs first. Which runs are needed next follows from the lines
that are there, and from nothing else: so a study that was stopped goes on as if it had not been. Where one that got
further fails there, the next best of the rung before takes its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from federank.studies.plan.halving import within_chance
from federank.studies.plan.plan import Case, Run
from federank.studies.plan.sources import source_of
from federank.studies.results.line import Line

Runs = tuple[Run, ...]


class Choice(NamedTuple):
    """What was chosen for a case, and the value it was chosen by."""

    values: dict[str, Any]
    epoch: int | None
    value: float
    """The metric there, negative where lower is better: a greater value is a better one."""


class NoChoice(NamedTuple):
    """Nothing could be chosen: every combination has failed."""

    reason: str


class Standing(NamedTuple):
    """How far the choosing of a case has come."""

    runs: list[Run]
    """All runs that it needs, as far as is known."""
    last: list[Runs] | None
    """The combinations that were tried to the end; None while something is missing."""


def standing(case: Case, line_of: Callable[[Run], Line | None]) -> Standing:
    """The runs that choosing has needed and needs next; `line_of` answers None for one that is not finished."""
    needed: list[Run] = []
    order, keep = list(range(len(case.candidates))), len(case.candidates)
    for stage, goes_on in [*case.rungs, (case.candidates, 0)]:
        numbers = _entered(stage, order, keep, line_of)
        needed += [run for number in numbers for run in stage[number]]
        lines = {number: _lines(stage[number], line_of) for number in numbers}
        if any(len(lines[number]) < len(stage[number]) for number in numbers):
            return Standing(needed, None)
        done = {number: each for number, each in lines.items() if all(line.done for line in each)}
        if stage is case.candidates or not done:
            return Standing(needed, [stage[number] for number in numbers])
        values = {number: _best_point(each, case)[1] for number, each in done.items()}
        order = sorted(values, key=lambda number: (-values[number], number))
        near = sum(within_chance(values[order[0]], value, _trials(case)) for value in values.values())
        keep = max(goes_on, near)
    raise AssertionError("the last stage is the candidates' own")


def _trials(case: Case) -> int:
    """How many places of lists a value is a mean over."""
    length = case.choose.metric.partition("@")[2]
    return source_of(case.data).users * int(length or 1)


def _entered(
    stage: Sequence[Runs], order: Sequence[int], keep: int, line_of: Callable[[Run], Line | None]
) -> list[int]:
    """Who is tried in this stage: the first `keep` of the order, and another for each that has failed."""
    entered: list[int] = []
    unbroken = 0
    for number in order:
        if unbroken == keep:
            break
        entered.append(number)
        lines = [line_of(run) for run in stage[number]]
        unbroken += all(line is None or line.done for line in lines)
    return entered


def choose(case: Case, line_of: Callable[[Run], Line | None]) -> Choice | NoChoice:
    """The best combination of a case whose choosing runs are all finished."""
    best: Choice | None = None
    tried = standing(case, line_of)
    for runs in tried.last or ():
        lines = _lines(runs, line_of)
        if all(line.done for line in lines):
            epoch, value = _best_point(lines, case)
            if best is None or value > best.value:
                best = Choice(runs[0].chosen, epoch, value)
    if best is not None:
        return best
    reasons = [line.reason for line in _lines(tried.runs, line_of) if not line.done]
    how_many = "the only run" if len(case.candidates) == 1 else f"every one of {len(case.candidates)} combinations"
    return NoChoice(f"Nothing could be chosen, because {how_many} failed. {reasons[0]}")


def best_of_sweep(choices: Mapping[int, Choice]) -> int:
    """Which case of a sweep has the best value where values are chosen; the first of equals."""
    return max(choices, key=lambda number: (choices[number].value, -number))


def _lines(runs: Sequence[Run], line_of: Callable[[Run], Line | None]) -> list[Line]:
    return [line for line in map(line_of, runs) if line is not None]


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
