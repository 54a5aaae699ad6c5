"""Carrying out a study: what is missing is done, what is there is kept.

1. Runs that choose are given out in the order of the study; as soon as those of a case are finished, its values are
   chosen and its test runs join the queue. With halving, the runs of a rung are known once those before are finished.
2. Before a run is given out it is claimed (results.py). What another process has claimed is left to it, and
   looked for again later: its line, if it has finished; the run itself, if it has died.
3. A finished run is kept at once. Stopped or killed at any moment, the same command goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from federank.errors import BadFile
from federank.studies.documents import read_document
from federank.studies.plan import Case, Plan, Run, plan_study, run_that_tests, source_of, within_chance
from federank.studies.pool import Executor
from federank.studies.results import Label, Lock, Results, RunRecord, values_line
from federank.studies.spec import Study
from federank.studies.task import failed


def _words(data: str, run: Run | RunRecord) -> str:
    values = values_line({**run.swept, **run.chosen})
    fold = "" if run.fold is None else f", fold {run.fold}"
    return f"{data}: {run.group}{f' ({values})' if values else ''}, seed {run.seed}{fold}, {run.task}"


def _outcome(record: RunRecord) -> str:
    """What came of a run, in a few words."""
    if not record.done:
        return f": FAILED. {record.reason}"
    metric = record.metric if record.metric in record.metrics else next(iter(record.metrics), None)
    value = record.metrics.get(metric or "")
    epoch = "" if record.epoch is None else f", epoch {record.epoch}"
    return f"{epoch}{'' if value is None else f', {metric} {value:.5f}'} ({record.seconds or 0.0:.1f} s)"


class Bar:
    """Progress of a study, for a terminal or a log; finished runs go to a tracker too (`log`)."""

    def __init__(self, *, quiet: bool = False, log: Callable[[RunRecord], None] = lambda _: None) -> None:
        self.console, self.log, self.done = Console(stderr=True, quiet=quiet, highlight=False), log, 0
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        self.bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self.task = self.bar.add_task("", total=None, now="")

    def begin(self, plan: Plan, there: int) -> None:
        """Show what there is to do: the plan, and how many of its runs are finished already."""
        self.done, self.total = there, plan.count
        kept = f", {there} of them there already" if there else ""
        content = f"{self.total} runs{kept}. The first runs after an installation compile for some seconds."
        for note in (*plan.notes, content):
            self.console.print(note, markup=False, soft_wrap=True)
        self.bar.update(self.task, total=self.total, completed=there)

    def started(self, run: Run) -> None:
        """Show what is under way."""
        self.bar.update(self.task, now=escape(_words(run.data.name, run)))

    def finished(self, record: RunRecord, *, ours: bool) -> None:
        """Show what has come of a run: one of ours, or another process's."""
        self.done += 1
        line = f"[{self.done}/{self.total}] {_words(record.data, record)}{_outcome(record)}"
        self.console.print(line + ("" if ours else ", by another process"), markup=False, soft_wrap=True)
        self.bar.update(self.task, completed=self.done)
        self.log(record)

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


# Choosing: which values, and which epoch, the runs on the development part speak for.


Runs = tuple[Run, ...]


class Choice(NamedTuple):
    """What was chosen for a case, and the value it was chosen by."""

    values: Mapping[str, Any]
    epoch: int | None
    value: float
    """The metric there, negative where lower is better: a greater value is a better one."""


class NoChoice(NamedTuple):
    """Nothing could be chosen: every combination has failed."""

    reason: str


class SearchState(NamedTuple):
    """How far the choosing of a case has come."""

    runs: list[Run]
    """All runs that it needs, as far as is known."""
    last: list[Runs] | None
    """The combinations that were tried to the end; None while something is missing."""


def search_state(case: Case, record_of: Callable[[Run], RunRecord | None]) -> SearchState:
    """The runs that choosing has needed and needs next; `line_of` answers None for one that is not finished."""
    needed: list[Run] = []
    # How many places of lists a value is a mean over.
    trials = source_of(case.data).users * int(case.choose.metric.partition("@")[2] or 1)
    ranking, keep = list(range(len(case.candidates))), len(case.candidates)
    for stage, goes_on in [*case.rungs, (case.candidates, 0)]:
        numbers = _candidates_of(stage, ranking, keep, record_of)
        needed += [run for number in numbers for run in stage[number]]
        records = {number: _records(stage[number], record_of) for number in numbers}
        if any(len(records[number]) < len(stage[number]) for number in numbers):
            return SearchState(needed, None)
        done = {number: each for number, each in records.items() if all(record.done for record in each)}
        if stage is case.candidates or not done:
            return SearchState(needed, [stage[number] for number in numbers])
        values = {number: _best_point(each, case)[1] for number, each in done.items()}
        ranking = sorted(values, key=lambda number: (-values[number], number))
        near = sum(within_chance(values[ranking[0]], value, trials) for value in values.values())
        keep = max(goes_on, near)
    raise AssertionError("the last stage is the candidates' own")


def _candidates_of(
    stage: Sequence[Runs], ranking: Sequence[int], keep: int, record_of: Callable[[Run], RunRecord | None]
) -> list[int]:
    """Who is tried in this stage: the first `keep` of the order, and another for each that has failed."""
    entered: list[int] = []
    unbroken = 0
    for number in ranking:
        if unbroken == keep:
            break
        entered.append(number)
        records = [record_of(run) for run in stage[number]]
        unbroken += all(record is None or record.done for record in records)
    return entered


def choose(case: Case, record_of: Callable[[Run], RunRecord | None]) -> Choice | NoChoice:
    """The best combination of a case whose choosing runs are all finished."""
    best: Choice | None = None
    tried = search_state(case, record_of)
    for runs in tried.last or ():
        records = _records(runs, record_of)
        if all(record.done for record in records):
            epoch, value = _best_point(records, case)
            if best is None or value > best.value:
                best = Choice(runs[0].chosen, epoch, value)
    if best is not None:
        return best
    reasons = [record.reason for record in _records(tried.runs, record_of) if not record.done]
    how_many = "the only run" if len(case.candidates) == 1 else f"every one of {len(case.candidates)} combinations"
    return NoChoice(f"Nothing could be chosen, because {how_many} failed. {reasons[0]}")


def best_of_sweep(choices: Mapping[int, Choice]) -> int:
    """Which case of a sweep has the best value where values are chosen; the first of equals."""
    return max(choices, key=lambda number: (choices[number].value, -number))


def _records(runs: Sequence[Run], record_of: Callable[[Run], RunRecord | None]) -> list[RunRecord]:
    return [record for record in map(record_of, runs) if record is not None]


def _best_point(records: Sequence[RunRecord], case: Case) -> tuple[int | None, float]:
    metric, sign = case.choose.metric, -1 if case.choose.lower_is_better else 1
    curves = [record.curve for record in records]
    if not all(curves):
        return None, sign * _mean([record.metrics[metric] or 0.0 for record in records])
    # Runs that were stopped early have shorter curves: only epochs that every seed has seen are compared.
    points = [
        (together[0].epoch, sign * _mean([point.values[metric] for point in together]))
        for together in zip(*curves, strict=False)
    ]
    return max(points, key=lambda point: (point[1], -point[0]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass
class CaseProgress:
    """How far a case has come: its runs that choose, what was chosen, and its test runs, as far as they are known."""

    case: Case
    choosing: list[Run] = field(default_factory=list)
    choice: Choice | NoChoice | None = None
    tests: list[Run] = field(default_factory=list)


def labels_of(cases: Sequence[CaseProgress]) -> list[Label]:
    """Every run that is known so far with its label, in the order of the study.

    The best of a sweep that asks for it comes once all of its points have been chosen for.
    """
    labels = [_label(run) for one in cases for run in (*one.choosing, *one.tests)]
    sweeps: dict[tuple[Any, ...], dict[int, CaseProgress]] = {}
    for number, one in enumerate(cases):
        if one.case.model.best:
            sweeps.setdefault(one.case.row, {})[number] = one
    for sweep in sweeps.values():
        made = {number: one.choice for number, one in sweep.items() if isinstance(one.choice, Choice)}
        if made and all(one.choice is not None for one in sweep.values()):
            best = cases[best_of_sweep(made)]
            group = f"{best.case.model.group}, best {' and '.join(best.case.swept)}"
            labels += [_label(run)._replace(group=group, best=True) for run in best.tests]
    return labels


def _label(run: Run) -> Label:
    return Label(run.id, run.group, run.data.name, run.swept, run.chosen, run.chosen_on)


_POLL_SECONDS = 1.0


def open_results(study: Study, folder: str | Path) -> Results:
    """The study's results folder, made if need be; one that belongs to another study is refused."""
    results = Results.create(folder)
    kept = results.folder / "study.toml"
    if kept.is_file():
        other = read_document(kept).get("title")
        if other != study.title:
            raise BadFile(
                f"{folder} holds the results of another study, {other!r}; choose another folder with --out, or "
                "give the study that title."
            )
    return results


def changed_data(plan: Plan, results: Results) -> list[str]:
    """Sentences on the data that are not what the study's finished runs have learnt from."""
    now = {case.data.name: source_of(case.data).fingerprint for case in plan.cases}
    old: dict[str, set[str]] = {}
    for record in results.records():
        if record.data in now and record.data_fingerprint not in (None, now[record.data]):
            old.setdefault(record.data, set()).add(record.id)
    return [
        f"{name} is not the data that {len(runs):,} finished runs have learnt from: its content, or how it is read and "
        "filtered, has changed. They no longer count, and are made again."
        for name, runs in old.items()
    ]


def run_study(
    study: Study, folder: str | Path, executor: Executor[Any, Any], observer: Bar, plan: Plan | None = None
) -> Results:
    """Carry out what is missing of a study, and keep it in the folder."""
    plan = plan_study(study) if plan is None else plan
    results = open_results(study, folder)
    results.keep_study(tomli_w.dumps(study.document | {"title": study.title}))
    StudyRun(plan, results, executor, observer).execute()
    return results


class StudyRun:
    """A study under way."""

    def __init__(self, plan: Plan, results: Results, executor: Executor[Any, Any], observer: Bar) -> None:
        self.plan, self.results, self.executor, self.observer = plan, results, executor, observer
        self.cases = [CaseProgress(case) for case in plan.cases]
        self.queue: deque[Run] = deque()
        self.claimed_elsewhere: deque[Run] = deque()
        self.claims: dict[str, Lock] = {}
        self.finished: set[str] = set()
        self.queued: set[str] = set()

    def execute(self) -> None:
        """Go on until every run of the plan is finished."""
        self.results.refresh()
        for one in self.cases:
            self._search(one, first=False)
        self._advance()
        if not any(one.choice for one in self.cases):  # what is planned is known before anything is finished
            self._keep_current(self.plan.count)
        self.observer.begin(self.plan, len(self.finished))
        try:
            while self.queue or self.claimed_elsewhere or self.claims:
                self._dispatch()
                result = self.executor.next(_POLL_SECONDS if self.claimed_elsewhere else None) if self.claims else None
                if result is not None:
                    self._store(result.record, result.users)
                elif self.claimed_elsewhere and not self.claims:
                    time.sleep(_POLL_SECONDS)
                self._check_other_processes()
                self._advance()
        finally:
            for claim in self.claims.values():
                claim.close()
        self._keep_current()

    def _record(self, run: Run) -> RunRecord | None:
        """What is known of a run; a failure that may pass counts as nothing, unless it is of this very start."""
        record = self.results.record(run.id)
        if record is not None and record.transient and run.id not in self.finished:
            return None
        return record

    def _enqueue(self, run: Run, *, first: bool = False) -> None:
        if run.id in self.queued:
            return
        self.queued.add(run.id)
        if self._record(run) is not None:
            self.finished.add(run.id)
        elif first:
            self.queue.appendleft(run)
        else:
            self.queue.append(run)

    def _search(self, one: CaseProgress, *, first: bool) -> SearchState:
        """How far a case's choosing has come; what it needs next joins the queue."""
        while True:
            now = search_state(one.case, self._finished_record)
            one.choosing = now.runs
            fresh = [run for run in now.runs if run.id not in self.queued]
            for run in reversed(fresh) if first else fresh:
                self._enqueue(run, first=first)
            if not any(run.id in self.finished for run in fresh):
                return now

    def _finished_record(self, run: Run) -> RunRecord | None:
        return self.results.record(run.id) if run.id in self.finished else None

    def _keep_current(self, count: int | None = None) -> None:
        labels = labels_of(self.cases)
        self.results.keep_current(labels, len({label.id for label in labels}) if count is None else count)

    def _advance(self) -> None:
        """Choose for the cases whose choosing runs are finished, and line up their tests."""
        open_cases = [one for one in self.cases if one.choice is None]
        ready = [one for one in open_cases if self._search(one, first=True).last is not None]
        for one in ready:
            case = one.case
            one.choice = choose(case, self._finished_record) if case.candidates else Choice(case.fixed, None, 0.0)
            one.tests = _tests(case, one.choice, one.choosing)
        # Tests go before other rows' choosing, so that rows get done one by one; the last row first, so that in the end
        # they are in the study's order.
        for one in reversed(ready):
            for run in reversed(one.tests):
                if isinstance(one.choice, NoChoice):
                    self._record_failure(run, one.choice.reason)
                else:
                    self._enqueue(run, first=True)
        if ready:
            self._keep_current(self.plan.count)

    def _record_failure(self, run: Run, reason: str) -> None:
        """Keep that a test could not be made, once."""
        if run.id not in self.queued:
            self.queued.add(run.id)
            if self.results.record(run.id) is None:
                self.results.append(failed(run, reason).record)
                self.results.refresh()
            self.finished.add(run.id)

    def _dispatch(self) -> None:
        while self.queue and len(self.claims) < self.executor.slots:
            run = self.queue.popleft()
            claim = self.results.claim(run.id)
            if claim is None:
                self.claimed_elsewhere.append(run)
                continue
            self.results.refresh()  # another process may have finished it just now
            if (record := self._record(run)) is not None:
                claim.close()
                self._report(record, ours=False)
                continue
            self.claims[run.id] = claim
            self.observer.started(run)
            self.executor.submit(run)

    def _store(self, record: RunRecord, users: bytes | None) -> None:
        self.results.append(record, users)
        self.results.refresh()
        self.claims.pop(record.id).close()
        self._report(record, ours=True)

    def _report(self, record: RunRecord, *, ours: bool) -> None:
        self.finished.add(record.id)
        self.observer.finished(record, ours=ours)

    def _check_other_processes(self) -> None:
        """Take note of what other processes have finished, and take over what they have left."""
        if not self.claimed_elsewhere:
            return
        self.results.refresh()
        for _ in range(len(self.claimed_elsewhere)):
            run = self.claimed_elsewhere.popleft()
            if (record := self._record(run)) is not None:
                self._report(record, ours=False)
            else:
                self.queue.append(run)


def _tests(case: Case, choice: Choice | NoChoice, choosing: list[Run]) -> list[Run]:
    if isinstance(choice, Choice):
        return [run_that_tests(case, choice.values, choice.epoch, seed) for seed in case.seeds]
    # No values were chosen, so this test is none that could ever be made: it is named after all that failed.
    tried = " ".join(run.id for run in choosing)
    given_up = [run_that_tests(case, {}, None, seed) for seed in case.seeds]
    return [replace(run, id=hashlib.sha256(f"{run.id} {tried}".encode()).hexdigest()[:16]) for run in given_up]
