"""Tiny worlds with ratings that tests train on."""

import numpy as np

from federank.data.films import films, read_films
from federank.data.interactions import Interactions
from federank.federation.method import DataSummary
from federank.federation.schedule import Schedule
from federank.methods.fedrec.simulation import PMFSettings, RatingFederation, SVDPlusPlusSettings
from federank.privacy.population import AS_HISTORIES_ARE
from federank.simulation.engine import Simulation


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


def simulated(method, data, rounds):
    """A federation on the interface after rounds in which all clients take part."""
    method = method.resolve(DataSummary.of(data))
    able = np.flatnonzero(data.profiles.sizes).astype(np.int32)
    uploads = np.full(data.n_users, rounds, dtype=np.int32)
    simulation = Simulation(method, Schedule(method.seed, rounds, 1.0, 0.0, able, uploads), AS_HISTORIES_ARE, data)
    for _ in range(rounds):
        simulation.play_round()
    return simulation


def rated_films(people, seed=1):
    """Films with real titles and genres, and ratings from 1 to 5 by synthetic people.

    A rating is 3.6 plus the user's bias, the film's quality, the user's taste for its genres, and noise.
    """
    liked, table = films(people, seed), read_films()
    rng = np.random.default_rng(seed)
    genres = sorted({genre for film in table for genre in film.genres})
    shares = np.array([[genre in film.genres for genre in genres] for film in table]) / 1.0
    shares /= shares.sum(axis=1, keepdims=True)
    quality, biases = rng.normal(0, 0.4, len(table)), rng.normal(0, 0.4, people)
    tastes = rng.normal(0, 1.0, (people, len(genres)))
    users, numbers = liked.users, liked.item_ids[liked.items].astype(int) - 1
    matches = np.einsum("kg,kg->k", tastes[users], shares[numbers])
    values = 3.6 + biases[users] + quality[numbers] + matches + rng.normal(0, 0.6, len(users))
    stars = np.clip(np.rint(values), 1, 5)
    return Interactions.from_columns(liked.user_ids[users], numbers, stars, name="rated films")
