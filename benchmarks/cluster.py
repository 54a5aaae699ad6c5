"""What a cluster costs: the cluster engine with two shards here, beside the compiled engine with two threads.

    python benchmarks/cluster.py [--json] [--repeats 5]

MovieLens 1M's training part where the data are at hand (FEDERANK_DATA), else a city of the same shape; pFPL+, whose
rounds have the most work, and pFPL, whose rounds have the least. The two engines take turns with the same rounds, and
their factors are compared bit by bit at the end. Starting Ray, its workers and compilation are outside the clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from federank.methods.fpl.simulation import Federation, play_compiled
from federank.simulation.cluster import opened
from training import established, training_part


def seconds(play: Callable[[Federation, int, int], None], federation: Federation, rounds: int) -> float:
    begin = time.perf_counter()
    play(federation, rounds, 2)
    return time.perf_counter() - begin


def measure(preset: str, rounds: int, repeats: int) -> dict[str, object]:
    name, data = training_part()
    alone, spread = established(data, preset), established(data, preset)
    play_compiled(alone, 0, 2)
    begin = time.perf_counter()
    with opened(spread, "local", 2) as engine:
        started = time.perf_counter() - begin
        turns = [(seconds(play_compiled, alone, rounds), seconds(engine.play, spread, rounds)) for _ in range(repeats)]
        begin = time.perf_counter()
        engine.bring_home()
        gathered = time.perf_counter() - begin
    triples = rounds * alone.steps_per_round
    return {
        "data": name,
        "preset": preset,
        "compiled, 2 threads, million triples a second": round(
            triples / statistics.median(one for one, _ in turns) / 1e6, 2
        ),
        "cluster, 2 shards, million triples a second": round(
            triples / statistics.median(other for _, other in turns) / 1e6, 2
        ),
        "cluster_slower_by": round(statistics.median(other / one for one, other in turns), 2),
        "milliseconds_a_round_on_the_cluster": round(1e3 * statistics.median(other for _, other in turns) / rounds, 1),
        "seconds_to_start": round(started, 1),
        "seconds_to_bring_home": round(gathered, 3),
        "same_bits": all(
            np.array_equal(getattr(alone, table), getattr(spread, table))
            for table in ("item_vectors", "item_biases", "user_vectors")
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    found = [measure("pfpl+", 20, asked.repeats), measure("pfpl", 40, asked.repeats)]
    print(json.dumps(found) if asked.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
