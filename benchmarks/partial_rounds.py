"""An attacker with side knowledge, where rounds are of a part of the clients: minimum support 5, one seed.

fixed       a client is in rounds of the same group always
changing    the groups are drawn again for each upload, as in the service

python benchmarks/partial_rounds.py [--data foursquare-italy,ml-100k] [--sizes 50,200,all]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np

import federank as fr
from federank.methods.frugal.side_knowledge import SumsKept, Targets, side_knowledge
from federank.methods.frugal.simulation import play

USERS = 100


def changing(model: Any) -> dict[str, tuple[float, float]]:
    """The share that is right of the users' list, in the federation and left out of it, where groups are redrawn.

    The attacker adds up the co-occurrences of the rounds that a user was in: the user is in all of them, others in few.
    """
    data = model.training
    schedule = model.federation(data).schedule
    targets = Targets.drawn(schedule, data.profiles, USERS, 10)
    others = np.setdiff1d(schedule.participants, targets.users).astype(np.int32)
    right: list[dict[str, float]] = []
    for participants in (schedule.participants, others):
        federation = model.federation(data)
        federation.schedule = schedule._replace(participants=participants)
        rng, groups, kept = np.random.default_rng(schedule.seed), [], []

        def watch(_: Any, sums: Any, federation: Any = federation, kept: Any = kept) -> None:
            kept.append(SumsKept(federation))
            kept[-1].watch(sums)

        for _ in range(schedule.rounds // schedule.cohorts):
            group = federation.schedule.cohort.copy()
            group[schedule.participants] = rng.permutation(group[schedule.participants])
            federation.schedule = federation.schedule._replace(cohort=group)
            groups.append(group)
            play(federation, schedule.cohorts, watch=watch)
        right.append(_right(data, targets, [group[targets.users] for group in groups], kept, schedule.cohorts))
    return {name: (right[0][name], right[1][name]) for name in right[0]}


def _right(data: Any, targets: Any, groups: list[Any], kept: list[Any], cohorts: int) -> dict[str, float]:
    guesses = {name: np.zeros((len(targets.users), data.n_items), dtype=np.float32) for name in ("shares", "cosines")}
    known = [one.co_occurrences() for one in kept]
    for row, theirs in enumerate(targets.known):
        products: Any = np.zeros((len(theirs), data.n_items))
        own: Any = np.full(data.n_items, 1e-12)
        for epoch, group in enumerate(groups):
            place = epoch * cohorts + int(group[row])
            items, factors = known[place]
            if not factors.shape[1]:
                continue  # a round of counts
            places = np.full(data.n_items, -1)
            places[items] = np.arange(len(items))
            there = np.flatnonzero(places[theirs] >= 0)
            products[np.ix_(there, items)] += factors[places[theirs[there]]] @ factors.T
            own[items] += np.maximum(np.einsum("ij,ij->i", factors, factors), kept[place].popularity[items])
        for name, most in (("shares", own[theirs, None]), ("cosines", np.sqrt(own[theirs, None] * own))):
            shares = np.clip(products / np.maximum(most, 1e-12), 0.0, 1 - 1e-9)
            guesses[name][row] = -np.log1p(-shares).sum(axis=0)
    return {name: float(targets.right(data.profiles, guess).mean()) for name, guess in guesses.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default="foursquare-italy,ml-100k")
    options.add_argument("--sizes", default="50,200,all")
    asked = options.parse_args()
    for name in asked.data.split(","):
        train = fr.split_temporal(fr.load(name).keep_users(min_interactions=20), test=0.2).train
        for size in asked.sizes.split(","):
            cohorts = 1 if size == "all" else round(train.n_users / int(size))
            model = fr.Frugal(min_support=5, cohorts=cohorts, seed=1).fit(train)
            fixed = {one: (each["inside"], each["outside"]) for one, each in side_knowledge(model, users=USERS).items()}
            groups = {"fixed": fixed} if cohorts == 1 else {"fixed": fixed, "changing": changing(model)}
            for how, shares in groups.items():
                line = "  ".join(f"{one} {inside:.2f} / {outside:.2f}" for one, (inside, outside) in shares.items())
                print(f"{name}  {train.n_users / cohorts:.0f} clients per round  {how}  {line}", flush=True)


if __name__ == "__main__":
    main()
