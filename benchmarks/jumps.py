"""A twin that is pushed: its exposure with and without hiding items whose predicted audience has jumped.

5 rounds of honest clients, then 5 with malicious ones, sums of checked norm, three seeds; `start`: malicious clients
from the first round on. The yardstick is the exposure of genuine items with about as many users.

    python benchmarks/jumps.py [--data city,ml-100k]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import federank as fr
from federank.audit.poisoning import PoisonSettings
from federank.methods.frugal.poisoning import Jump, rehearse_jump


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default="city,ml-100k")
    for name in options.parse_args().data.split(","):
        split = fr.split_temporal(fr.load(name).keep_users(min_interactions=20), test=0.2)
        for share in (0.01, 0.05):
            for calm, when in ((5, "later"), (0, "start")):
                settings = [
                    PoisonSettings(method="frugal", attack="twin", sees="checked", share=share, seed=seed)
                    for seed in (1, 2, 3)
                ]
                rows = np.array([rehearse_jump(split, one, calm_rounds=calm) for one in settings])
                means = "  ".join(
                    f"{field} {value:.4f}" for field, value in zip(Jump._fields, rows.mean(0), strict=True)
                )
                print(f"{name}  {share:.0%}  {when}  {means}", flush=True)


if __name__ == "__main__":
    main()
