"""The observer notes exactly what crosses the wire."""

import numpy as np
import pytest
from tests.methods.fpl.audited_runs import CONFIGURATIONS, play_and_keep
from tests.worlds import federation, random_world

from federank.methods.fpl.observer import Observer

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
