"""Distribution: who takes part is drawn fairly, and only from those who are there."""

import numpy as np
import pytest
import scipy
from tests.worlds import federation, random_world

from federank._numerics.compiling import compiled
from federank.methods.fpl.settings import choose_clients

DATA = random_world()


@compiled
def choose(recipe, round_number, marks, chosen):
    return choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)


def chosen_in(rounds, **settings):
    recipe = federation(DATA, **settings).recipe
    marks, chosen = np.zeros(DATA.n_users, dtype=np.int64), np.empty(DATA.n_users, dtype=np.int32)
    return [chosen[: choose(recipe, number, marks, chosen)].copy() for number in range(rounds)]


@pytest.mark.parametrize("clients", [1, 3, 5, 8, 11, "all"])
def test_a_round_has_as_many_different_clients_as_asked_for(clients):
    for chosen in chosen_in(200, clients_per_round=clients):
        assert len(chosen) == len(set(chosen.tolist())) == (12 if clients == "all" else clients)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_every_user_is_chosen_equally_often(clients):
    counts = np.bincount(np.concatenate(chosen_in(3000, clients_per_round=clients)), minlength=12)
    expected = 3000 * clients / 12
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


@pytest.mark.parametrize("clients", [1, 4, "all"])
def test_a_client_is_there_as_often_as_it_is_online(clients):
    counts = [len(chosen) for chosen in chosen_in(2000, clients_per_round=clients, online=0.25)]
    most = 12 if clients == "all" else clients
    there = np.arange(13)
    expected = np.minimum(there, most) @ scipy.stats.binom.pmf(there, 12, 0.25)
    assert max(counts) <= most
    assert np.mean(counts) == pytest.approx(expected, abs=0.15)


def test_a_trace_says_who_is_there_and_starts_over_at_its_end():
    trace = np.zeros((2, 12), dtype=bool)
    trace[0, [1, 5]] = trace[1, 7] = True
    rounds = chosen_in(6, clients_per_round="all", trace=trace)
    assert [sorted(chosen.tolist()) for chosen in rounds] == [[1, 5], [7]] * 3
    assert {int(chosen[0]) for chosen in chosen_in(60, clients_per_round=1, trace=trace)} == {1, 5, 7}
