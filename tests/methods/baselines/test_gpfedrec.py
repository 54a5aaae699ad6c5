"""GPFedRec: a server that links similar clients and answers each one differently."""

from dataclasses import replace

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import SettingError
from federank.federation.method import DataSummary
from federank.methods.baselines.gpfedrec import GPFedRec, NamedVectors
from federank.methods.federated_model import model_class
from federank.service.server.methods import server_method
from federank.simulation.options import TrainingOptions

METHOD = GPFedRec(factors=1).resolve(DataSummary(n_items=2, n_clients=4))


def after(uploads):
    """The server's state after a round with these item vectors, by user."""
    sums = METHOD.empty()
    for user, vectors in uploads.items():
        METHOD.add(sums, NamedVectors(np.float32(vectors).reshape(2, 1), np.array([user])))
    return METHOD.initial_state(), METHOD.server_update(METHOD.initial_state(), sums)


def test_a_clients_table_is_the_mean_of_those_whose_vectors_are_alike():
    before, state = after({0: [1, 0], 1: [3, 0], 2: [0, 5]})
    np.testing.assert_allclose(state.own[:, :3, 0].T, [[2, 0], [2, 0], [0, 5]], atol=1e-6)
    np.testing.assert_array_equal(state.own[:, 3], before.own[:, 3])  # it did not take part
    np.testing.assert_allclose(state.vectors, state.own.mean(axis=1), rtol=1e-6)


def test_each_client_downloads_its_own_table_and_a_new_one_the_mean():
    _, state = after({0: [1, 0], 1: [3, 0], 2: [0, 5]})
    broadcast = METHOD.broadcast(state)
    assert METHOD.broadcast_for(2, broadcast, state).own.ravel().tolist() == [0, 5]
    np.testing.assert_array_equal(broadcast.own, state.vectors)


def test_a_strong_regulariser_leaves_a_client_with_the_table_of_the_server():
    method = replace(METHOD, regulariser=1e6)
    state = method.initial_state()
    own = replace(method.broadcast(state), own=np.float32([[7], [8]]))
    result = method.client_update(fr.Client(1, 0, 0, np.array([1], np.int32)), own)
    np.testing.assert_allclose(result.update.vectors, own.own, atol=1e-6)


def test_servers_and_clusters_have_one_broadcast_for_all():
    world = two_tastes()
    with pytest.raises(SettingError, match="gpfedrec"):
        server_method("gpfedrec").settle(GPFedRec(), world, None)
    with pytest.raises(SettingError, match="cluster"):
        model_class(GPFedRec)(rounds=1).fit(world, training_options=TrainingOptions(engine="cluster", cluster="local"))
