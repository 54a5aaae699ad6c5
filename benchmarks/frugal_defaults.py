"""How near Frugal's defaults come to tuned settings: on the data sets at hand, and on cities not looked at before.

For each data set the settings that `federank train frugal --search` tunes (factors, shrinkage, activity, popularity)
are tuned on the validation part. Then the defaults and the tuned settings learn from the whole training part, and the
test part judges both (P@10, means of three seeds): their ratio is told, and 0.97 or more is within 3 %. The ten cities
differ in shape, and were drawn after the defaults had been fixed.

    python benchmarks/frugal_defaults.py [--data city,ml-100k] [--cities 10] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import federank as fr

DATA = ("city", "ml-100k", "ml-1m", "foursquare-italy", "amazon-digital-music")
CITIES = (
    *((300, 800, 15_000), (500, 4_000, 40_000), (800, 400, 40_000), (1_500, 1_500, 60_000), (2_000, 6_000, 90_000)),
    *((2_500, 700, 120_000), (3_000, 2_000, 100_000), (4_000, 10_000, 160_000), (1_000, 8_000, 60_000)),
    (5_000, 1_200, 200_000),
)
"""People, places and check-ins."""
FIRST_SEED = 801
SEEDS = (1, 2, 3)


def worlds(names: list[str], cities: int) -> Iterator[tuple[str, fr.Interactions]]:
    """The data sets by name, then the cities."""
    for name in names:
        yield name, fr.load(name)
    for number, (people, places, checkins) in enumerate(CITIES[:cities]):
        yield f"city {number + 1}", fr.city(people, places, checkins, seed=FIRST_SEED + number)


def measure(data: fr.Interactions) -> dict[str, Any]:
    """What the defaults and what tuned settings reach on the test part."""
    kept = data.keep_users(min_interactions=20)
    split = fr.split_temporal(kept, test=0.2)
    tuning = fr.split_temporal(kept, test=0.2, validation=0.2)
    found = fr.search(fr.Frugal, tuning, strategy="coordinate", metric="precision@10", **fr.Frugal.searched)
    usual, tuned = precision(split, {}), precision(split, found.settings)
    return {
        "people": kept.n_users,
        "items": kept.n_items,
        "chosen": found.settings,
        "defaults": usual,
        "tuned": tuned,
        "ratio": usual / tuned,
    }


def precision(split: fr.Split, settings: dict[str, Any]) -> float:
    """P@10 on the test part, the mean of the seeds."""
    models = (fr.Frugal(**settings, seed=seed).fit(split.train) for seed in SEEDS)
    judged = [fr.evaluate(model, split, metrics=["precision"]).means["precision@10"] for model in models]
    return float(sum(judged) / len(judged))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default=",".join(DATA), help="names, with commas between them; none: only cities")
    options.add_argument("--cities", type=int, default=len(CITIES))
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    found = {}
    for name, data in worlds([name for name in chosen.data.split(",") if name], chosen.cities):
        found[name] = one = measure(data)
        if not chosen.json:
            print(
                f"{name:22} {one['people']:6,} x {one['items']:6,}   defaults {one['defaults']:.4f}   tuned "
                f"{one['tuned']:.4f}   {one['ratio']:.3f}   {one['chosen']}",
                flush=True,
            )
    if chosen.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
