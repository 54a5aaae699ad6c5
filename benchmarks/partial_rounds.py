"""An attacker with side knowledge, where rounds are of a part of the clients: fixed groups, minimum support
5, one seed.

python benchmarks/partial_rounds.py [--data foursquare-italy,ml-100k] [--cohorts 1,8]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import federank as fr
from federank.methods.frugal.side_knowledge import side_knowledge


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default="foursquare-italy,ml-100k")
    options.add_argument("--cohorts", default="1,8")
    asked = options.parse_args()
    for name in asked.data.split(","):
        split = fr.split_temporal(fr.load(name).keep_users(min_interactions=20), test=0.2)
        for cohorts in map(int, asked.cohorts.split(",")):
            model = fr.Frugal(min_support=5, cohorts=cohorts, seed=1).fit(split.train)
            found = side_knowledge(model, users=100)
            told = "  ".join(f"{one} {each['inside']:.2f} / {each['outside']:.2f}" for one, each in found.items())
            print(f"{name}  cohorts {cohorts}  {split.train.n_users / cohorts:.0f} clients a round  {told}", flush=True)


if __name__ == "__main__":
    main()
