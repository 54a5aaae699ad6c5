"""Distribution: who takes part is drawn fairly, and only from those who are there."""

import numpy as np
import pytest
from tests.worlds import federation, random_world

from federank.engines.reference import FleetInMemory

DATA = random_world()


def chosen_in(rounds, **settings):
    founded = federation(DATA, **settings)
    fleet = FleetInMemory(founded.recipe, DATA.profiles, founded.user_vectors)
    return [fleet.choose(number) for number in range(rounds)]


@pytest.mark.parametrize("clients", [1, 3, 5, 8, 11, "all"])
def test_a_round_has_as_many_different_clients_as_asked_for(clients):
    for chosen in chosen_in(200, clients_per_round=clients):
        assert len(chosen) == len(set(chosen.tolist())) == (12 if clients == "all" else clients)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_everyone_is_chosen_equally_often(clients):
    counts = np.bincount(np.concatenate(chosen_in(3000, clients_per_round=clients)), minlength=12)
    expected = 3000 * clients / 12
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


@pytest.mark.parametrize("clients", [1, 4, "all"])
def test_a_device_is_there_as_often_as_it_is_online(clients):
    rounds = chosen_in(1000, clients_per_round=clients, online=0.25)
    if clients == "all":
        assert np.mean([len(chosen) for chosen in rounds]) == pytest.approx(3, abs=0.2)
    elif clients == 1:
        assert all(len(chosen) <= 1 for chosen in rounds)
        assert np.mean([len(chosen) for chosen in rounds]) == pytest.approx(1 - 0.75**12, abs=0.03)


def test_nobody_who_is_never_online_takes_part():
    assert all(len(chosen) == 0 for chosen in chosen_in(20, clients_per_round=2, online=0.0))


def test_a_trace_says_who_is_there_and_starts_over_at_its_end():
    trace = np.zeros((2, 12), dtype=bool)
    trace[0, [1, 5]] = trace[1, 7] = True
    rounds = chosen_in(6, clients_per_round="all", trace=trace)
    assert [sorted(chosen.tolist()) for chosen in rounds] == [[1, 5], [7]] * 3
    assert {int(chosen[0]) for chosen in chosen_in(60, clients_per_round=1, trace=trace)} == {1, 5, 7}
