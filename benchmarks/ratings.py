"""How fast ratings are learnt: beside sFPL's triples, SVD++ beside PMF, and from 100 thousand to 10 million ratings.

    python benchmarks/ratings.py [--json] [--repeats 5] [--no-city]

One thread. Contenders take turns within one run, so that a busy machine slows all of them; ratios are taken turn by
turn, and their median is reported. Compilation and preparation are outside the clock. MovieLens is used where it is
at hand (FEDERANK_DATA), else a synthetic city of the same size; ratings of a city are drawn by a seeded rule.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import DataError
from federank.methods.fedrec.simulation import PMFSettings, RatingFederation, RatingSettings, SVDPlusPlusSettings
from federank.methods.fedrec.simulation import play_compiled as play_ratings
from federank.methods.fpl.settings import PRESETS, FPLSettings, recipe_for
from federank.methods.fpl.simulation import Federation
from federank.methods.fpl.simulation import play_compiled as play_pairs

FACTORS = 20
CITY = {"people": 100_000, "places": 20_000, "checkins": 10_000_000}
LIKE_MOVIELENS = {
    "ml-100k": {"people": 943, "places": 1_682, "checkins": 100_000},
    "ml-1m": {"people": 6_040, "places": 3_706, "checkins": 1_000_209},
}


def rated_city(**size: int) -> Interactions:
    """A city whose people rate what they visit: by their own mood, the place's quality, and chance."""
    data = fr.city(**size)
    rng = np.random.default_rng(1)
    mood, quality = rng.normal(0, 0.5, data.n_users), rng.normal(0, 0.7, data.n_items)
    values = 3.5 + mood[data.users] + quality[data.items] + rng.normal(0, 0.8, len(data))
    return replace(data, ratings=np.clip(np.rint(values), 1, 5).astype(np.float32))


def ratings_of(name: str) -> Interactions:
    """The training part of a random fold of MovieLens, or a city of its size."""
    shared = Path(__file__).parents[2] / "shared" / "data"
    if "FEDERANK_DATA" not in os.environ and shared.is_dir():
        os.environ["FEDERANK_DATA"] = str(shared)
    try:
        data = fr.load(name)
    except DataError:
        data = rated_city(**LIKE_MOVIELENS[name])
    return fr.split_folds(data, folds=5, seed=1)[0].train.compact()


def heaviest(data: Interactions) -> Interactions:
    """Only the hundredth of the users who have rated most: what a cost that grows with |I_u| would show in."""
    sizes = data.profiles.sizes
    return data.take(np.isin(data.users, np.argsort(sizes)[-max(1, len(sizes) // 100) :])).compact()


def ratings_per_second(settings: RatingSettings, data: Interactions, iterations: int) -> float:
    federation = RatingFederation.established(settings, data)
    play_ratings(federation, 1)
    rounds = iterations * federation.rounds_per_epoch
    # Clients are drawn, so what is counted is what they hold, not what they hold on average.
    before = federation.participations.copy()
    begin = time.perf_counter()
    play_ratings(federation, rounds)
    seconds = time.perf_counter() - begin
    learnt = (federation.participations - before) @ (data.profiles.sizes + federation.recipe.virtual)
    return float(learnt) / seconds


def triples_per_second(data: Interactions, triples: int) -> float:
    settings = FPLSettings(factors=FACTORS, **PRESETS["sfpl"])
    recipe = recipe_for(settings, data.profiles.sizes, data.n_items, np.ones(data.n_users))
    federation = Federation.established(settings, recipe, data.profiles, data.n_items)
    play_pairs(federation, 1)
    begin = time.perf_counter()
    play_pairs(federation, triples)
    return triples / (time.perf_counter() - begin)


def measure(repeats: int, *, with_city: bool) -> dict[str, object]:
    small, large = ratings_of("ml-100k"), ratings_of("ml-1m")
    pmf, svdpp = PMFSettings(factors=FACTORS), SVDPlusPlusSettings(factors=FACTORS)
    batch, hidden = PMFSettings(factors=FACTORS, style="batch"), PMFSettings(factors=FACTORS, filling="average", rho=1)
    heavy = heaviest(large)
    sets = {"100K": (small, 20), "1M": (large, 3)}
    if with_city:
        sets["city of 10M"] = (rated_city(**CITY), 1)
    contenders = {
        "sFPL triples": lambda: triples_per_second(large, 4_000_000),
        "PMF(B)": lambda: ratings_per_second(batch, large, 3),
        "PMF(S), rho 1": lambda: ratings_per_second(hidden, large, 2),
        "PMF(S), heaviest 1 %": lambda: ratings_per_second(pmf, heavy, 30),
        "SVD++(S), heaviest 1 %": lambda: ratings_per_second(svdpp, heavy, 30),
    }
    for size, (data, iterations) in sets.items():
        for name, settings in (("PMF(S)", pmf), ("SVD++(S)", svdpp)):
            contenders[f"{name}, {size}"] = lambda s=settings, d=data, n=iterations: ratings_per_second(s, d, n)
    turns = [{name: run() for name, run in contenders.items()} for _ in range(repeats)]

    def ratio(above: str, below: str) -> float:
        return round(statistics.median(turn[above] / turn[below] for turn in turns), 2)

    found: dict[str, object] = {
        "data": [data.name for data, _ in sets.values()],
        "million_per_second": {name: round(statistics.median(t[name] for t in turns) / 1e6, 2) for name in turns[0]},
        "pmf_ratings_vs_sfpl_triples": ratio("PMF(S), 1M", "sFPL triples"),
        "svdpp_cost_vs_pmf": ratio("PMF(S), 1M", "SVD++(S), 1M"),
        "svdpp_cost_vs_pmf_heaviest_users": ratio("PMF(S), heaviest 1 %", "SVD++(S), heaviest 1 %"),
        "pmf_cost_of_a_rating_1m_vs_100k": ratio("PMF(S), 100K", "PMF(S), 1M"),
        "svdpp_cost_of_a_rating_1m_vs_100k": ratio("SVD++(S), 100K", "SVD++(S), 1M"),
        "seconds_of_a_100k_fold": {
            name: round(statistics.median(100 * len(small) / turn[f"{name}, 100K"] for turn in turns), 2)
            for name in ("PMF(S)", "SVD++(S)")
        },
    }
    if with_city:
        found["pmf_cost_of_a_rating_city_vs_1m"] = ratio("PMF(S), 1M", "PMF(S), city of 10M")
        found["svdpp_cost_of_a_rating_city_vs_1m"] = ratio("SVD++(S), 1M", "SVD++(S), city of 10M")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-city", action="store_true", help="leave out the city with 10 million ratings")
    asked = parser.parse_args()
    found = measure(asked.repeats, with_city=not asked.no_city)
    print(json.dumps(found) if asked.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
