"""The observer notes exactly what crosses the wire, and a replay meets the clients of every round."""

import numpy as np
import pytest
from tests.methods.fpl.audited_runs import CONFIGURATIONS, play_and_keep
from tests.worlds import federation, model_of, random_world

from federank.methods.fpl.communication import replay
from federank.methods.fpl.kernels import BOTH, LOST
from federank.methods.fpl.observer import Observer, next_updates
from federank.methods.fpl.settings import clients_of_round, participations
from federank.methods.fpl.simulation import InMemoryClients, play_compiled

ALL_USERS = np.arange(12, dtype=np.int32)


def noted(kept, people, n_items):
    """What a server would note by hand from these Updates."""
    positive = np.zeros((len(people), n_items), dtype=np.uint8)
    negative = np.zeros((len(people), n_items), dtype=bool)
    rows = np.zeros(len(people), dtype=np.int64)
    row_of = {int(person): row for row, person in enumerate(people)}
    for user, update in kept:
        if user in row_of:
            positive[row_of[user], update.items[update.biases > 0]] += 1
            negative[row_of[user], update.items[update.biases < 0]] = True
            rows[row_of[user]] += int((update.biases < 0).sum())
    return positive, negative, rows


@pytest.mark.slow
@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_the_observer_notes_what_the_updates_of_the_reference_engine_show(settings):
    data = random_world()
    rounds = 4 if settings.get("triples") == 700 else 25
    positive, negative, rows = noted(play_and_keep(federation(data, **settings), rounds), ALL_USERS, data.n_items)
    assert positive.any() == (settings["pi"] > 0)
    observer = Observer(federation(data, **settings), ALL_USERS)
    observer.watch_until(rounds)
    np.testing.assert_array_equal(observer.sightings.as_positive, positive)
    np.testing.assert_array_equal(observer.negatives_of(ALL_USERS), negative)
    np.testing.assert_array_equal(observer.sightings.negative_rows, rows)


def test_watching_in_parts_notes_the_same_as_watching_at_once():
    data, settings = random_world(), {"pi": 0.5, "clients_per_round": 9, "triples": 3, "online": 0.7}
    at_once, in_parts = (Observer(federation(data, **settings), ALL_USERS) for _ in range(2))
    at_once.watch_until(40)
    for until in (0, 7, 7, 23, 40):
        in_parts.watch_until(until)
    for one, other in zip(at_once.sightings, in_parts.sightings, strict=True):
        np.testing.assert_array_equal(one, other)
    assert in_parts.round_number == 40


def test_following_a_few_users_notes_the_same_about_them():
    data, settings = random_world(), {"pi": 0.5, "clients_per_round": 4, "triples": 3}
    few = np.array([2, 3, 9], dtype=np.int32)
    all_users, some = Observer(federation(data, **settings), ALL_USERS), Observer(federation(data, **settings), few)
    all_users.watch_until(30)
    some.watch_until(30)
    for one, other in zip(all_users.sightings, some.sightings, strict=True):
        np.testing.assert_array_equal(one[few], other)


@pytest.mark.slow
@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_the_next_update_is_what_the_reference_engines_client_would_send(settings):
    data = random_world()
    established = federation(data, **settings)
    play_compiled(established, 20)
    recipe = established.recipe._replace(dropout=0.0)
    fleet, broadcast = InMemoryClients(established), model_of(established)
    fleet.recipe = recipe
    before = {name: table.copy() for name, table in established.tables().all.items()}
    found = list(next_updates(established, recipe.participants))
    assert len(found) == len(recipe.participants)
    for update, expected in zip(found, fleet.train(recipe.participants, broadcast, 20), strict=True):
        np.testing.assert_array_equal(update.items, expected.items)
        np.testing.assert_allclose(update.vectors, expected.vectors, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(update.biases, expected.biases, rtol=1e-4, atol=1e-5)
    for name, table in established.tables().all.items():
        np.testing.assert_array_equal(table, before[name])


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
    fleet = InMemoryClients(established)
    pairs = replayed(established)
    for number in range(ROUNDS):
        met = pairs[(pairs[:, 0] == number) & (pairs[:, 2] == 0), 1]
        assert met.tolist() == fleet.choose(number).tolist()
        assert clients_of_round(established.recipe, number, DATA.n_users).tolist() == met.tolist()


@pytest.mark.parametrize("world", WORLDS)
def test_a_replay_knows_the_items_of_every_update(world):
    established = federation(DATA, **WORLDS[world])
    fleet = InMemoryClients(established)
    pairs = replayed(established)
    for number in range(ROUNDS):
        for user in fleet.choose(number):
            own = pairs[(pairs[:, 0] == number) & (pairs[:, 1] == user)]
            expected = set(own[own[:, 5] != LOST, 4]) | set(own[own[:, 5] == BOTH, 3])
            updates = fleet.train([user], model_of(established), number)
            assert {int(item) for update in updates for item in update.items} == expected


def test_a_replay_may_begin_anywhere_and_follow_whom_it_likes():
    established = federation(DATA, pi=0.4, clients_per_round=3, triples=5)
    whole = replayed(established)
    np.testing.assert_array_equal(replayed(established, range(5, 11)), whole[(whole[:, 0] >= 5) & (whole[:, 0] < 11)])
    followed = np.arange(DATA.n_users) % 3 == 0
    np.testing.assert_array_equal(replayed(established, followed=followed), whole[followed[whole[:, 1]]])


def test_participations_count_the_rounds_of_each_user():
    established = federation(DATA, clients_per_round=3, triples=2)
    pairs = replayed(established)
    counted = np.bincount(pairs[pairs[:, 2] == 0, 1], minlength=DATA.n_users)
    np.testing.assert_array_equal(participations(established.recipe, DATA.n_users, ROUNDS), counted)
