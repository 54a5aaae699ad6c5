"""Tiny worlds with ratings that tests train on."""

import numpy as np

from federank.data.interactions import Interactions
from federank.engines.ratings.federation import RatingFederation
from federank.protocol.ratings.recipes import PMFSettings, SVDPlusPlusSettings


def rated_world(users=12, items=30, ratings=150, seed=0):
    """People with random ratings of random items."""
    rng = np.random.default_rng(seed)
    return Interactions.from_columns(
        rng.integers(0, users, ratings), rng.integers(0, items, ratings), rng.integers(1, 6, ratings)
    ).compact()


def two_opinions(people=40, items=24, rated=12, seed=0):
    """Even people give even items 5 and odd ones 1; odd people the other way round."""
    rng = np.random.default_rng(seed)
    rows = [(person, int(item)) for person in range(people) for item in rng.choice(items, rated, replace=False)]
    values = [5.0 if (person + item) % 2 == 0 else 1.0 for person, item in rows]
    return Interactions.from_columns([u for u, _ in rows], [i for _, i in rows], values)


def rating_federation(data, method="pmf", **settings):
    """A federation of these people before its first round."""
    kind = {"pmf": PMFSettings, "svdpp": SVDPlusPlusSettings}[method]
    return RatingFederation.established(kind(**({"factors": 4, "initial_range": 0.5} | settings)), data)
