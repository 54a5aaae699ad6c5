"""A twin that is pushed: its exposure with and without the rule that hides items whose predicted audience has jumped.

Honest rounds, then rounds with malicious clients, sums of checked norm, three seeds. The yardstick is the exposure of
genuine items with about as many users.

    whole     5 honest rounds of everyone, then 5 with malicious clients (Frugal's own recipe)
    cohorts   60 honest rounds of 100 clients, then 15 with malicious ones
    start     malicious clients from the first round on
    private   the recipe of `--epsilon` without noise: one honest cycle, one with malicious clients
    epsilon   the same with epsilon 8

    python benchmarks/jumps.py [--data city,ml-100k] [--only whole,cohorts]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np

import federank as fr
from federank.audit.poisoning import PoisonSettings
from federank.methods.frugal.poisoning import Jump, rehearse_jump

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "whole": ({}, {}),
    "cohorts": ({}, {"calm_rounds": 60, "rounds": 15, "cohort": 100}),
    "start": ({}, {"calm_rounds": 0, "rounds": 10}),
    "private": ({"recipe": "private"}, {}),
    "epsilon": ({"recipe": "private", "epsilon": 8.0}, {}),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default="city,ml-100k")
    options.add_argument("--only", default=",".join(SETTINGS))
    asked = options.parse_args()
    for name in asked.data.split(","):
        split = fr.split_temporal(fr.load(name).keep_users(min_interactions=20), test=0.2)
        for when in asked.only.split(","):
            of_attack, of_rounds = SETTINGS[when]
            for share in (0.0, 0.01, 0.05):
                for has_rule in (False, True):
                    rows = [
                        rehearse_jump(
                            split,
                            PoisonSettings(
                                method="frugal", attack="twin", sees="checked", share=share, seed=seed, **of_attack
                            ),
                            has_rule=has_rule,
                            **of_rounds,
                        )
                        for seed in (1, 2, 3)
                    ]
                    means = zip(Jump._fields, np.array(rows).mean(0), strict=True)
                    told = "  ".join(f"{field} {value:.4f}" for field, value in means)
                    print(f"{name}  {when}  {share:.0%}  {'rule' if has_rule else 'none'}  {told}", flush=True)


if __name__ == "__main__":
    main()
