"""How long evaluation takes: the best 10 for every user of MovieLens 1M, beside implicit; and the metrics after it.

Both rank the same random factors (F = 20), leave out the same training items, use one thread, and take turns, so
that whatever else the machine does falls on both. implicit's `recommend` has a row of users and the training
matrix; ours is `recommend_numbers`, which evaluation calls. Where MovieLens 1M is not at hand (FEDERANK_DATA), random
data of its size is ranked, and the result says so.

    python benchmarks/evaluation.py [--runs 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

import federank as fr
from datasets import benchmark_data
from federank.data.splits import Split
from federank.methods.recommender import Arrays, Recommender
from starting import measure_starting

FACTORS = 20
N = 10


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """Nothing to choose."""


class RandomFactors(Recommender):
    """Scores from random factors: what a trained model does, without the training."""

    name = "random-factors"
    settings_type = NoSettings

    def _learn(self, train: fr.Interactions, _: fr.TrainingOptions) -> None:
        rng = np.random.default_rng(1)
        self.users = rng.standard_normal((train.n_users, FACTORS)).astype(np.float32)
        self.items = rng.standard_normal((train.n_items, FACTORS)).astype(np.float32)

    def _score_users(self, users: Any) -> Any:
        return self.users[users] @ self.items.T

    def _shared_arrays(self) -> Arrays:
        return {}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        raise NotImplementedError


def the_split() -> Split:
    """MovieLens 1M as the papers split it, or a synthetic city of its shape."""
    return fr.split_temporal(benchmark_data().keep_users(min_interactions=20))


def interleaved(contestants: dict[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """Seconds of each, in turns, after one turn that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(runs + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def measure(runs: int) -> dict[str, Any]:
    """Rank with both, judge with ours, and tell the times."""
    split = the_split()
    model = RandomFactors().fit(split.train)
    theirs = AlternatingLeastSquares(factors=FACTORS, num_threads=1)
    theirs.user_factors, theirs.item_factors = model.users, model.items
    everyone = np.arange(len(model.user_ids), dtype=np.int32)
    matrix = csr_matrix(model.training.matrix())

    def ours() -> Any:
        return model.recommend_numbers(everyone, N)

    def implicit() -> Any:
        return theirs.recommend(everyone, matrix, N=N, filter_already_liked_items=True)

    lists = ours()
    seconds = interleaved(
        {"implicit": implicit, "federank": ours, "evaluate": lambda: fr.evaluate(model, split, at=N)}, runs
    )
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    # All that an evaluation does beside the ranking: the checks, the metrics, the table of users.
    middle["metrics"] = middle["evaluate"] - middle["federank"]
    return {
        "data": split.train.name,
        "users": len(everyone),
        "items": len(model.item_ids),
        "factors": FACTORS,
        "n": N,
        "threads": 1,
        "runs": runs,
        "median_seconds": middle,
        "best_seconds": {name: min(times) for name, times in seconds.items()},
        "implicit_over_federank": middle["implicit"] / middle["federank"],
        "metrics_over_ranking": middle["metrics"] / middle["federank"],
        "same_places": float((implicit()[0] == lists.items).mean()),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
    }


def measure_baselines(runs: int) -> dict[str, Any]:
    """Item-kNN beside implicit's, and a round of FCF beside an iteration of ALS: the same factors, one thread."""
    train = the_split().train
    matrix = csr_matrix(train.compact().matrix())
    iterations = 3
    seconds = interleaved(
        {
            "itemknn": lambda: fr.ItemKNN(k=50).fit(train),
            "implicit_itemknn": lambda: CosineRecommender(K=50, num_threads=1).fit(matrix, show_progress=False),
            "fcf": lambda: fr.FCF(factors=FACTORS, rounds=iterations).fit(train),
            "implicit_als": lambda: AlternatingLeastSquares(factors=FACTORS, iterations=iterations, num_threads=1).fit(
                matrix, show_progress=False
            ),
        },
        runs,
    )
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "itemknn_fit_seconds": middle["itemknn"],
        "implicit_itemknn_fit_seconds": middle["implicit_itemknn"],
        "fcf_round_seconds": middle["fcf"] / iterations,
        "implicit_als_iteration_seconds": middle["implicit_als"] / iterations,
    }


def main() -> None:
    """Print what was measured, as a few lines or as JSON; fail if either guarantee is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with threadpool_limits(1):
        found = measure(asked.runs) | measure_baselines(min(3, asked.runs)) | measure_starting(asked.runs)
    if asked.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['data']}: top {N} for {found['users']:,} users of {found['items']:,} items, one thread")
        for name, seconds in found["median_seconds"].items():
            print(f"  {name:<10}{seconds * 1000:8.1f} ms")
        print(f"  implicit takes {found['implicit_over_federank']:.1f} times as long")
    sys.exit(0 if found["implicit_over_federank"] >= 1 and found["metrics_over_ranking"] < 1 else 1)


if __name__ == "__main__":
    main()
