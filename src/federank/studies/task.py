"""Carrying out one run: train, evaluate, and record it as a line of the results.

A run that chooses is judged after every epoch, by one metric only, and stopped once `patience` epochs have brought
nothing better. A run that tests goes to its epoch and is judged once, by everything. What a user can fix (a model that
diverges, data that has changed) makes a failed run with its reason, and so does any other mishap: the other runs of
a study go on.
"""

from __future__ import annotations

import io
import math
import platform
import resource
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from federank import extensions
from federank._numerics.arrays import LongVector
from federank.data.splits import Split
from federank.errors import DataError, FedeRankError, SettingError
from federank.evaluation.evaluate import METRICS, Evaluation, evaluate, prediction_errors
from federank.evaluation.lists import SAMPLED
from federank.evaluation.metrics import ALL_USERS, count_items, group_means
from federank.evaluation.search import best_of, curve_of, judged
from federank.methods.predicting import PredictsRatings
from federank.methods.recommender import Recommender
from federank.methods.registry import recommender_class
from federank.simulation.options import TrainingOptions
from federank.studies.plan import Run, part_of, source_of
from federank.studies.report_spec import EXTRAS, OF_RATINGS
from federank.studies.results import Planned, Point, RunRecord, Traffic
from federank.studies.spec import Audit, epochs_setting

if TYPE_CHECKING:
    from federank.audit.poisoning import PoisonSettings
    from federank.audit.scoring import Findings


# What the servers that watch a run find, as metrics of the run under each server's name:


def audited(model: Any, audit: Audit) -> tuple[dict[str, float | None], dict[str, Any]]:
    """What each server finds in a trained model's run: metrics by its name, and the words and counts beside them."""
    from federank.audit.audit import audit_model

    metrics: dict[str, float | None] = {}
    beside: dict[str, Any] = {}
    for sees in audit.sees:
        [result], about = audit_model(model, sees=sees, people=audit.people)
        metrics |= {f"{sees}:{name}": value for name, value in headline(result).items()}
        for attack, figures in about.get("side_knowledge", {}).items():
            metrics |= {
                f"{sees}:known_{attack}{of}": figures[value]
                for of, value in (("", "inside"), ("_left_out", "outside"), ("_advantage", "advantage"))
            }
        beside |= {
            f"{sees}:attack": result.best["by_auc"],
            f"{sees}:attack_held_back": result.best["by_auc_held_back"],
            f"{sees}:cohort": about["cohort"],
            f"{sees}:people_attacked": about["people_attacked"],
            f"{sees}:seconds": round(about["seconds"]["audit"], 3),
            f"{sees}:marks": marks_of(result),
        }
    return metrics, beside


def headline(result: Findings) -> dict[str, float | None]:
    """The figures by which runs are compared: what was sent, and the best attack beside popularity."""
    popularity, best = result.attacks["popularity"], result.best
    content: dict[str, float | None] = {"disclosed_share": result.disclosed_share}
    for of in ("", "_held_back"):
        content[f"popularity{of}"] = popularity[f"auc{of}"]
        content |= {name: best[name] for name in (f"auc{of}", f"gain{of}", f"gain{of}_low", f"gain{of}_high")}
    return content


def marks_of(result: Findings) -> dict[str, float | None]:
    """All that a line of results keeps of an audit: the shares, and every attack's marks as `attack/mark`."""
    marks: Mapping[str, float | None] = {
        f"{attack}/{mark}": value for attack, all_marks in result.attacks.items() for mark, value in all_marks.items()
    }
    return {"disclosed_share": result.disclosed_share, "base_rate": result.base_rate, **marks}


MOST_UPDATED, MOST_RECOMMENDED = 1_000, 250


def extras(model: Recommender, split: Split, wanted: Collection[str], at: int = 10) -> dict[str, Any]:
    """The wanted extras of a fitted model; those its method cannot have (costs of a centralised one) are left out."""
    unknown = set(wanted) - EXTRAS
    if unknown:
        raise SettingError(f"There is no extra {sorted(unknown)[0]!r}; there are {', '.join(sorted(EXTRAS))}.")
    result: dict[str, Any] = {}
    for name, ability in (("communication", "paper_costs"), ("complexity", "complexity")):
        if name in wanted and hasattr(model, ability):
            result |= getattr(model, ability)()
    if "item_updates" in wanted and hasattr(model, "item_updates"):
        result["item_updates"] = largest_shares(model.item_updates(), MOST_UPDATED)
    if "popularity" in wanted:
        result |= popularity(model, split, at)
    return result


def popularity(model: Recommender, split: Split, at: int) -> dict[str, list[float]]:
    """How recommendations and feedback spread over items, the most frequent first."""
    users = np.arange(model.training.n_users, dtype=np.int32)
    items = model.recommend_numbers(users, at).items
    counts = count_items(items, model.training.n_items)
    return {
        "recommended": largest_shares(counts, MOST_RECOMMENDED),
        "feedback": largest_shares(split.train.popularity, MOST_RECOMMENDED),
    }


def largest_shares(counts: LongVector, most: int) -> list[float]:
    """The shares of the most frequent ones, the largest first; six digits are enough for a curve."""
    total = max(1, int(counts.sum()))
    return [float(f"{count / total:.6g}") for count in np.sort(counts)[::-1][:most]]


# What one client has sent and received over its lifetime: uploads and megabytes, means over all clients of a run.


_MEGABYTE = 1e6


def communication_of(model: Recommender) -> dict[str, Any] | None:
    """What a run has sent, counted, where the method is a federation that counts it."""
    content: dict[str, Any] | None = model.report.get("communication")
    if content is None and hasattr(model, "communication"):
        content = model.communication()
    return content


def _bytes(sent: dict[str, Any]) -> tuple[float, float]:
    """The bytes that all clients have sent and received."""
    return sent["up"]["bytes"], sent.get("down_changed", sent["down_dense"])["bytes"]


def lifetime(sent: dict[str, Any], clients: int) -> dict[str, float]:
    """Uploads of a client, and the megabytes of its uploads and downloads; rows that changed are all it downloads.

    `lifetime_written_out` has an upload's full matrix in the place of its two factors, as it must travel where only
    sums may be read; methods whose uploads are rows as they are have only the one form.
    """
    up, down = _bytes(sent)
    written_out = sent.get("up_written_out", sent["up"])["bytes"]
    return {
        "lifetime_messages": sent["uploads"] / clients,
        "lifetime_megabytes": (up + down) / clients / _MEGABYTE,
        "lifetime_up": up / clients / _MEGABYTE,
        "lifetime_down": down / clients / _MEGABYTE,
        "lifetime_written_out": (written_out + down) / clients / _MEGABYTE,
    }


# What honest users get from a poisoned federation, as metrics of the run:


def poisoned(split: Split, poison: Sequence[PoisonSettings], seed: int) -> dict[str, float]:
    """Play the federation honest, and attacked by each share of malicious clients."""
    from federank.audit.audit import play, usual_defences
    from federank.audit.poisoning import make_world

    attacks = [replace(settings, seed=seed) for settings in poison]
    bounds = usual_defences(attacks[0].method)
    calm = make_world(split, attacks[0], malicious_users=False)
    metrics = {
        "precision@10": play(calm, attacks[0], None).precision,
        "precision_defended": play(calm, attacks[0], bounds).precision,
    }
    for settings in attacks:
        world, percent = make_world(split, settings), f"{100 * settings.share:g}"
        for name, result in (("_undefended", play(world, settings, None)), ("", play(world, settings, bounds))):
            metrics[f"exposure{name}_{percent}"] = result.exposure
            metrics[f"precision{name}_{percent}"] = result.precision
            metrics[f"rank{name}_{percent}"] = result.median_rank
    return metrics


_PACKAGES = ("federank", "numpy", "numba", "scipy", "polars")


@cache
def _versions() -> dict[str, str]:
    """What runs are carried out with. To find a package's version takes a while, and it stays while a process runs."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


class Finished(NamedTuple):
    """A run that is done or has failed."""

    run: Run
    record: RunRecord
    users: bytes | None
    """Each user's values, as the content of a Parquet file; of test runs only."""


def execute(run: Run) -> Finished:
    """Train and judge; whatever goes wrong becomes a failed run that says why."""
    begin, computing = time.perf_counter(), time.process_time()
    try:
        result, users = _executed(run)
    except FedeRankError as reason:
        return failed(run, str(reason))
    except MemoryError:
        return failed(run, "The run needs more memory than there is.", transient=True)
    except Exception as reason:  # a mistake of ours must not end the other runs
        return failed(run, f"Something unexpected went wrong: {type(reason).__name__}: {reason}", transient=True)
    record = replace(
        _record(run),
        **result,
        seconds=round(time.perf_counter() - begin, 3),
        cpu_seconds=round(time.process_time() - computing, 3),
        memory_mb=_peak_memory(),
    )
    return Finished(run, record, users)


def failed(run: Run, reason: str, *, transient: bool = False) -> Finished:
    """A run that came to nothing; a transient failure is tried again when the study is next started."""
    return Finished(run, replace(_record(run), status="failed", reason=reason, transient=transient), None)


def _executed(run: Run) -> tuple[dict[str, Any], bytes | None]:
    if source_of(run.data).fingerprint != run.fingerprint:
        raise DataError(f"{run.data.name} has changed since the study was started; start it again.")
    split = part_of(run.data, run.fold, run.part)
    model: Any = recommender_class(run.method)(**run.all_settings())
    if getattr(model.settings, "leak", False):
        model.with_held_out(split.test)
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
    if run.poison:
        return {"metrics": poisoned(split, run.poison, run.seed), "epoch": None}, None
    curve: list[Point] = []
    traced = OF_RATINGS if isinstance(model, PredictsRatings) else (f"precision@{run.at[-1]}",)

    def trace(epoch: int) -> None:
        curve.append(Point(epoch, {metric: judged(model, split, metric) for metric in traced}))

    watched = run.curve and epochs_setting(run.method) is not None
    model.fit(split.train, training_options=TrainingOptions(after_epoch=trace if watched else None))
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
        result = evaluate(model, split, at=run.at, metrics=ranking, over=run.over)
        metrics |= result.means | group_means(result.by_group) | _training_part(split, result)
        content = io.BytesIO()
        result.per_user.write_parquet(content)
        users = content.getvalue()
    extra = extras(model, split, run.extras, run.at[-1])
    if run.audit is not None:
        audit_metrics, beside = audited(model, run.audit)
        metrics, extra = metrics | audit_metrics, extra | beside
    sent = communication_of(model) if run.counts_traffic or not model.replays_communication else None
    metrics |= _figure_of_noise(model) | (lifetime(sent, model.training.n_users) if sent else {})
    about = {
        "metrics": {
            name: value if value is not None and math.isfinite(value) else None for name, value in metrics.items()
        },
        "epoch": run.epochs if run.epoch is None else run.epoch,
        "curve": curve,
        "bytes": Traffic(*map(int, _bytes(sent))) if sent else None,
        "extra": extra,
    }
    return about, users


def _training_part(split: Split, result: Evaluation) -> dict[str, float]:
    """What the papers' Table 1 has of a training part: its sizes and, by category, its bias B_T."""
    train = split.train
    sizes: dict[str, float] = {
        "training_users": int(np.count_nonzero(train.profiles.sizes)),
        "training_items": int(np.count_nonzero(train.popularity)),
        "training_interactions": len(train),
    }
    if result.bias is None:
        return sizes
    all_users = result.bias.filter((pl.col("group") == ALL_USERS) & (pl.col("at") == result.at[0]))
    biases = zip(all_users["category"], all_users["bias_train"], strict=True)
    return sizes | {f"bias_train/{category}": value for category, value in biases if value is not None}


def _figure_of_noise(model: Recommender) -> dict[str, float]:
    """What the accountant says of a run with noise: of the user with the most rounds, if there is a figure."""
    epsilon = model.report.get("privacy", {}).get("epsilon")
    if "adjacency" in model.report:  # noise of two servers (methods/frugal/private.py)
        epsilon = model.report["epsilon"]
    return {} if epsilon is None else {"noise_epsilon": epsilon}


def _peak_memory() -> float:
    """The most memory that this process has had, in MB; a worker's earlier runs count too."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def _record(run: Run) -> RunRecord:
    """What a line has of any run."""
    return RunRecord(
        **{part.name: getattr(run, part.name) for part in fields(Planned)},
        data=run.data.name,
        model=run.method,
        versions=dict(_versions()),
        data_fingerprint=run.fingerprint,
    )
