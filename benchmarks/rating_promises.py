"""What a guarantee of noise costs ratings as sums: PMF by the protocol's own messages, rounding, noise and fold.

Every round has everyone, as two servers would add them up. `--times 100` divides the noise by a hundred, which is what
a hundred times as many people of the same kind would make of it: a mean has as much less of it.

    python benchmarks/rating_promises.py --data ml-1m --epsilon 8 [--times 100] [--clip 8] [--messages 20] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import os

import numpy as np

import federank as fr
from federank.evaluation.metrics import rmse
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.settings import RatingFederationSettings
from federank.methods.fedrec.simulation import RatersInMemory, RatingFederation
from federank.methods.fedrec.wire import summed_gradients
from federank.privacy.accountant import mu_for
from federank.secagg.exchange import draw_noise
from federank.secagg.ring import C_INT, round_message
from federank.secagg.upload import rounding_chances


def played(split: fr.Split, clip: float, messages: int, noise: int) -> tuple[RatingFederation, np.ndarray]:
    """A federation of everyone after this many rounds, and which items have ever stood out of the noise."""
    settings = RatingFederationSettings(filling="none", rho=0.0)
    federation, n_items = RatingFederation.established(settings, split.train), split.train.n_items
    recipe, heard = federation.recipe, np.zeros(n_items, dtype=np.bool_)
    fleet, shared, columns = RatersInMemory(federation), federation.shared, recipe.factors + 1
    for _ in range(messages):
        total = np.zeros((n_items, columns), dtype=np.int64)
        with words_wrap_around():
            for update in fleet.train(recipe.participants.tolist(), shared.distribute(recipe)):
                # Rows of other items are zeros, stay zeros, and add nothing to the norm.
                rows = np.column_stack((update.vectors, np.ones(len(update.items)))).astype(np.float64).ravel()
                whole = round_message(rows, clip, rounding_chances(len(rows), os.urandom))
                total[update.items] += whole.reshape(-1, columns)
        for _server in range(2):
            total += draw_noise(noise, total.size, os.urandom).reshape(total.shape)
        sums = summed_gradients(total.ravel(), clip, noise, n_items, implicit=False)
        shared.step_by_means(recipe, sums)
        heard |= sums.counts > 0
    federation.take(shared)
    federation.user_vectors[:, : recipe.factors] = [device.vector for device in fleet.devices]
    return federation, heard


def error(federation: RatingFederation, heard: np.ndarray, split: fr.Split) -> tuple[float, float]:
    """RMSE on the test part by the vectors of the rounds, and by everyone's own mean."""
    train, test = split.train, split.test
    people = {person: number for number, person in enumerate(train.user_ids.tolist())}
    items = {item: number for number, item in enumerate(train.item_ids.tolist())}
    users = np.array([people.get(person, -1) for person in test.user_ids.tolist()])[test.users]
    rated = np.array([items.get(item, -1) for item in test.item_ids.tolist()])[test.items]
    known = (users >= 0) & (rated >= 0)
    users, rated, actual = users[known], rated[known], test.ratings[known]
    factors, means = federation.recipe.factors, federation.means[users]
    told = np.einsum("kf,kf->k", federation.user_vectors[users, :factors], federation.item_vectors[rated, :factors])
    return float(rmse(np.clip(np.where(heard[rated], told, means), 1, 5), actual)), float(rmse(means, actual))


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
    federation, heard = played(split, given.clip, given.messages, noise)
    found, by_means = error(federation, heard, split)
    told = {"data": given.data, "people": split.train.n_users, "times": given.times, "epsilon": given.epsilon}
    told |= {"items": split.train.n_items, "items_heard": int(heard.sum()), "rmse": round(found, 4)}
    told |= {"rmse_of_own_means": round(by_means, 4), "clip": given.clip, "messages": given.messages}
    print(json.dumps(told) if given.json else "\n".join(f"{name:20} {value}" for name, value in told.items()))


if __name__ == "__main__":
    main()
