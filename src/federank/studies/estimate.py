"""How long a study may take, before it is started.

Where the results folder has runs of the same kind (same model, data and task), their mean time per epoch counts. Else
the time follows from what a method's cost grows with, at speeds measured on one core of an ordinary server: a guess
that is good to a factor of two. Where patience may end a run early, twice the patience is taken for its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from federank.studies.plan import Case, Run, run_that_tests
from federank.studies.results import Line
from federank.studies.sources import source_of

_TRIPLES = 12e6  # a second: FPL and BPR
_RATINGS = 25e6  # a second: PMF and SVD++
_SCORES = 100e6  # a second: ranking the catalogue for everyone
_START = 0.2  # seconds


def run_seconds(run: Run, known: Sequence[Line]) -> float:
    """About how long a run takes on one core."""
    epochs = (run.epochs if run.epoch is None else run.epoch) or 1
    if run.patience is not None:
        epochs = min(epochs, 2 * run.patience)
    alike = [line for line in known if _kind(line) == (run.method, run.data.name, run.task) and line.seconds]
    alike = [line for line in alike if line.settings.get("triples") == run.settings.get("triples")]
    if alike:
        per_epoch = [(line.seconds or 0.0) / max(1, len(line.curve) or line.epoch or 1) for line in alike]
        return float(epochs * sum(per_epoch) / len(per_epoch))
    part = source_of(run.data).parts[0].full.train
    judged = part.n_users * part.n_items / _SCORES
    times_judged = epochs if run.task == "choose" and run.best_epoch else 1
    return _START + times_judged * judged + epochs * _epoch_seconds(run.method, run.settings, len(part), part.n_users)


def case_seconds(case: Case, known: Sequence[Line]) -> float:
    """About how long all runs of a case take on one core; the epoch that will be chosen is guessed."""
    choosing = case.expected
    patience = case.choose.patience if choosing and case.choose.best_epoch else None
    first = run_that_tests(case, choosing[0].chosen if choosing else case.fixed, None, case.seeds[0])
    test = replace(first, patience=patience)
    return sum(run_seconds(run, known) for run in choosing) + len(case.seeds) * run_seconds(test, known)


def _kind(line: Line) -> tuple[Any, ...]:
    return line.model, line.data, line.task


def _epoch_seconds(method: str, settings: dict[str, Any], interactions: int, users: int) -> float:
    """What an epoch of training costs; a method without epochs has one."""
    if method in ("fpl", "federank", "bpr"):
        triples = settings.get("triples", 1)
        factor = interactions / users if triples in ("mean", "profile") else float(triples)
        return float(interactions * factor / _TRIPLES * settings.get("factors", 20) / 20)
    if method in ("pmf", "svdpp"):
        return float(interactions * (1 + settings.get("rho", 0)) / _RATINGS * (2 if method == "svdpp" else 1))
    if method == "vae":
        return 2 * users / 1000
    if method == "fcf":
        return interactions / 2e6
    return interactions / 5e5 if method.endswith("knn") else 0.0
