"""Labels: which runs a study consists of, and what each is called in it.

Runs are kept by their content; their labels belong to the study as it is now (results/results.py, current.json). A
run may have two: at its point of a sweep, and as the best of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federank.studies.plan.plan import Case, Plan, Run
from federank.studies.run.choose import Choice, NoChoice, best_of_sweep


def choosing_runs(case: Case) -> list[Run]:
    """The runs that choose for a case."""
    return [run for runs in case.candidates for run in runs]


def labelled(
    plan: Plan, choices: Mapping[int, Choice | NoChoice], tests: Mapping[int, Sequence[Run]]
) -> list[dict[str, Any]]:
    """Every run that is known so far with its label, in the order of the study; `choices` and `tests` by case."""
    rows = [
        _row(run) for number, case in enumerate(plan.cases) for run in (*choosing_runs(case), *tests.get(number, ()))
    ]
    return rows + _best_rows(plan, choices, tests)


def _best_rows(
    plan: Plan, choices: Mapping[int, Choice | NoChoice], tests: Mapping[int, Sequence[Run]]
) -> list[dict[str, Any]]:
    """The best of every sweep that asks for it, once all of its points have been chosen for."""
    sweeps: dict[tuple[Any, ...], list[int]] = {}
    for number, case in enumerate(plan.cases):
        if case.model.best:
            sweeps.setdefault(case.row, []).append(number)
    rows = []
    for numbers in sweeps.values():
        made = {number: choice for number in numbers if isinstance(choice := choices.get(number), Choice)}
        if not made or any(number not in choices for number in numbers):
            continue
        best = best_of_sweep(made)
        case = plan.cases[best]
        label = f"{case.model.group}, best {' and '.join(case.swept)}"
        rows += [_row(run) | {"group": label, "best": True} for run in tests[best]]
    return rows


def _row(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "group": run.group,
        "data": run.data.name,
        "swept": run.swept,
        "chosen": run.chosen,
        "chosen_on": run.chosen_on,
    }
