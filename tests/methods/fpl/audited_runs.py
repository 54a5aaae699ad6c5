"""Runs of the reference engine whose messages are kept, each with the device it came from."""

import copy

import numpy as np
from tests.worlds import model_of

from federank.methods.fpl.settings import FPLSettings
from federank.methods.fpl.simulation import InMemoryClients
from federank.privacy.population import Choices

CONFIGURATIONS = {
    "one pair of one client": {"pi": 0.4},
    "several of several": {"pi": 0.4, "clients_per_round": 3, "triples": 5},
    "everybody": {"pi": 0.4, "clients_per_round": "all", "triples": "mean"},
    "own profile's size": {"pi": 0.4, "clients_per_round": 2, "triples": "profile"},
    "masked by row": {"pi": 0.4, "clients_per_round": 2, "triples": 6, "mask": "as-printed"},
    "summed": {"pi": 0.4, "clients_per_round": 2, "triples": 6, "order": "as-printed"},
    "fixed-subset": {"pi": 0.4, "clients_per_round": 2, "triples": 6, "sharing": "fixed-subset"},
    "fixed-subset, shared alone": {
        "pi": 0.4,
        "clients_per_round": 2,
        "triples": 6,
        "sharing": "fixed-subset",
        "basis": "shared",
    },
    "randomized-response": {
        "pi": 0.4,
        "clients_per_round": 2,
        "triples": 6,
        "sharing": "randomized-response",
        "item_epsilon": 2.0,
    },
    "answers get lost": {"pi": 0.4, "clients_per_round": 3, "triples": 2, "dropout": 0.4},
    "devices are away": {"pi": 0.4, "clients_per_round": 3, "triples": 2, "online": 0.3},
    "nothing is sent": {"pi": 0.0, "clients_per_round": 3, "triples": 2},
    "more pairs than a block": {"pi": 0.4, "clients_per_round": 2, "triples": 700},
}


def play_and_keep(established, rounds):
    """Play rounds of a federation; every Update as (user, Update)."""
    played = copy.deepcopy(established)
    fleet, kept = InMemoryClients(played), []
    for _ in range(rounds):
        number, broadcast = played.round_number, model_of(played)
        clients = fleet.choose(number)
        sent = [(int(user), update) for user in clients for update in fleet.train([user], broadcast, number)]
        played.aggregate([update for _, update in sent])
        kept += sent
    return kept


def everybody_alike(data, settings):
    """The choices of people who all go by these settings."""
    policy = FPLSettings(**settings).policy(0.5)
    return Choices.alike(policy, np.full(data.n_users, float(settings.get("pi", 1.0))))
