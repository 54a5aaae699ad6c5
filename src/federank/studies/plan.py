"""The plan of a study: which runs it needs, each named by its content.

A *case* is one row: a model on a data set (and fold), with one combination of swept values. Its runs:

1. choose: every combination of the grid is trained on the development part and judged after each epoch, unless there
   is nothing to choose; with `search = "halving"` first for a few epochs each;
2. test: with the values and the epoch that were best, the model learns from the full training part and is tested
   once, for every seed.

The second kind is known only when the first is done (run.py). A run's id is a digest of what its result depends
on: the data's fingerprint, filters and split, the method and all its settings, the seed, the task and how it is judged.
Labels are not in it: a row may be renamed, and two rows may share a run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.data.datasets import KNOWN, find, how_to_get
from federank.data.interactions import Interactions, filtered
from federank.data.loading import load
from federank.data.splits import FOLDS, Division, Split, divide
from federank.errors import BadSplit, DataError, SettingError
from federank.methods.registry import recommender_class
from federank.studies.report_spec import asks_for_traffic, wanted_extras
from federank.studies.results import FORMAT, Part, Planned, RunRecord
from federank.studies.spec import (
    POISON_KEYS,
    Audit,
    Choose,
    DataSet,
    ModelEntry,
    Over,
    Study,
    crossed,
    epochs_setting,
    refuse_impossible_audit,
    setting_names,
)

if TYPE_CHECKING:
    from federank.audit.poisoning import PoisonSettings


# The data of a study: read, filtered and split, once in each process.
#
#     full           all users' training part and test part: what a chosen model learns from and is tested on
#     development    the training part without its newest fifth, and that fifth in the place of the test: for choosing
#
# Both come from one division: validation is cut from the training part, so choosing never sees the test part.


_STORED = 3


class Splits(NamedTuple):
    """One division of a data set."""

    full: Split
    development: Split | None


class Source(NamedTuple):
    """A data set of a study, and its divisions: one, or as many as there are folds."""

    fingerprint: str
    users: int
    repeats_left_out: int
    parts: tuple[Splits, ...]


def missing(data: DataSet) -> str:
    """What to say if this known data set is not installed; empty where it can be read."""
    known = KNOWN.get(data.source)
    if known is None or known.generated or find(data.source) is not None:
        return ""
    return f"{known.title} is not installed, so its runs are left out. {how_to_get(known)}"


def source_of(data: DataSet) -> Source:
    """The data set with its divisions; read once in a process, the latest few are stored."""
    if data.key not in _sources:
        read = filtered(load(data.source, **data.reading), data.filters)
        parts = tuple(_divided(read, data.split))
        _sources[data.key] = Source(read.fingerprint, read.n_users, read.repeats_left_out, parts)
        for oldest in list(_sources)[:-_STORED]:
            del _sources[oldest]
    return _sources[data.key]


def provide(data: DataSet, source: Source) -> None:
    """Use what another process has read: a machine of a cluster need not have the files."""
    _sources.setdefault(data.key, source)


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


# Successive halving: most combinations of a grid show early that they will not win.


FIRST = 0.1
"""The share of the budget that everything is tried for."""
FACTOR = 3
"""One in this many goes on, to this many times the epochs."""


def rungs(combinations: int, budget: int) -> list[tuple[int, int]]:
    """For each step before the last: how many epochs everything that is left is tried for, and how many go on."""
    steps, left, epochs = [], combinations, max(1, math.ceil(FIRST * budget))
    while left > 1 and epochs < budget:
        left = math.ceil(left / FACTOR)
        steps.append((epochs, left))
        epochs *= FACTOR
    return steps


def within_chance(best: float, value: float, trials: int) -> bool:
    """Whether a share of hits in this many trials may be behind the best by chance alone: two standard errors of
    counts.

    Errors, which are negative here because lower is better, and other values that are no shares: two percent.
    """
    if best < 0:
        return value >= 1.02 * best
    return best - value <= 2 * math.sqrt(best / trials)


@dataclass(frozen=True, kw_only=True)
class Run(Planned):
    """One training and what it is judged by: all that a worker needs to know."""

    data: DataSet
    fingerprint: str
    method: str
    seed: int
    part: Part
    epoch: int | None = None
    """The epoch to stop at; None to go through the budget."""
    lower_is_better: bool
    best_epoch: bool = False
    metrics: tuple[str, ...] | None
    curve: bool = False
    extras: tuple[str, ...] = ()
    audit: Audit | None = None
    poison: tuple[PoisonSettings, ...] = ()
    over: Over = "all"
    """Whom means are taken over in a test: everyone, or those who got a list."""
    counts_traffic: bool = True
    """Whether what was sent is counted: a cost, like the seconds, and so no part of the id."""

    def all_settings(self) -> dict[str, Any]:
        """What the recommender is made with: it is stopped by its own count of epochs."""
        name = epochs_setting(self.method)
        stop = {} if name is None else {name: self.epochs if self.epoch is None else self.epoch}
        seed = {"seed": self.seed} if "seed" in setting_names(self.method) else {}
        return {**self.settings, **stop, **seed}


class Rung(NamedTuple):
    """A step of a search by halving: every combination's runs at few epochs, and how many combinations go on."""

    candidates: tuple[tuple[Run, ...], ...]
    keep: int


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of a study on one fold: runs that choose, and the test run that they lead to."""

    model: ModelEntry
    data: DataSet
    fold: int | None
    swept: dict[str, Any]
    along: dict[str, Any]
    choose: Choose
    candidates: tuple[tuple[Run, ...], ...] = ()
    """For every combination of the grid, a run for each seed that chooses; none where there is nothing to choose."""
    rungs: tuple[Rung, ...] = ()
    """What is tried for a few epochs before the candidates are; none where the full grid is searched."""
    seeds: tuple[int, ...]
    fixed: dict[str, Any]
    """The values of a grid that has one combination only."""
    study: Study

    @property
    def expected(self) -> list[Run]:
        """The runs that choose, the first of a grid standing for those that will get further."""
        stages = [rung.candidates for rung in self.rungs] + [self.candidates]
        kept = [len(self.candidates), *(rung.keep for rung in self.rungs)]
        return [run for stage, most in zip(stages, kept, strict=True) for runs in stage[:most] for run in runs]

    @property
    def row(self) -> tuple[str, str, int | None]:
        """The rows among which the best of a sweep is looked for."""
        return self.data.name, self.model.group, self.fold


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All cases of a study, and what had to be left out."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...]

    @cached_property
    def count(self) -> int:
        """How many runs there are; one that two rows share counts once, as far as it is known before choosing."""
        known = {run.id for case in self.cases for run in case.expected}
        fixed = [case for case in self.cases if not case.candidates]
        known |= {run_that_tests(case, case.fixed, None, seed).id for case in fixed for seed in case.seeds}
        return len(known) + sum(len(case.seeds) for case in self.cases if case.candidates)


def plan_study(study: Study) -> Plan:
    """Work a study out; data that is not installed is left out with a note."""
    notes = [note for note in map(missing, study.data) if note]
    present = [data for data in study.data if not missing(data)]
    if not present:
        raise DataError(f"None of the study's data is there. {' '.join(notes)}")
    cases = []
    for data in present:
        for model in study.models:
            if model.data is None or data.name in model.data:
                for fold in range(1, len(source_of(data).parts) + 1):
                    cases += _cases(study, data, model, fold)
    if not cases:
        raise SettingError("The study has no run: none of its models is for data that is there.")
    return Plan(cases=tuple(cases), notes=tuple(notes))


def _cases(study: Study, data: DataSet, model: ModelEntry, number: int) -> list[Case]:
    fold = number if data.split.way == FOLDS else None
    choose = study.choosing(data, model)
    grid = crossed(model.grid)
    if choose.trials is not None and len(grid) > choose.trials:  # always the same ones
        grid = [grid[number] for number in sorted(Random(0).sample(range(len(grid)), choose.trials))]
    learns_in_epochs = epochs_setting(model.method) is not None
    has_choice = len(grid) > 1 or model.best or (learns_in_epochs and choose.best_epoch)
    if has_choice:
        part_of(data, fold, choose.part)  # says so now if there is no such part
    has_chance = "seed" in setting_names(model.method)
    choosing_seeds = choose.seeds if has_chance else (1,)
    cases = []
    for swept, along in model.sweep:
        case = Case(
            model=model,
            data=data,
            fold=fold,
            swept=swept,
            along=along,
            choose=choose,
            seeds=model.seeds if has_chance else (1,),
            fixed=grid[0] if len(grid) == 1 else {},
            study=study,
        )
        if has_choice:

            def runs(epochs: int | None = None, case: Case = case) -> tuple[tuple[Run, ...], ...]:
                return tuple(tuple(_choosing(case, values, seed, epochs) for seed in choosing_seeds) for values in grid)

            case = replace(case, candidates=runs())
            if choose.search == "halving" and learns_in_epochs and choose.best_epoch:
                steps = rungs(len(grid), case.candidates[0][0].epochs or 1)
                case = replace(case, rungs=tuple(Rung(runs(epochs), keep) for epochs, keep in steps))
        else:
            run_that_tests(case, case.fixed, None, case.seeds[0])  # refuses impossible settings before anything is run
        cases.append(case)
    return cases


def _choosing(case: Case, values: Mapping[str, Any], seed: int, epochs: int | None = None) -> Run:
    return _run(
        case,
        values,
        epochs,
        task="choose",
        seed=seed,
        part=case.choose.part,
        metric=case.choose.metric,
        patience=case.choose.patience if case.choose.best_epoch else None,
        best_epoch=case.choose.best_epoch,
        at=(int(case.choose.metric.partition("@")[2] or 10),),
    )


def run_that_tests(case: Case, chosen: Mapping[str, Any], epoch: int | None, seed: int) -> Run:
    """The run that tests the chosen values: trained on the full training part, to the chosen epoch."""
    first = seed == case.seeds[0] and case.fold in (None, 1)
    return _run(
        case,
        chosen,
        task="test",
        seed=seed,
        epoch=epoch,
        part="test",
        metric=case.choose.metric if case.candidates else None,
        chosen_on=case.choose.part if case.candidates else None,
        at=case.study.at,
        curve=case.model.curve and first,
        extras=tuple(sorted(wanted_extras(case.study.specs, case.model.group))),
        audit=case.model.audit,
        poison=case.model.poison,
        over=case.model.over,
        counts_traffic=first or asks_for_traffic(case.study.specs),
    )


def _run(case: Case, chosen: Mapping[str, Any], epochs: int | None = None, **values: Any) -> Run:
    """A run with these chosen values, and with fewer epochs than its budget where they are given."""
    method = case.model.method
    name = epochs_setting(method)
    budget = {} if name is None or case.choose.epochs is None else {name: case.choose.epochs}
    fewer = {} if name is None or epochs is None else {name: epochs}
    settings = {**budget, **case.model.settings, **case.along, **case.swept, **chosen, **fewer}
    record = recommender_class(method)(**settings).settings
    refuse_impossible_audit(case.model.audit, case.model.group, record)
    run = Run(
        group=case.model.group,
        data=case.data,
        fingerprint=source_of(case.data).fingerprint,
        repeats_left_out=source_of(case.data).repeats_left_out,
        fold=case.fold,
        method=method,
        settings={key: value for key, value in settings.items() if key != name},
        swept=case.swept,
        chosen=dict(chosen),
        epochs=None if name is None else getattr(record, name),
        lower_is_better=case.choose.lower_is_better,
        metrics=case.study.metrics,
        **values,
    )
    return replace(run, id=_identity(run))


def _identity(run: Run) -> str:
    record = asdict(recommender_class(run.method)(**run.all_settings()).settings)
    content: dict[str, Any] = {
        "format": FORMAT,
        "data": [run.fingerprint, run.data.filters, run.data.split.as_dict(), run.fold],
        "model": [run.method, record],
        "seed": run.seed,
        "task": [run.task, run.part, run.at, run.metrics, run.curve, run.extras],
    }
    if run.task == "choose":
        content["judged"] = [run.metric, run.patience, run.best_epoch]
    if run.audit is not None:  # a run that no one watches keeps the id it always had
        content["audit"] = [run.audit.sees, run.audit.people]
    if run.poison:
        content["poison"] = _poison_identity(run.poison)
    if run.over != "all":
        content["over"] = run.over
    text = json.dumps(content, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _poison_identity(poison: Sequence[PoisonSettings]) -> dict[str, Any]:
    """What names a run with malicious clients: what differs from the usual, of settings that were added later."""
    first = poison[0]
    usual: dict[str, Any] = {"bounds": "all", "recipe": "spectral", "epsilon": None, "item_weights": "none"}
    if first.sees != "checked":
        usual["clip"] = first.clip  # of others it says nothing
    content = {name: getattr(first, name) for name in POISON_KEYS if name != "shares"}
    content = {name: value for name, value in content.items() if name not in usual or value != usual[name]}
    return content | {"shares": [settings.share for settings in poison]}


def case_seconds(case: Case, known: Sequence[RunRecord]) -> float | None:
    """About how long all runs of a case take on one core, by finished ones of the same model, data and task.

    Where patience may end a run early, twice the patience is taken for its length.
    """
    choosing = case.expected
    test = run_that_tests(case, choosing[0].chosen if choosing else case.fixed, None, case.seeds[0])
    runs = [*choosing, *[replace(test, patience=choosing[0].patience if choosing else None)] * len(case.seeds)]
    total = 0.0
    for run in runs:
        kind = (run.method, run.data.name, run.task, run.settings.get("triples"))
        alike = [
            record.seconds / max(1, len(record.curve) or record.epoch or 1)
            for record in known
            if record.seconds and (record.model, record.data, record.task, record.settings.get("triples")) == kind
        ]
        if not alike:
            return None
        epochs = run.epochs or 1
        total += sum(alike) / len(alike) * (epochs if run.patience is None else min(epochs, 2 * run.patience))
    return total
