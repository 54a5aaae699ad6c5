"""Tiny worlds that tests train on."""

import numpy as np

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate
from federank.methods.fpl.settings import FPLSettings, recipe_for
from federank.methods.fpl.simulation import Federation
from federank.privacy.population import Choices, coins, shared_profiles_of_all


def random_world(users=12, items=30, interactions=150, seed=0):
    """People with random histories."""
    rng = np.random.default_rng(seed)
    return Interactions.from_columns(rng.integers(0, users, interactions), rng.integers(0, items, interactions))


def two_tastes(people=20, items=24, seen=8, seed=0):
    """Even people like even items, odd people odd ones; each has met some of them."""
    rng = np.random.default_rng(seed)
    rows = [
        (person, int(item))
        for person in range(people)
        for item in rng.choice(np.arange(person % 2, items, 2), seen, False)
    ]
    return Interactions.from_columns([u for u, _ in rows], [i for _, i in rows])


def shop_of(folder, data, ratings=False):
    """A CSV file of these interactions, one second apart; with ratings from 1 to 5 where they are asked for."""
    rows = enumerate(zip(data.user_ids[data.users], data.item_ids[data.items], strict=True))
    lines = [f"{u},{i}{f',{1 + (u + i) % 5}' if ratings else ''},{1_600_000_000 + n}\n" for n, (u, i) in rows]
    path = folder / "shop.csv"
    path.write_text(f"user,item{',rating' if ratings else ''},time\n" + "".join(lines))
    return path


def federation(data, pi=None, trace=None, policies=None, **settings):
    """A federation of these people before its first round; everyone may have a policy of their own."""
    settings = FPLSettings(**({"factors": 4, "pi": float(np.mean(1.0 if pi is None else pi))} | settings))
    everyones_pi = (
        np.full(data.n_users, 1.0 if pi is None else pi) if np.ndim(pi if pi is not None else 1.0) == 0 else pi
    )
    pi = np.asarray(everyones_pi, dtype=float)
    choices = Choices.of_users(policies) if policies else Choices.alike(settings.policy(0.5), pi)
    shared_profile = shared_profiles_of_all(choices, settings.seed, data.profiles, data.n_items)
    recipe = recipe_for(settings, data.profiles.sizes, data.n_items, coins(choices), trace, shared_profile)
    return Federation.established(settings, recipe, data.profiles, data.n_items)


def model_of(established):
    """What clients of a federation download now."""
    return wire.read_only(established.method.broadcast(established.state))


def play_with(established, fleet, rounds):
    """Rounds of a federation with these clients."""
    for _ in range(rounds):
        number = established.round_number
        established.aggregate(fleet.train(fleet.choose(number), model_of(established), number))


def decode_update(content, factors, n_items):
    """An update of FPL from the wire."""
    return wire.decode(FPLUpdate, FPL(n_items=n_items, factors=factors, triples=1), content)


def rows_message(round_number, version, items, vectors, biases, n_items=2**20):
    """Rows of FPL's model as a server sends them."""
    model = FPLModel(np.zeros((n_items, vectors.shape[-1]), np.float32), np.zeros(n_items, np.float32))
    model.vectors[items], model.biases[items] = vectors, biases
    return wire.encode_rows(model, np.asarray(items), n_items, round_number=round_number, version=version)
