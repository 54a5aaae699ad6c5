"""How long few messages take: a round of everyone and a whole fit, beside implicit's alternating least squares.

Both learn from the training part of MovieLens 1M with 64 factors and the same number of threads, and take turns, so
that whatever else the machine does falls on both. A round of Frugal is compared with one iteration of implicit's ALS; a
fit with 5 messages (everyone's own vector at the end included) with 15 iterations, its default. Where MovieLens 1M is
not at hand (FEDERANK_DATA), a city of its shape is used. `--large` measures something else, in a process of its own: a
fit of a city with a million people and 100,000 places, with its time and the most memory that it took. `--weights` does
the same for the item-item weights of 100,000 items, from random sums (OPENBLAS_NUM_THREADS sets its threads).

    python benchmarks/frugal.py [--runs 5] [--json]
    python benchmarks/frugal.py --large [--threads 2] [--json]
    python benchmarks/frugal.py --weights
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.sparse import csr_matrix

import federank as fr
from datasets import benchmark_data
from federank._numerics.topn import top_n
from federank.federation.wire import size
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.ridge import MOST_RANK, from_sums
from federank.methods.recommendations import Recommendations
from federank.methods.sharing import choices_for

if TYPE_CHECKING:
    from implicit.cpu.als import AlternatingLeastSquares

FACTORS, MESSAGES, ITERATIONS, N = 64, 5, 15, 10
LARGE = {"people": 1_000_000, "places": 100_000, "checkins": 50_000_000}
LARGE_FACTORS = 20
WEIGHTED_ITEMS, WEIGHTED_FACTORS = 100_000, 96


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def als(iterations: int) -> AlternatingLeastSquares:
    from implicit.cpu.als import AlternatingLeastSquares  # not needed for --large

    return AlternatingLeastSquares(factors=FACTORS, iterations=iterations, num_threads=1, random_state=1)


def fit_als(matrix: csr_matrix, iterations: int) -> AlternatingLeastSquares:
    model = als(iterations)
    model.fit(matrix, show_progress=False)
    return model


def one_round(train: fr.Interactions, threads: int) -> Callable[[], None]:
    model = fr.Frugal(factors=FACTORS, messages=10_000)
    model.choices = choices_for(model.implicit_settings(), train, None)
    federation = model.federation(train)
    compiled.play(federation, 2, threads)
    return lambda: compiled.play(federation, 1, threads)


def precision_of_als(model: AlternatingLeastSquares, split: Any) -> float:
    train = split.train.compact()
    scores = model.user_factors @ model.item_factors.T
    users = np.arange(train.n_users, dtype=np.int32)
    items, best = top_n(scores, users, train.profiles, N)
    lists = Recommendations(train.user_ids, items.astype(np.int32), best, train.item_ids, train.titles)
    return float(fr.evaluate(lists, split, at=N).means[f"precision@{N}"])


def measure(runs: int) -> dict[str, Any]:
    data = benchmark_data()
    split = fr.split_temporal(data.keep_users(min_interactions=20), test=0.2)
    train = split.train.compact()
    matrix = csr_matrix(train.matrix().astype(np.float32))
    rounds = {threads: one_round(train, threads) for threads in (1, 2)}
    fit_als(matrix, 1)
    found: dict[str, list[float]] = {"round_1": [], "round_2": [], "iteration": [], "fit": [], "als": []}
    for _ in range(runs):
        found["round_1"].append(seconds(rounds[1]))
        found["round_2"].append(seconds(rounds[2]))
        longer, shorter = seconds(lambda: fit_als(matrix, 6)), seconds(lambda: fit_als(matrix, 1))
        found["iteration"].append((longer - shorter) / 5)
        found["fit"].append(seconds(lambda: fr.Frugal(factors=FACTORS, messages=MESSAGES).fit(split.train)))
        found["als"].append(seconds(lambda: fit_als(matrix, ITERATIONS)))
    middle = {what: statistics.median(times) for what, times in found.items()}
    frugal = fr.Frugal(factors=FACTORS, messages=MESSAGES).fit(split.train)
    return {
        "data": f"{data.n_users:,} people, {data.n_items:,} items, {len(data):,} interactions",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "runs": runs,
        "seconds": middle,
        "round_vs_implicit_als": middle["round_1"] / middle["iteration"],
        "fit_vs_implicit_als": middle["fit"] / middle["als"],
        "threads_2_vs_1": middle["round_1"] / middle["round_2"],
        "precision@10": fr.evaluate(frugal, split, at=N).means[f"precision@{N}"],
        "precision@10_implicit_als": precision_of_als(fit_als(matrix, ITERATIONS), split),
    }


def measure_large(threads: int) -> dict[str, Any]:
    """A million people: 5 messages of everyone, then everyone's own vector; memory with the making of the city."""
    begin = time.perf_counter()
    data = fr.city(**LARGE, seed=1)
    made = time.perf_counter() - begin
    model = fr.Frugal(factors=LARGE_FACTORS, messages=MESSAGES)
    whole = seconds(lambda: model.fit(data, training_options=fr.TrainingOptions(threads=threads)))
    return {
        "data": f"{data.n_users:,} people, {data.n_items:,} items, {len(data):,} interactions",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "threads": threads,
        "seconds": {"city": made, "rounds": model.report["seconds"], "fit": whole},
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def measure_weights() -> dict[str, Any]:
    """Item-item weights of many items: the time and the most memory of the server's step, from stored sums."""
    rng = np.random.default_rng(1)
    counts = np.sort(rng.pareto(1.0, WEIGHTED_ITEMS) * 5 + 5)[::-1].astype(np.float32)
    spectrum = np.arange(1, MOST_RANK + 1, dtype=np.float32) ** -0.5
    tastes = rng.standard_normal((WEIGHTED_ITEMS, MOST_RANK), dtype=np.float32) * spectrum
    tastes *= np.sqrt(counts / np.einsum("ij,ij->i", tastes, tastes))[:, None]
    columns = WEIGHTED_FACTORS + 1
    seen = np.zeros((WEIGHTED_ITEMS, MESSAGES * columns), dtype=np.float32)
    through = np.zeros_like(seen)
    for number in range(1, MESSAGES):  # the first message carries counts
        first, last = number * columns, (number + 1) * columns - 1
        asked = rng.standard_normal((WEIGHTED_ITEMS, WEIGHTED_FACTORS), dtype=np.float32)
        seen[:, first:last], through[:, first:last] = tastes @ (tastes.T @ asked), asked
        seen[:, last] = counts
    del tastes, asked
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    weights = from_sums(seen, through, WEIGHTED_FACTORS, float(counts.sum()), float(counts.sum()) / 20, 1.0)
    elapsed, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "data": f"{WEIGHTED_ITEMS:,} items, sums of {MESSAGES - 1} uploads with {WEIGHTED_FACTORS} factors",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": elapsed,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_gb": after.ru_maxrss / 2**20,
        "peak_gb_before": before.ru_maxrss / 2**20,
        "published_mb": size(weights) / 1e6,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--json", action="store_true")
    options.add_argument("--large", action="store_true", help="a million people, in the place of all else")
    options.add_argument("--weights", action="store_true", help="item-item weights, in the place of all else")
    options.add_argument("--threads", type=int, default=1, help="of --large")
    chosen = options.parse_args()
    if chosen.weights:
        print(json.dumps(measure_weights(), indent=1))
        return
    if chosen.large:
        print(json.dumps(measure_large(chosen.threads), indent=1))
        return
    found = measure(chosen.runs)
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{found['data']}, {FACTORS} factors, medians of {found['runs']} turns on {found['machine']}:")
    for name in ("round_vs_implicit_als", "fit_vs_implicit_als", "threads_2_vs_1"):
        print(f"  {name:24} {found[name]:.3f}")
    print(f"  precision@10             {found['precision@10']:.4f} (implicit {found['precision@10_implicit_als']:.4f})")


if __name__ == "__main__":
    main()
