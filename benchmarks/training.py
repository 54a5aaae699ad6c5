"""How fast training is, beside implicit's BPR, in one interleaved run.

    python benchmarks/training.py [--json] [--large] [--repeats 5]

Every contender gets one thread and the same training data: MovieLens 1M's newest 20 % per user held out where the
data are at hand (FEDERANK_DATA), else a synthetic city of the same shape. Compilation and preparation are outside the
clock. Contenders take turns, so that a busy machine slows all of them; ratios are taken turn by turn, and their
median is reported. `--large` adds the city with a million people, in a process of its own so that its peak memory is
its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import federank as fr
from datasets import benchmark_data
from federank.data.interactions import Interactions
from federank.methods.fpl.settings import PRESETS, FPLSettings, recipe_for
from federank.methods.fpl.simulation import Federation, play_compiled

FACTORS = 20
LARGE = {"people": 1_000_000, "places": 100_000, "checkins": 50_000_000}


def training_part() -> tuple[str, Interactions]:
    data = benchmark_data()
    return data.name, fr.split_temporal(data.keep_users(min_interactions=20)).train.compact()


def established(data: Interactions, preset: str) -> Federation:
    settings = FPLSettings(factors=FACTORS, **PRESETS[preset])
    recipe = recipe_for(settings, data.profiles.sizes, data.n_items, np.ones(data.n_users))
    return Federation.established(settings, recipe, data.profiles, data.n_items)


def triples_per_second(federation: Federation, triples: int, threads: int = 1) -> float:
    recipe = federation.recipe
    per_round = recipe.clients_per_round * int(recipe.triples[0])
    rounds = max(1, triples // per_round)
    begin = time.perf_counter()
    play_compiled(federation, rounds, threads)
    return rounds * per_round / (time.perf_counter() - begin)


def implicit_triples_per_second(data: Interactions) -> float:
    from implicit.bpr import BayesianPersonalizedRanking
    from scipy.sparse import csr_matrix

    model = BayesianPersonalizedRanking(
        factors=FACTORS, learning_rate=0.05, iterations=2, num_threads=1, verify_negative_samples=True, random_state=1
    )
    matrix = csr_matrix(data.matrix())
    begin = time.perf_counter()
    model.fit(matrix, show_progress=False)
    return 2 * len(data) / (time.perf_counter() - begin)


def measure(repeats: int) -> dict[str, object]:
    name, data = training_part()
    begin = time.perf_counter()
    runs = {preset: established(data, preset) for preset in PRESETS}
    for federation in runs.values():
        play_compiled(federation, 0, threads=2)
        play_compiled(federation, 1, threads=1)
    prepared = time.perf_counter() - begin
    implicit_triples_per_second(data)
    turns = [
        {
            "implicit": implicit_triples_per_second(data),
            "sfpl": triples_per_second(runs["sfpl"], 4_000_000),
            "sfpl+": triples_per_second(runs["sfpl+"], 4_000_000),
            "pfpl, 1 thread": triples_per_second(runs["pfpl"], 4_000_000),
            "pfpl, 2 threads": triples_per_second(runs["pfpl"], 4_000_000, threads=2),
            "pfpl+, 1 thread": triples_per_second(runs["pfpl+"], 8_000_000),
            "pfpl+, 2 threads": triples_per_second(runs["pfpl+"], 8_000_000, threads=2),
        }
        for _ in range(repeats)
    ]

    def ratio(above: str, below: str) -> float:
        return round(statistics.median(turn[above] / turn[below] for turn in turns), 2)

    return {
        "data": name,
        "seconds_to_prepare": round(prepared, 1),
        "million_triples_per_second": {
            who: round(statistics.median(turn[who] for turn in turns) / 1e6, 2) for who in turns[0]
        },
        "sfpl_vs_implicit": ratio("sfpl", "implicit"),
        "sfpl_plus_vs_implicit": ratio("sfpl+", "implicit"),
        "pfpl_threads_2_vs_1": ratio("pfpl, 2 threads", "pfpl, 1 thread"),
        "pfpl_plus_threads_2_vs_1": ratio("pfpl+, 2 threads", "pfpl+, 1 thread"),
    }


def measure_large() -> dict[str, object]:
    """A million people: one epoch of sFPL, one round of pFPL, and what all of it took at its peak."""
    data = fr.city(**LARGE)
    sfpl, pfpl = established(data, "sfpl"), established(data, "pfpl")
    for federation in (sfpl, pfpl):
        play_compiled(federation, 0)
    speed = triples_per_second(sfpl, len(data))
    begin = time.perf_counter()
    play_compiled(pfpl, 1)
    return {
        "million_users_sfpl_million_triples_per_second": round(speed / 1e6, 2),
        "million_users_pfpl_round_seconds": round(time.perf_counter() - begin, 2),
        "million_users_peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--large", action="store_true", help="also the city with a million people")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only-large", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only_large:
        print(json.dumps(measure_large()))
        return
    found = measure(asked.repeats)
    if asked.large:
        apart = subprocess.run(
            [sys.executable, __file__, "--only-large"], check=True, capture_output=True, text=True
        ).stdout
        found |= json.loads(apart)
        speeds = found["million_triples_per_second"]
        assert isinstance(speeds, dict)
        large = float(str(found["million_users_sfpl_million_triples_per_second"]))
        found["million_users_slower_by"] = round(speeds["sfpl"] / large, 2)
    print(json.dumps(found) if asked.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
