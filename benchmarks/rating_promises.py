"""What differential privacy costs ratings under secure aggregation: PMF with rounding and the noise of two servers.

Every round has everyone. `--times 100` divides the noise by a hundred, which is what a hundred times as many users of
the same kind would make of it: a mean has as much less of it.

    python benchmarks/rating_promises.py --data ml-1m --epsilon 8 [--times 100] [--clip 8] [--messages 20] [--json]
"""

from __future__ import annotations

import argparse
import json
import math

import numpy as np

import federank as fr
from federank.evaluation.metrics import rmse
from federank.federation.method import DataSummary
from federank.federation.schedule import Schedule
from federank.methods.fedrec.method import PMF
from federank.privacy.accountant import mu_for
from federank.privacy.population import AS_HISTORIES_ARE
from federank.secagg.ring import C_INT
from federank.simulation.engine import Simulation


def played(split: fr.Split, clip: float, uploads: int, noise: int) -> Simulation:
    """A federation of all users, as published, after this many rounds under secure aggregation."""
    data = split.train
    as_published = {"learning_rate": 0.8, "first_prediction": "zero", "prior_count": 0.0, "filling": "none", "rho": 0.0}
    secure = {"uploads": "secure", "uploads_per_client": uploads, "clip": clip, "noise": noise}
    method = PMF(**as_published, **secure).resolve(DataSummary.of(data))
    able = np.flatnonzero(data.profiles.sizes).astype(np.int32)
    schedule = Schedule(method.seed, uploads, 1.0, 0.0, able, np.full(data.n_users, uploads, dtype=np.int32))
    simulation = Simulation(method, schedule, AS_HISTORIES_ARE, data)
    for _ in range(uploads):
        simulation.play_round()
    return simulation


def error(simulation: Simulation, split: fr.Split) -> tuple[float, float]:
    """RMSE on the test part by the vectors of the rounds, and by each user's own mean."""
    train, test = split.train, split.test
    user_numbers = {user: number for number, user in enumerate(train.user_ids.tolist())}
    item_numbers = {item: number for number, item in enumerate(train.item_ids.tolist())}
    users = np.array([user_numbers.get(user, -1) for user in test.user_ids.tolist()])[test.users]
    items = np.array([item_numbers.get(item, -1) for item in test.item_ids.tolist()])[test.items]
    known = (users >= 0) & (items >= 0)
    users, items, actual = users[known], items[known], test.ratings[known]
    own_means = (np.bincount(train.users, train.ratings) / np.bincount(train.users))[users]
    state, vectors = simulation.state, simulation.client_states["vector"]
    predicted = np.einsum("kf,kf->k", vectors[users], state.vectors[items])
    predicted = np.clip(np.where(state.reported[items] > 0, predicted, own_means), 1, 5)
    return float(rmse(predicted, actual)), float(rmse(own_means, actual))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--epsilon", type=float, help="For all messages of a lifetime, at delta 1e-6; none: no noise.")
    parser.add_argument("--times", type=float, default=1.0, help="As if there were this many times as many people.")
    parser.add_argument("--clip", type=float, default=8.0)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    split = fr.split_random(fr.load(given.data), test=0.2, seed=1)
    sigma = 0.0 if given.epsilon is None else math.sqrt(given.messages) / mu_for(given.epsilon, 1e-6)
    noise = math.ceil(sigma * C_INT / given.times)
    simulation = played(split, given.clip, given.messages, noise)
    result, by_means = error(simulation, split)
    figures = {"data": given.data, "people": split.train.n_users, "times": given.times, "epsilon": given.epsilon}
    reported = int(simulation.state.reported.sum())
    figures |= {"items": split.train.n_items, "items_reported": reported, "rmse": round(result, 4)}
    figures |= {"rmse_of_own_means": round(by_means, 4), "clip": given.clip, "messages": given.messages}
    print(json.dumps(figures) if given.json else "\n".join(f"{name:20} {value}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
