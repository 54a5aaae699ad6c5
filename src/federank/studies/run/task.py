"""Carrying out one run: train, judge, and tell it as a line of the results.

A run that chooses is judged after every epoch, by one metric only, and stopped once `patience` epochs have brought
nothing better. A run that tests goes to its epoch and is judged once, by everything. What a user can mend (a model that
diverges, data that has changed) makes a failed run with its reason, and so does any other mishap: the other runs of
a study go on.
"""

from __future__ import annotations

import io
import math
import platform
import sys
import time
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from federank import extensions
from federank.data.splits import Split
from federank.engines.conduct import Conduct
from federank.errors import DataError, FedeRankError
from federank.evaluation.evaluate import METRICS, Evaluation, evaluate
from federank.evaluation.fitting import best_of, curve_of, judged
from federank.evaluation.metrics.bias import EVERYBODY
from federank.evaluation.prediction import prediction_errors
from federank.evaluation.sampled import SAMPLED
from federank.recommenders.federated_pairs import FederatedPairs
from federank.recommenders.predicting import PredictsRatings
from federank.recommenders.recommender import Recommender
from federank.recommenders.registry import recommender_class
from federank.studies.plan.plan import Run
from federank.studies.plan.sources import part_of, source_of
from federank.studies.plan.study import RATING_METRICS
from federank.studies.plan.vocabulary import epochs_setting
from federank.studies.results.line import Line, Point, Traffic
from federank.studies.run.audits import audited
from federank.studies.run.extras import extras
from federank.studies.run.lifetime import communication_of, lifetime
from federank.studies.run.poisoning import poisoned

_PACKAGES = ("federank", "numpy", "numba", "scipy", "polars")


@cache
def _versions() -> dict[str, str]:
    """What runs are carried out with. To find a package's version takes a while, and it stays while a process runs."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


class Finished(NamedTuple):
    """A run that is done or has failed."""

    run: Run
    line: Line
    users: bytes | None
    """Each user's values, as the content of a Parquet file; of test runs only."""


def carry_out(run: Run) -> Finished:
    """Train and judge; whatever goes wrong becomes a failed run that says why."""
    begin, computing = time.perf_counter(), time.process_time()
    try:
        found, users = _carried_out(run)
    except FedeRankError as reason:
        return failed(run, str(reason))
    except MemoryError:
        return failed(run, "The run needs more memory than there is.", transient=True)
    except Exception as reason:  # a mistake of ours must not end the other runs
        return failed(run, f"Something unexpected went wrong: {type(reason).__name__}: {reason}", transient=True)
    line = replace(
        _line(run),
        **found,
        seconds=round(time.perf_counter() - begin, 3),
        cpu_seconds=round(time.process_time() - computing, 3),
        memory_mb=_peak_memory(),
    )
    return Finished(run, line, users)


def failed(run: Run, reason: str, *, transient: bool = False) -> Finished:
    """A run that came to nothing; a transient failure is tried again when the study is next started."""
    return Finished(run, replace(_line(run), status="failed", reason=reason, transient=transient), None)


def _carried_out(run: Run) -> tuple[dict[str, Any], bytes | None]:
    if source_of(run.data).fingerprint != run.fingerprint:
        raise DataError(f"{run.data.name} has changed since the study was started; start it again.")
    split = part_of(run.data, run.fold, run.part)
    model = recommender_class(run.method)(**run.all_settings())
    return _chosen_by(run, model, split) if run.task == "choose" else _tested(run, model, split)


def _chosen_by(run: Run, model: Recommender, split: Split) -> tuple[dict[str, Any], None]:
    assert run.metric is not None
    metric, sign = run.metric, -1 if run.lower_is_better else 1
    if epochs_setting(run.method) is None or not run.best_epoch:
        model.fit(split.train)
        return {"metrics": {metric: judged(model, split, metric)}, "epoch": run.epochs}, None
    values = curve_of(model, split, metric, sign=sign, patience=run.patience)
    best = best_of(values, sign)
    curve = [Point(epoch, {metric: value}) for epoch, value in enumerate(values, start=1)]
    return {"metrics": {metric: values[best]}, "epoch": best + 1, "curve": curve}, None


def _tested(run: Run, model: Recommender, split: Split) -> tuple[dict[str, Any], bytes | None]:
    if run.poison is not None:
        return {"metrics": poisoned(run.method, split, run.poison, run.seed), "epoch": None}, None
    curve: list[Point] = []
    traced = RATING_METRICS if isinstance(model, PredictsRatings) else (f"precision@{run.at[-1]}",)

    def trace(epoch: int) -> None:
        curve.append(Point(epoch, {metric: judged(model, split, metric) for metric in traced}))

    watched = run.curve and epochs_setting(run.method) is not None
    model.fit(split.train, conduct=Conduct(after_epoch=trace if watched else None))
    metrics: dict[str, Any] = {}
    users = None
    if isinstance(model, PredictsRatings):
        errors = prediction_errors(model, split.test)
        metrics |= {"mae": errors.mae, "rmse": errors.rmse}
    wanted = None if run.metrics is None else [name.partition("@")[0] for name in run.metrics]
    known = (*METRICS, *SAMPLED, *extensions.names("metrics"))
    usual = [name for name in known if name not in SAMPLED]
    ranking = [name for name in wanted or usual if name in known]
    if ranking:
        found = evaluate(model, split, at=run.at, metrics=ranking, over=run.over)
        metrics |= found.means | _training_part(split, found)
        users = _parquet(found)
    extra = extras(model, split, run.extras, run.at[-1])
    if run.audit is not None:
        found_out, beside = audited(model, run.audit)
        metrics, extra = metrics | found_out, extra | beside
    # FPL's traffic is counted by making a run's draws again, which takes half as long as the run.
    sent = communication_of(model) if run.counts_traffic or not isinstance(model, FederatedPairs) else None
    metrics |= _figure_of_noise(model) | (lifetime(sent, model.training.n_users) if sent else {})
    about = {
        "metrics": {name: _finite(value) for name, value in metrics.items()},
        "epoch": run.epochs if run.epoch is None else run.epoch,
        "curve": curve,
        "bytes": _bytes(sent),
        "extra": extra,
    }
    return about, users


def _training_part(split: Split, found: Evaluation) -> dict[str, float]:
    """What the papers' Table 1 tells of a training part: its sizes and, by category, its bias B_T."""
    train = split.train
    sizes: dict[str, float] = {
        "training_users": int(np.count_nonzero(train.profiles.sizes)),
        "training_items": int(np.count_nonzero(train.popularity)),
        "training_interactions": len(train),
    }
    if found.bias is None:
        return sizes
    everybody = found.bias.filter((pl.col("group") == EVERYBODY) & (pl.col("at") == found.at[0]))
    biases = zip(everybody["category"], everybody["bias_train"], strict=True)
    return sizes | {f"bias_train/{category}": value for category, value in biases if value is not None}


def _parquet(found: Evaluation) -> bytes:
    content = io.BytesIO()
    found.per_user.write_parquet(content)
    return content.getvalue()


def _figure_of_noise(model: Recommender) -> dict[str, float]:
    """What the accountant says of a run with noise: of the person with the most rounds, if there is a figure."""
    epsilon = model.report.get("privacy", {}).get("epsilon")
    if "adjacency" in model.report:  # noise of two servers (protocol/squares/private/)
        epsilon = model.report["epsilon"]
    return {} if epsilon is None else {"noise_epsilon": epsilon}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _bytes(sent: dict[str, Any] | None) -> Traffic | None:
    """What the devices sent and received, where the method is a federation that counts it."""
    if not sent:
        return None
    down = sent.get("down_changed", sent["down_dense"])
    return Traffic(up=int(sent["up"]["bytes"]), down=int(down["bytes"]))


def _peak_memory() -> float | None:
    """The most memory that this process has had, in MB; a worker's earlier runs count too."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def _line(run: Run) -> Line:
    """What a line tells of a run whatever becomes of it."""
    return Line(
        id=run.id,
        group=run.group,
        data=run.data.name,
        model=run.method,
        settings=run.settings,
        swept=run.swept,
        chosen=run.chosen,
        seed=run.seed,
        fold=run.fold,
        task=run.task,
        part=run.part,
        metric=run.metric,
        epochs=run.epochs,
        patience=run.patience,
        at=run.at,
        chosen_on=run.chosen_on,
        versions=dict(_versions()),
        data_fingerprint=run.fingerprint,
        repeats_left_out=run.repeats_left_out,
    )
