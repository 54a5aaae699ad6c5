"""Communication: what is counted is what the reference engine sends, and the paper's formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.fpl.test_round import Recorder
from tests.worlds import federation, model_of, play_with, random_world

from federank.federation import wire
from federank.methods.fpl.communication import communication_cost, count_communication, replay
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.settings import PRESETS
from federank.methods.fpl.simulation import InMemoryClients

DATA = random_world()
SETTINGS = {
    **PRESETS,
    "masked": {"pi": 0.3, "triples": 4, "clients_per_round": 3},
    "dropout": {"dropout": 0.5, "triples": 2, "clients_per_round": 4},
    "online": {"online": 0.4, "clients_per_round": 2},
    "adam": {"server": "adam", "online": 0.4, "clients_per_round": 2, "dropout": 0.5},
}


class Downloads(Recorder):
    """Also follows which rows each device would have to fetch: those that changed since it was last there."""

    def __init__(self, fleet, n_items):
        super().__init__(fleet)
        self.held, self.recipe = {}, fleet.recipe
        self.fetched = []
        self.changed_in = np.full(n_items, -1)

    def train(self, clients, broadcast, round_number):
        for user in clients.tolist():
            since = self.held.get(user)
            self.fetched.append(len(self.changed_in) if since is None else int((self.changed_in >= since).sum()))
            self.held[user] = round_number
        updates = list(super().train(clients, broadcast, round_number))
        for update in updates:
            everything = not self.recipe.only_adds
            self.changed_in[slice(None) if everything else update.items] = round_number
        return updates


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_counts_are_those_of_the_recorded_traffic(name):
    established = federation(DATA, **SETTINGS[name])
    fleet = Downloads(InMemoryClients(established), DATA.n_items)
    rounds = 90
    play_with(established, fleet, rounds)
    updates = [message for message in fleet.traffic if isinstance(message, FPLUpdate)]
    counted = count_communication(established.recipe, DATA.profiles, DATA.n_items, rounds)
    assert counted["uploads"] == len(updates)
    assert counted["up"]["rows"] == sum(len(update.items) for update in updates)
    assert counted["up"]["bytes"] == sum(len(wire.encode(update)) for update in updates)
    assert counted["downloads"] == len(fleet.fetched)
    assert counted["down_dense"]["rows"] == len(fleet.fetched) * DATA.n_items
    assert counted["down_changed"]["rows"] == sum(fleet.fetched)
    assert counted["down_changed"]["bytes"] == sum(
        wire.size_of_rows(model_of(established), rows) for rows in fleet.fetched
    )
    assert counted["up"]["rows_per_round"] == pytest.approx(counted["up"]["rows"] / rounds)


def test_counting_goes_on_when_its_ticks_run_out():
    # Rows changed since a device was last there, by brute force over a run that uses up the ticks more than once.
    established = federation(DATA)
    rounds, recipe = 12_000, established.recipe
    changed_in, held, fetched = np.full(DATA.n_items, -1), {}, 0
    for pairs in replay(recipe, established.histories, DATA.n_items, range(rounds)):
        for number, user, i, j in zip(pairs.rounds, pairs.users, pairs.positives, pairs.negatives, strict=True):
            fetched += int((changed_in >= held[user]).sum()) if user in held else DATA.n_items
            held[user] = int(number)
            changed_in[[i, j]] = number
    counted = count_communication(recipe, DATA.profiles, DATA.n_items, rounds)
    assert counted["down_changed"]["rows"] == fetched


def test_one_client_a_round_is_as_fresh_as_can_be():
    counted = count_communication(federation(DATA).recipe, DATA.profiles, DATA.n_items, 10)
    assert counted["papers"]["normalised_freshness"] == 1.0


BRAZIL = {"users": 17_473, "items": 47_270, "interactions": 599_958}


@pytest.mark.parametrize(
    ("pi", "one_pair", "many_pairs"),
    [
        (0.0, 28_360_614_618, 28_380_614_992),
        (0.2, 28_360_734_610, 28_384_735_058),
        (0.4, 28_360_854_601, 28_388_855_125),
        (0.6, 28_360_974_593, 28_392_975_191),
        (0.8, 28_361_094_584, 28_397_095_258),
        (1.0, 28_361_214_576, 28_401_215_324),
    ],
)
def test_brazil_costs_what_the_paper_prints(pi, one_pair, many_pairs):
    rho = BRAZIL["interactions"]
    triples = BRAZIL["interactions"] / BRAZIL["users"]  # 34.3: the table prints 34, and is computed without rounding
    assert round(communication_cost(rho, BRAZIL["items"], 1, pi)) == one_pair
    assert round(communication_cost(rho, BRAZIL["items"], triples, pi)) == many_pairs


@given(pi=st.floats(0, 1), triples=st.integers(1, 200))
def test_each_positive_that_is_sent_adds_its_vector(pi, triples):
    nothing = communication_cost(10, 100, triples, 0)
    assert communication_cost(10, 100, triples, pi) - nothing == pytest.approx(10 * triples * pi)
