"""Labels: which runs a study consists of, and what each is called in it.

Runs are kept by their content; their labels belong to the study as it is now (results/results.py, current.json). A
run may have two: at its point of a sweep, and as the best of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federank.studies.plan.plan import Plan, Run
from federank.studies.results.line import Label
from federank.studies.run.choose import Choice, NoChoice, best_of_sweep


def labelled(
    plan: Plan,
    choosing: Mapping[int, Sequence[Run]],
    choices: Mapping[int, Choice | NoChoice],
    tests: Mapping[int, Sequence[Run]],
) -> list[Label]:
    """Every run that is known so far with its label, in the order of the study; all but the plan by case."""
    numbers = range(len(plan.cases))
    labels = [_label(run) for number in numbers for run in (*choosing.get(number, ()), *tests.get(number, ()))]
    return labels + _best_labels(plan, choices, tests)


def _best_labels(
    plan: Plan, choices: Mapping[int, Choice | NoChoice], tests: Mapping[int, Sequence[Run]]
) -> list[Label]:
    """The best of every sweep that asks for it, once all of its points have been chosen for."""
    sweeps: dict[tuple[Any, ...], list[int]] = {}
    for number, case in enumerate(plan.cases):
        if case.model.best:
            sweeps.setdefault(case.row, []).append(number)
    labels = []
    for numbers in sweeps.values():
        made = {number: choice for number in numbers if isinstance(choice := choices.get(number), Choice)}
        if not made or any(number not in choices for number in numbers):
            continue
        best = best_of_sweep(made)
        case = plan.cases[best]
        group = f"{case.model.group}, best {' and '.join(case.swept)}"
        labels += [_label(run)._replace(group=group, best=True) for run in tests[best]]
    return labels


def _label(run: Run) -> Label:
    return Label(run.id, run.group, run.data.name, run.swept, run.chosen, run.chosen_on)
