"""A results folder made by hand: two data sets, a baseline and a method swept over pi, with known values.

Lines are made as JSON has them, so that what reads them is tested too.
"""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from federank.studies.results import Results, read_record

PEOPLE = 40
VALUES = {"Popular": 0.10, "FPL at 0": 0.05, "FPL at 0.5": 0.20, "FPL at 1": 0.15}
"""The precision of each row with seed 1; seed 2 has 0.02 more."""

WISHES = """
title = "A study of two cities"

[[table]]
title = "Table 2"
metrics = ["precision@10", "recall@10", "item_coverage@10"]
against = "Popular"

[[figure]]
kind = "f1-against-pi"

[[paper]]
data = "north"
group = "Popular"
source = "their Table 2"
metrics = { "precision@10" = 0.11, "item_coverage@10" = 50 }

[[paper]]
data = "north"
group = "FPL"
settings = { pi = 0.5 }
source = "their Table 2"
metrics = { "precision@10" = 0.15 }

[[note]]
data = "north"
group = "Popular"
metric = "item_coverage"
text = "Their city has fewer places."
shown_by = { test = "tests/test_it.py::test_this" }
"""


def line(group: str, data: str = "north", seed: int = 1, pi: float | None = None, **changes: Any) -> dict[str, Any]:
    """A finished test run."""
    value = VALUES[group if pi is None else f"{group} at {pi:g}"] + 0.02 * (seed - 1)
    settings = {} if pi is None else {"pi": pi, "learning_rate": 0.05 if pi else 0.5}
    metrics = {
        "precision@10": value,
        "recall@10": value / 2,
        "item_coverage@10": 1000 * value,
        "bias_disparity@10/Food": value - 0.1,
        "bias_disparity@10/Travel & Transport": 0.1 - value,
    }
    return {
        "id": hashlib.sha256(repr((group, data, seed, pi)).encode()).hexdigest()[:16],
        "group": group,
        "data": data,
        "model": "popular" if pi is None else "fpl",
        "settings": settings,
        "swept": {} if pi is None else {"pi": pi},
        "seed": seed,
        "task": "test",
        "epoch": 3,
        "epochs": 5,
        "at": [10],
        "metrics": metrics,
        "curve": [{"epoch": epoch, "precision@10": value * epoch / 3} for epoch in (1, 2, 3)],
        "chosen_on": "validation",
        "chosen": {},
        "seconds": 1.5,
        "memory_mb": 100.0,
        "bytes": None if pi is None else {"up": 2_000_000, "down": 30_000_000},
        "versions": {"federank": "0.1.0"},
        "data_fingerprint": f"fingerprint of {data}",
        "status": "done",
        "reason": None,
        "extra": {}
        if pi is None
        else {
            "cce": 1e6 * (1 + pi / 100),
            "item_updates": [0.02 * (1 + pi) / (1 + pi * rank) for rank in range(30)],
            "recommended": [0.1 / (1 + rank) for rank in range(20)],
            "feedback": [0.05 / (1 + rank) for rank in range(20)],
        },
    } | changes


def all_lines() -> list[dict[str, Any]]:
    """Every run of the study."""
    return [
        line(group, data, seed, pi)
        for data in ("north", "south")
        for group, values in (("Popular", (None,)), ("FPL", (0.0, 0.5, 1.0)))
        for pi in values
        for seed in (1, 2)
    ]


def people(run: dict[str, Any]) -> bytes:
    """Each person's values: the run's mean, some people a little above it and some below, not the same in each run."""
    mean = run["metrics"]["precision@10"]
    values = mean + np.random.default_rng(round(1000 * mean)).normal(0, 0.01, PEOPLE)
    content = io.BytesIO()
    pl.DataFrame({"user": range(PEOPLE), "precision@10": values}).write_parquet(content)
    return content.getvalue()


def results_folder(folder: Path, specs: str = WISHES, lines: list[dict[str, Any]] | None = None) -> Path:
    """A results folder of these runs, as a study leaves it."""
    results = Results.create(folder)
    results.keep_study(specs)
    for one in all_lines() if lines is None else lines:
        results.append(read_record(one), people(one) if one["status"] == "done" and one["task"] == "test" else None)
    return folder
