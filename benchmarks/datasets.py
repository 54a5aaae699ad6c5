"""The data that benchmarks measure on: MovieLens 1M where it is at hand, else a synthetic city of the same shape."""

from __future__ import annotations

import os
from pathlib import Path

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import DataError


def benchmark_data() -> Interactions:
    """MovieLens 1M from FEDERANK_DATA, or from a folder of data beside the repository."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    if "FEDERANK_DATA" not in os.environ and beside.is_dir():
        os.environ["FEDERANK_DATA"] = str(beside)
    try:
        return fr.load("ml-1m")
    except DataError:
        return fr.city(people=6_040, places=3_706, checkins=1_000_209)
