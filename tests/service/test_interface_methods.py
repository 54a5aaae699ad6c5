"""The documentation's example method is registered, simulated, audited, and served to real clients over HTTP."""

import numpy as np
import pytest
from tests.federation.conftest import example
from tests.service.client.homes import all_take_part, leading, published, secure_home
from tests.service.federations import PATIENT, establish_in, newest, small_world

import federank as fr
from federank import extensions
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.method import configuration
from federank.methods.fpl.method import FPL
from federank.methods.model_folder import load_model
from federank.service.client.federation import fetch_info
from federank.service.client.http import Client
from federank.service.client.owner import recommend
from federank.service.client.store import ClientStore
from federank.service.operator import recommender_of
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.secure_config import SecaggSpec
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.verification import Servers, verify

CLIENTS = 3


@pytest.fixture
def gradients(monkeypatch):
    kind = example("Gradients")
    monkeypatch.setitem(extensions._registered["methods"], kind.name, kind)
    return kind


def established(store, method, sums=None, trained=None, clients=CLIENTS):
    """A federation of a method in a store."""
    rounds = {"target": clients, "minimum": clients, "over_selection": 1.0} | PATIENT
    establish_in(store, method, SERVER_METHODS[method.name], rounds, sums=sums, trained=trained)
    return store


@pytest.mark.slow
def test_it_is_served_with_plain_uploads(gradients, tmp_path, sqlite_store):
    method = gradients(factors=4)
    store = established(sqlite_store, method)
    with leading(store) as leader:
        homes = [secure_home(leader, tmp_path, number) for number in range(CLIENTS)]
        for version in (1, 2):
            assert all_take_part(homes) == [1] * CLIENTS
            model = published(leader, version)
    first = method.resolve(fr.DataSummary(len(model.vectors))).initial_state()
    assert not np.allclose(model.vectors, first.vectors)
    np.testing.assert_array_equal(model.vectors, newest(store).vectors)
    for home in homes:
        ledger = home.read(lambda store: store.ledger())
        liked = home.read(lambda store: store.profile())
        assert set(ledger.really_liked().tolist()) == set(liked.tolist())
        assert len(home.read(lambda store: recommend(store, 3))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gradients", "fpl"])
def test_it_is_served_under_secure_aggregation_and_verified(gradients, name, tmp_path, sqlite_store, helper):
    spec = SecaggSpec(helper=helper.origin, sigma=0.05, least_cohort=CLIENTS)
    settings = {"factors": 4, "clip": 20.0, "uploads_per_client": 2}
    method = gradients(**settings) if name == "gradients" else FPL(triples=3, **settings)
    with leading(established(sqlite_store, method, spec)) as leader:
        homes = [secure_home(leader, tmp_path, number) for number in range(CLIENTS)]
        for version in (1, 2):
            assert all_take_part(homes) == [1] * CLIENTS
            published(leader, version)
        found = verify(Servers(leader.address, helper.origin))
        assert (found.versions, found.recomputed, found.messages) == (2, 2, 2 * CLIENTS)
        with Client(leader.address) as client:
            info = fetch_info(client)
    assert (info.is_summed, info.settings.uploads, info.settings.clip) == (True, "secure", 20.0)
    assert [home.read(ClientStore.ledger).spent for home in homes] == [2] * CLIENTS


def test_secure_aggregation_needs_a_clip(gradients, sqlite_store):
    spec = SecaggSpec(helper="http://127.0.0.1:1", sigma=0.0, least_cohort=CLIENTS)
    with pytest.raises(SettingError, match="clip"):
        established(sqlite_store, gradients(), spec)


@pytest.mark.slow
def test_simulated_clients_learn_what_the_simulation_learns(gradients, sqlite_store):
    data, method = small_world(), gradients(factors=4)
    expected = method.fit(data, rounds=2)
    users = int((expected.trained > 0).sum())
    with leading(established(sqlite_store, method, clients=users)) as leader:
        rehearse(Rehearsal(plan=Plan(address=leader.address), data=data, rounds=2, seed=1, specs={}), 1)
        model = published(leader, 2)
    np.testing.assert_allclose(model.vectors, expected.broadcast.vectors, atol=1e-5)


def test_a_federation_starts_from_a_trained_model_and_is_exported_as_one(gradients, tmp_path, sqlite_store):
    data = small_world()
    trained = gradients(factors=4).fit(data, rounds=2)
    trained.save(tmp_path / "model")
    store = established(sqlite_store, gradients(), trained=load_model(tmp_path / "model"))
    model = newest(store)
    np.testing.assert_array_equal(model.vectors, trained.broadcast.vectors)
    about = {"method": "gradients", "name": "small", "version": 0, "settings": configuration(trained.method)}
    items = [{"id": str(item), "title": "", "categories": []} for item in data.item_ids.tolist()]
    exported = recommender_of(about, dict(wire.values(trained.state)), items)
    np.testing.assert_array_equal(exported.broadcast.vectors, trained.broadcast.vectors)
    assert len(fr.enrol(exported, exported.item_ids[:2].tolist()).recommend(2)) == 2
