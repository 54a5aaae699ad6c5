"""Simulated clients of Frugal send their messages, and a real server learns what the simulation learns."""

import asyncio

import httpx
import numpy as np
import pytest
from tests.service.client.worlds import FACTORS, ITEMS, in_json, scripted_federation, served, squares_rows
from tests.service.federations import wait_until
from tests.service.simulated_clients.worlds import devices_of, fetched, play, written
from tests.squares_worlds import lone_method, read_broadcast, read_update, update_of

import federank as fr
from federank.errors import SettingError
from federank.federation.wire import values
from federank.service.client.federation import read_rows
from federank.service.client.http import Client
from federank.service.simulated_clients.methods import Models, Plan, SimulatedClients
from federank.service.simulated_clients.processes import Rehearsal, fetch_federation, rehearse
from federank.service.simulated_clients.rehearsal import Fleet

MESSAGES = 2
FRUGAL = ("--data", "data.csv", "--method", "frugal", "--min-support", 1, "--factors", 8)


@pytest.fixture
def federation():
    with scripted_federation(MESSAGES) as federation:
        yield federation


@pytest.mark.parametrize(
    "specs", [{}, {"pi": 0.5}, {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 1.0}, {"budget": 2}]
)
def test_simulated_client_sends_the_methods_update(federation, specs):
    info, devices = devices_of(federation, **specs)
    content = squares_rows(range(ITEMS), 0, 0)
    model = Models(info).receive(None, read_rows(content, info))
    broadcast = read_broadcast(content, FACTORS, ITEMS)
    recipe = lone_method(ITEMS, **info.settings.public_settings())
    for user in devices.participants.tolist():
        expected = update_of(recipe, broadcast, devices._shared.of(user))
        sent = read_update(devices.message(user, 0, model), FACTORS, ITEMS)
        for one, other in zip(values(sent).values(), values(expected).values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
    if "budget" in specs:
        assert (devices._shared.sizes[devices.participants] == 2).all()


@pytest.mark.parametrize("specs", [{"sharing": "all"}, {"basis": "history"}])
def test_policies_of_many_uploads_are_refused(federation, specs):
    with pytest.raises(SettingError, match="basis"):
        devices_of(federation, **specs)


def test_simulated_clients_end_when_their_messages_are_sent(federation):
    info, devices = devices_of(federation)
    users = devices.participants[:1].tolist()  # each of its uploads makes a version, so it can serve one at a time
    tally = asyncio.run(Fleet(Plan(address=federation.address), devices, Models(info), users).play())
    assert tally.interactions == len(federation.uploads) == MESSAGES * len(users)
    assert not any(devices.may_take_part(user) for user in users)


def test_client_that_is_done_leaves_and_the_next_joins(federation):
    info, devices = devices_of(federation)
    first, *others = devices.participants[:3].tolist()
    fleet = Fleet(Plan(address=federation.address), devices, Models(info), [first], successors=others)
    tally = asyncio.run(fleet.play())
    assert tally.interactions == len(federation.uploads) == 3 * MESSAGES
    assert not any(devices.may_take_part(user) for user in (first, *others))
    asked = [method for method, path in federation.asked if path.startswith("/api/v1/clients")]
    assert asked == ["POST", "DELETE"] * 3, "one at a time, and the last leaves at the end"


@pytest.mark.slow
def test_no_upload_is_withdrawn_with_a_client_that_leaves(tmp_path):
    data = fr.load(written(fr.city(people=30, places=80, checkins=1000), tmp_path))
    rounds = ("--target", 4, "--minimum", 4, "--over-selection", 1, "--deadline", 60)
    with served(tmp_path, *FRUGAL, "--messages", 2, *rounds) as address:
        with Client(address) as client:
            info, ids = fetch_federation(client)
        devices = SimulatedClients(info, ids, data, 1, {})
        users = devices.participants[:20].tolist()
        plan = Plan(address=address, last_version=9)
        tally = asyncio.run(Fleet(plan, devices, Models(info), users[:6], successors=users[6:]).play())
        wait_until(lambda: not httpx.get(f"{address}/api/v1/status").json()["clients"])
        status = httpx.get(f"{address}/api/v1/status").json()
    assert (status["version"], status["rounds_abandoned"], status["clients"]) == (9, 0, 0)
    assert tally.interactions == 9 * 4, "more than the twelve uploads of the first six"


def test_client_without_invitations_takes_no_part(federation):
    federation.fault("GET", "/work", *[in_json({"error": "spent", "message": "Invited twice."}, 409)] * 2)
    assert play(federation, [0, 1]).interactions == 0


@pytest.mark.slow
@pytest.mark.parametrize("specs", [{}, {"pi": 0.5, "sharing": "fixed-subset"}], ids=["everything", "half"])
def test_federation_of_all_clients_learns_the_simulations_model(tmp_path, specs):
    data = fr.load(written(fr.city(people=60, places=80, checkins=1500), tmp_path))
    rounds = ("--target", data.n_users, "--minimum", data.n_users)
    with served(tmp_path, *FRUGAL, "--messages", 3, *rounds) as address:
        played = rehearse(Rehearsal(plan=Plan(address=address), data=data, specs=specs))
        _, model = fetched(address)
    simulated = fr.Frugal(min_support=1, messages=3, factors=8, seed=1, **specs).fit(data)
    assert (model.version, played.tally.interactions) == (3, 3 * data.n_users)
    assert model.overall["regulariser"][0] == pytest.approx(simulated.regulariser, rel=1e-3)
    np.testing.assert_allclose(model.tables["weights"], simulated.item_weights, rtol=1e-3)
    # Vectors may be turned or mirrored by the last bits of the sums; what they score is the same.
    scores = simulated.item_vectors @ simulated.item_vectors.T
    np.testing.assert_allclose(model.vectors @ model.vectors.T, scores, atol=0.02 * np.abs(scores).max())
