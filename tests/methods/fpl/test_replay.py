"""A replay makes a run's draws again: everything that the reference engine's devices did, and nothing else."""

import numpy as np
import pytest
from tests.worlds import federation, model_of, random_world

from federank.methods.fpl import communication as module
from federank.methods.fpl.communication import clients_of_round, participations, replay
from federank.methods.fpl.kernels import BOTH, LOST
from federank.methods.fpl.simulation import FleetInMemory

DATA = random_world()
ROUNDS = 15
WORLDS = {
    "one pair of one client": {"pi": 0.4},
    "several of several": {"pi": 0.4, "clients_per_round": 3, "triples": 5},
    "everybody": {"clients_per_round": "all", "triples": "mean"},
    "own profile's size": {"clients_per_round": 2, "triples": "profile"},
    "devices are away": {"clients_per_round": 3, "triples": 2, "online": 0.2},
    "answers get lost": {"clients_per_round": 3, "triples": 2, "dropout": 0.4},
    "fixed-subset": {"pi": 0.4, "clients_per_round": 2, "triples": 6, "sharing": "fixed-subset"},
}


def replayed(established, rounds=range(ROUNDS), followed=None):
    """Every pair of these rounds, as rows of (round, user, counter, positive, negative, arrives)."""
    found = [
        np.column_stack(
            (pairs.rounds, pairs.users, pairs.counters, pairs.positives, pairs.negatives, pairs.arrives)
        ).astype(np.int64)
        for pairs in replay(established.recipe, established.histories, DATA.n_items, rounds, followed)
    ]
    return np.concatenate(found)


@pytest.mark.parametrize("world", WORLDS)
def test_a_replay_meets_the_clients_of_every_round_in_their_order(world):
    established = federation(DATA, **WORLDS[world])
    fleet = FleetInMemory(established)
    pairs = replayed(established)
    for number in range(ROUNDS):
        met = pairs[(pairs[:, 0] == number) & (pairs[:, 2] == 0), 1]
        assert met.tolist() == fleet.choose(number).tolist()
        assert clients_of_round(established.recipe, number, DATA.n_users).tolist() == met.tolist()


@pytest.mark.parametrize("world", WORLDS)
def test_a_replay_knows_the_items_of_every_update(world):
    established = federation(DATA, **WORLDS[world])
    fleet = FleetInMemory(established)
    pairs = replayed(established)
    for number in range(ROUNDS):
        for user in fleet.choose(number):
            own = pairs[(pairs[:, 0] == number) & (pairs[:, 1] == user)]
            expected = set(own[own[:, 5] != LOST, 4]) | set(own[own[:, 5] == BOTH, 3])
            updates = fleet.train([user], model_of(established), number)
            assert {int(item) for update in updates for item in update.items} == expected


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    established = federation(DATA, pi=0.4, clients_per_round=3, triples=5)
    whole = replayed(established)
    for size in (1, 7, 15):
        monkeypatch.setattr(module, "_PAIRS_AT_ONCE", size)
        np.testing.assert_array_equal(replayed(established), whole)


def test_a_replay_may_begin_anywhere_and_follow_whom_it_likes():
    established = federation(DATA, pi=0.4, clients_per_round=3, triples=5)
    whole = replayed(established)
    np.testing.assert_array_equal(replayed(established, range(5, 11)), whole[(whole[:, 0] >= 5) & (whole[:, 0] < 11)])
    followed = np.arange(DATA.n_users) % 3 == 0
    np.testing.assert_array_equal(replayed(established, followed=followed), whole[followed[whole[:, 1]]])


def test_no_rounds_have_no_pairs():
    established = federation(DATA)
    assert list(replay(established.recipe, established.histories, DATA.n_items, range(5, 5))) == []


def test_participations_count_the_rounds_of_each_user():
    established = federation(DATA, clients_per_round=3, triples=2)
    pairs = replayed(established)
    counted = np.bincount(pairs[pairs[:, 2] == 0, 1], minlength=DATA.n_users)
    np.testing.assert_array_equal(participations(established.recipe, DATA.n_users, ROUNDS), counted)
