"""A model card: what a kept model is, as a page of Markdown for anyone who gets it.

What it has learnt from, with which settings, how it was trained, how good it is on the test part it was kept with, and
what left the clients. All of it comes from the model's folder; nothing is claimed that is not in there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from federank.data.splits import Split
from federank.errors import ModelError
from federank.evaluation.evaluate import RATING, evaluate
from federank.methods.model_folder import load_model, load_split, read_description
from federank.methods.predicting import PredictsRatings
from federank.methods.recommender import Recommender
from federank.methods.registry import help_of

_SHOWN = ("precision", "recall", "ndcg", "item_coverage", "gini_diversity")


def model_card(folder: str | Path, *, at: int = 10) -> str:
    """The card of the model in a folder, as Markdown."""
    folder = Path(folder)
    model, about = load_model(folder), read_description(folder)
    try:
        split = load_split(folder)
    except ModelError:
        split = None
    parts = [
        f"# {model.name} on {_plain(model.training.name)}",
        help_of(model.name),
        "## Data",
        _table(_data(model, about, split)),
        "## Settings",
        _settings(model),
        "## Training",
        _table(_training(model, about)),
        "## How good it is",
        *_metrics(model, split, at),
        "## What left the clients",
        *_privacy(model, folder),
    ]
    return "\n\n".join(parts) + "\n"


def _data(model: Recommender, about: dict[str, Any], split: Split | None) -> list[tuple[str, str]]:
    data = model.training
    rows = [
        ("Learnt from", f"{len(data):,} interactions of {data.n_users:,} users with {data.n_items:,} items"),
        ("Fingerprint", str(about["data"].get("fingerprint", "unknown"))),
    ]
    if data.repeats_left_out:
        rows.append(("Rows left out as repeats", f"{data.repeats_left_out:,}"))
    rows.append(("Split", _plain(split.how) if split is not None else "none was kept with the model"))
    return rows


def _settings(model: Recommender) -> str:
    chosen = [(field.name, getattr(model.settings, field.name), field.default) for field in fields(model.settings_type)]
    rows = [(name, f"**{value}** (usually {usual})" if value != usual else f"{value}") for name, value, usual in chosen]
    return _table(rows) if rows else "There is nothing to choose."


def _training(model: Recommender, about: dict[str, Any]) -> list[tuple[str, str]]:
    report = model.report
    rows = [("Seconds", f"{report['seconds']:.1f}")] if "seconds" in report else []
    rows += [("Rounds", f"{report['rounds']:,}")] if "rounds" in report else []
    if "early_stopping" in report:
        stop = report["early_stopping"]
        rows.append(("Stopped early", f"after {stop['epoch']}, by {stop['metric']} on validation"))
    if "search" in report:
        rows.append(("Searched", f"{report['search']['models']} models, by {report['search']['metric']} on validation"))
    versions = about.get("versions", {})
    return [*rows, ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown")]


def _metrics(model: Recommender, split: Split | None, at: int) -> Iterable[str]:
    if split is None:
        return ["Nothing was held out with the model, so nothing is known of it here."]
    n = min(at, model.training.n_items)
    wanted = [*_SHOWN, *(RATING if isinstance(model, PredictsRatings) and split.test.ratings is not None else ())]
    result = evaluate(model, split, at=n, metrics=wanted)
    rows = [(name, f"{value:,}" if isinstance(value, int) else f"{value:.5f}") for name, value in result.means.items()]
    return [_table(rows), *result.notes]


def _privacy(model: Recommender, folder: Path) -> Iterable[str]:
    communication = getattr(model, "communication", None)
    sent = model.report.get("communication") or (communication() if communication is not None else None)
    if not sent:
        yield "The model was trained on all interactions in one place; its recommendations may disclose some of them."
        return
    users = max(model.training.n_users, 1)
    down = sent.get("down_changed", sent["down_dense"])
    yield (
        f"{sent['uploads']:,} uploads, {sent['up']['bytes'] / users / 1e6:,.3f} MB up and "
        f"{down['bytes'] / users / 1e6:,.3f} MB down per user. `devices.safetensors` and `training/` in its "
        "folder belong to the clients; hand on `model.safetensors` alone."
    )
    noise = model.report.get("privacy")
    if noise and noise.get("epsilon") is not None:
        yield f"Differential privacy: epsilon {noise['epsilon']:.3g} at delta {noise['delta']:g}."
    yield f"What an honest-but-curious server learns from these uploads is measured by `federank audit {folder}`."


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {_plain(value)} |" for name, value in rows)])


def _plain(text: str) -> str:
    """A text without power over a table."""
    return " ".join(text.split()).replace("|", "\\|")
