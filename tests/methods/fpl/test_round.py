"""A round: what passes between server and devices, and what does not."""

import numpy as np
import pytest
from tests.worlds import federation, play_with, random_world, two_tastes

from federank.methods.fpl.method import FPLModel, FPLUpdate
from federank.methods.fpl.simulation import InMemoryClients


class Recorder:
    """Clients that remember all that passed between them and the server."""

    def __init__(self, fleet):
        self.fleet, self.traffic = fleet, []

    def choose(self, round_number):
        return self.fleet.choose(round_number)

    def train(self, clients, broadcast, round_number):
        self.traffic.append(broadcast)
        for update in self.fleet.train(clients, broadcast, round_number):
            self.traffic.append(update)
            yield update


def recorded(data, rounds=30, **settings):
    established = federation(data, **settings)
    fleet = Recorder(InMemoryClients(established))
    play_with(established, fleet, rounds)
    return fleet, established.state


def updates_of(fleet):
    return [message for message in fleet.traffic if isinstance(message, FPLUpdate)]


def test_nothing_but_broadcasts_and_updates_passes():
    fleet, _ = recorded(random_world(), clients_per_round=3, triples=2)
    assert {type(message) for message in fleet.traffic} == {FPLModel, FPLUpdate}
    assert len(updates_of(fleet)) == 30 * 3


def test_server_and_clients_share_no_array():
    fleet, shared = recorded(random_world(), clients_per_round=3, triples=2)
    private = [*fleet.fleet.vectors, *(taken.profile for taken in fleet.fleet.shared_profiles)]
    for message in fleet.traffic:
        for field in (message.vectors, message.biases):
            assert not any(np.shares_memory(field, array) for array in private)
            assert not np.shares_memory(field, shared.vectors)


def test_what_a_server_sends_depends_on_histories_only_through_updates():
    # Another history and another vector for person 0: until their first Update arrives, the server cannot tell.
    one, other = two_tastes(seed=0), two_tastes(seed=1)
    settings = {"clients_per_round": 2, "triples": 1, "pi": 0.5}
    first, second = recorded(one, **settings)[0], recorded(other, **settings)[0]
    first_broadcast, second_broadcast = first.traffic[0], second.traffic[0]
    np.testing.assert_array_equal(first_broadcast.vectors, second_broadcast.vectors)
    np.testing.assert_array_equal(first_broadcast.biases, second_broadcast.biases)
    for number in range(30):
        np.testing.assert_array_equal(first.choose(number), second.choose(number))


def test_every_broadcast_is_the_first_model_plus_the_updates_before_it():
    data = random_world()
    fleet, shared = recorded(data, clients_per_round=3, triples=2, pi=0.5)
    established = federation(data, clients_per_round=3, triples=2, pi=0.5)
    vectors, biases = established.item_vectors[:, :4].astype(float), established.item_biases.astype(float)
    for message in fleet.traffic:
        if isinstance(message, FPLModel):
            np.testing.assert_allclose(message.vectors, vectors, atol=1e-6)
            np.testing.assert_allclose(message.biases, biases, atol=1e-6)
        else:
            vectors[message.items] += 0.05 * message.vectors
            biases[message.items] += 0.05 * message.biases
    np.testing.assert_allclose(shared.vectors, vectors, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["as-in-code", "as-printed"])
def test_about_a_share_of_pi_of_the_positives_leaves(mask):
    fleet, _ = recorded(random_world(), rounds=60, pi=0.3, mask=mask, clients_per_round="all", triples=1)
    sent = np.mean([np.any(update.biases > 0) for update in updates_of(fleet)])
    assert sent == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 720))


@pytest.mark.parametrize("mask", ["as-in-code", "as-printed"])
def test_each_user_is_held_to_their_own_pi(mask):
    data = random_world()
    pi = np.where(np.arange(data.n_users) < 6, 0.0, 1.0)
    fleet, _ = recorded(data, pi=pi, mask=mask, clients_per_round="all", triples=2)
    for number, update in enumerate(updates_of(fleet)):
        assert np.any(update.biases > 0) == (number % data.n_users >= 6)


def test_a_client_that_drops_out_has_learnt_but_sent_nothing():
    data = random_world()
    fleet, shared = recorded(data, dropout=1.0, clients_per_round="all", triples=2)
    established = federation(data, dropout=1.0, clients_per_round="all", triples=2)
    assert not updates_of(fleet)
    np.testing.assert_array_equal(shared.vectors, established.item_vectors[:, :4])
    assert not np.allclose(fleet.fleet.vectors[0], established.user_vectors[0, :4])
