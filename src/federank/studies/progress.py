"""Progress of a study on stderr: a bar on a terminal, a line per finished run elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from federank.studies.plan import Plan, Run
from federank.studies.results import RunRecord


def _finished_record(record: RunRecord) -> str:
    """A finished run in a few words."""
    words = _words(record.data, record)
    if not record.done:
        return f"{words}: FAILED. {record.reason}"
    metric = record.metric if record.metric in record.metrics else next(iter(record.metrics), None)
    value = None if metric is None else record.metrics[metric]
    epoch = "" if record.epoch is None else f", epoch {record.epoch}"
    return f"{words}{epoch}{'' if value is None else f', {metric} {value:.5f}'} ({record.seconds or 0.0:.1f} s)"


def _words(data: str, run: Run | RunRecord) -> str:
    values = ", ".join(f"{name} {value}" for name, value in {**run.swept, **run.chosen}.items())
    fold = "" if run.fold is None else f", fold {run.fold}"
    return f"{data}: {run.group}{f' ({values})' if values else ''}, seed {run.seed}{fold}, {run.task}"


class Bar:
    """Progress of a study, for a terminal or a log; finished runs go to a tracker too (`log`)."""

    def __init__(self, *, quiet: bool = False, log: Callable[[RunRecord], None] | None = None) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.bar: Progress | None = None
        self.log = log
        self.done = self.total = self.failed = 0
        self.began = time.perf_counter()

    def begin(self, plan: Plan, there: int) -> None:
        """Show what there is to do."""
        self.done, self.total = there, plan.count
        for note in plan.notes:
            self.console.print(note, markup=False, soft_wrap=True)
        kept = f", {there} of them there already" if there else ""
        content = f"{self.total} runs{kept}. The first runs after an installation compile for some seconds."
        self.console.print(content, soft_wrap=True)
        if self.console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar.start()
            self.bar.add_task("", total=self.total, completed=there, now="")

    def started(self, run: Run) -> None:
        """Show what is under way."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], now=_words(run.data.name, run).replace("[", r"\["))

    def finished(self, record: RunRecord, *, ours: bool) -> None:
        """Show what has come of a run."""
        self.done += 1
        self.failed += not record.done
        whose = "" if ours else ", by another process"
        self.console.print(
            f"[{self.done}/{self.total}] {_finished_record(record)}{whose}", markup=False, soft_wrap=True
        )
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done)
        if self.log is not None:
            self.log(record)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
