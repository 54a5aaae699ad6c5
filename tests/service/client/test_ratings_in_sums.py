"""Clients of ratings under secure aggregation: what leaves, and what is refused."""

import json
import threading

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.client.homes import leading
from tests.service.client.owner import complaint, told
from tests.service.federations import PATIENT, establish_in, stored

from federank.federation.method import Client as Simulated
from federank.federation.secure import secure_vector
from federank.methods.fedrec.method import PMF, RatingModel
from federank.secagg.ring import C_INT, centred
from federank.service.client.federation import fetch_info, fetch_model
from federank.service.client.http import Client
from federank.service.client.store import ClientStore
from federank.service.server import secure_rounds
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.secure_config import SecaggSpec
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow

ITEMS, FACTORS, CLIP, MESSAGES = 24, 4, 64.0, 2
SETTINGS = {"factors": FACTORS, "initial_range": 0.5, "seed": 3, "uploads_per_client": MESSAGES}
PEOPLE = {
    "one thing": {3: 4},
    "everything": {item: 1 + item % 5 for item in range(ITEMS)},
    "some": {0: 5, 2: 5, 1: 1, 7: 2},
}


@pytest.fixture
def servers(tmp_path, helper):
    address = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    rounds = {"target": 3, "minimum": 3, "over_selection": 1.0} | PATIENT
    sums = SecaggSpec(helper=helper.origin, sigma=0.0, least_cohort=3)
    establish_in(address, PMF(**SETTINGS), SERVER_METHODS["pmf"], rounds, two_opinions(40, ITEMS), sums=sums)
    with leading(address) as leader:
        yield leader, helper


def history(folder, name, stars):
    path = folder / f"{name}.csv"
    path.write_text("item,rating\n" + "".join(f"{item},{rating}\n" for item, rating in stars.items()))
    return path


def expected(store, stars, model):
    """What a device with these stars would send: gradients and counts, row by row."""
    with ClientStore(store) as kept:
        seed, user = kept.identity().seed, kept.identity().user
    method = PMF(**SETTINGS, n_items=ITEMS, learning_rate=0.2, filling="none", rho=0)
    items = np.array(sorted(stars), np.int32)
    ratings = np.array([stars[item] for item in items.tolist()], np.float32)
    broadcast = RatingModel(**model.tables, **model.overall)
    update = method.client_update(Simulated(seed, user, 0, items, ratings), broadcast).update
    return secure_vector(method, 0, update)


def test_sums_of_users_with_one_some_and_all_ratings(servers, tmp_path, monkeypatch):
    leader, helper = servers
    totals = []  # what the leader aggregates: without noise it keeps no sum
    monkeypatch.setattr(secure_rounds, "centred", lambda ring: totals.append(centred(ring)) or totals[-1])
    with Client(leader.address) as client:
        first = fetch_model(client, fetch_info(client))
    states = {name: tmp_path / f"{name}.sqlite" for name in PEOPLE}
    for name, stars in PEOPLE.items():
        place = ("--server", leader.address, "--profile", history(tmp_path, name, stars), "--state", states[name])
        assert f"{MESSAGES} uploads" in told(*place, "--rounds", 0).stderr
    wanted = sum(expected(states[name], stars, first) for name, stars in PEOPLE.items())
    for _ in range(MESSAGES):
        threads = [threading.Thread(target=told, args=("--state", state, "--rounds", 1)) for state in states.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = verify(Servers(leader.address, helper.origin))
    assert (found.versions, found.messages) == (MESSAGES, 3 * MESSAGES)
    total = totals[0] * (CLIP / C_INT)
    np.testing.assert_allclose(total, wanted, atol=3 * CLIP / C_INT + 1e-4)
    assert total.reshape(ITEMS, FACTORS + 1)[0, -1] == pytest.approx(2, abs=0.1), "two of them have rated item 0"

    some = states["some"]
    status = json.loads(told("status", "--json", "--state", some).stdout)
    assert (status["messages_sent"], status["messages_left"]) == (2, 0)
    shown = told("ledger", "--state", some).stdout
    assert "100.0%" in shown
    assert 1 <= float(told("predict", "20", "--state", some).stdout) <= 5
    kept = json.loads(told("ledger", "--json", "--state", some).stdout)
    assert [(message["number"], message["allowed"]) for message in kept["messages"]] == [(1, 2), (2, 2)]
    told("--state", some, "--rounds", 1)
    assert json.loads(told("status", "--json", "--state", some).stdout)["messages_sent"] == 2


@pytest.mark.parametrize(
    "choices",
    [("--filling", "hybrid", "--rho", "2"), ("--sharing", "randomized-response", "--item-epsilon", "1", "--pi", "0.5")],
)
def test_policies_of_plain_ratings_are_refused(servers, tmp_path, choices):
    leader, _ = servers
    profile, state = history(tmp_path, "one", {3: 4}), tmp_path / "one.sqlite"
    complaint("--server", leader.address, "--profile", profile, "--state", state, "--rounds", 0, *choices)
    assert not state.exists()
    assert stored(leader.store, "SELECT COUNT(*) FROM clients") == [(0,)]
