"""Simulated clients of FPL send the method's updates, and a real server learns what the simulation learns."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.service.client.worlds import FACTORS, ITEMS, in_json, rows, served
from tests.service.simulated_clients.worlds import devices_of, fetched, ids_of, info_of, people, play, written
from tests.worlds import decode_update

import federank as fr
from federank.errors import BadAnswer, NoAnswer
from federank.federation import method as interface
from federank.federation.client import Model
from federank.methods.fpl.method import FPLModel
from federank.methods.fpl.simulation import play_compiled
from federank.privacy.policy import Policy, default_basis, shared_profile
from federank.service.client.federation import read_rows
from federank.service.simulated_clients import rehearsal
from federank.service.simulated_clients.connection import Connection
from federank.service.simulated_clients.methods import ATTEMPTS, Models, Plan, SimulatedClients, Tally
from federank.service.simulated_clients.processes import Rehearsal, recommendations, rehearse

# Engines and server add the same numbers in another order; factors are of size one.
TOLERANCE = 2e-5


@pytest.mark.parametrize(
    "specs",
    [
        {"pi": 1.0},
        {"pi": 0.4},
        {"pi": 0.4, "sharing": "fixed-subset"},
        {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 1.0},
        {"pi": 0.5, "sharing": "fixed-subset", "basis": "shared"},
    ],
)
def test_simulated_client_sends_the_methods_update(federation, specs):
    info, devices = devices_of(federation, **specs)
    sent = read_rows(rows(range(ITEMS), 0, 0), info)
    model, received = Models(info).receive(None, sent), sent.model
    broadcast = FPLModel(received.vectors, received.tables["biases"])
    policy = Policy(**{"sharing": "all", "basis": default_basis(specs.get("sharing", "all"))} | specs)
    for user in devices.participants.tolist():
        before = devices.vectors()[user].copy()
        taken = shared_profile(policy, 7, user, np.array(devices.profiles.of(user)), ITEMS)
        method = info.settings.chosen(policy, 1.0 if taken.lifelong else policy.pi)
        withheld = taken.profile[~taken.allowed]
        client = interface.Client(7, user, 3, taken.profile, state=interface.UserVector(before), withheld=withheld)
        expected = method.client_update(client, broadcast)
        sent = decode_update(devices.message(user, 3, model), FACTORS, ITEMS)
        np.testing.assert_array_equal(sent.items, expected.update.items)
        np.testing.assert_allclose(sent.vectors, expected.update.vectors, atol=1e-6)
        np.testing.assert_allclose(sent.biases, expected.update.biases, atol=1e-6)
        np.testing.assert_allclose(devices.vectors()[user], expected.state.vector, atol=1e-6)


def test_items_are_matched_to_the_catalogue_by_id(federation):
    info, data, ids = info_of(federation), people(seen=range(ITEMS - 1)), ids_of(federation)
    devices = SimulatedClients(info, ids[::-1], data, 7, {})
    for user in range(data.n_users):
        own = {str(data.item_ids[item]) for item in data.profiles.of(user)}
        assert {ids[::-1][item] for item in devices.profiles.of(user)} == own
        assert (np.diff(devices.profiles.of(user)) > 0).all()


@pytest.fixture
def received(federation):
    """Models that simulated clients have received, and a function that reads rows."""
    info = info_of(federation)
    return Models(info), lambda *given, **more: read_rows(rows(*given, **more), info)


def test_different_models_of_one_version_are_detected(received):
    models, read = received
    first = models.receive(None, read(range(ITEMS), 0, 0))
    models.receive(first, read([2, 3], 1, 1, seed=1))
    with pytest.raises(BadAnswer):
        models.receive(None, read(range(ITEMS), 1, 1, seed=2))


def test_changed_rows_replace_those_of_a_client(received):
    models, read = received
    before = models.receive(None, read(range(ITEMS), 0, 0))
    changed = read([2, 3], 1, 1, seed=1)
    after = models.receive(before, changed)
    np.testing.assert_array_equal(after.vectors[[2, 3], :FACTORS], changed.model.vectors)
    np.testing.assert_array_equal(np.delete(after.vectors, [2, 3], 0), np.delete(before.vectors, [2, 3], 0))
    assert models.known(before, 1) is after
    assert models.known(None, 1) is None


def test_client_that_lags_far_behind_gets_the_newest_model(received):
    models, read = received
    first = newest = models.receive(None, read(range(ITEMS), 0, 0))
    for version in range(1, Models.MOST + 5):
        newest = models.receive(newest, read([2], version, version))
    assert models.receive(first, read([2], newest.version, newest.version)) is newest


def ask(address, *requests, most_bytes=1 << 20):
    async def all_of_them():
        connection = Connection(address)
        connection.most_bytes = most_bytes
        try:
            return [await connection.request(*request) for request in requests], connection
        finally:
            connection.close()

    return asyncio.run(all_of_them())


def test_connection_is_kept_and_counts_its_bytes(federation):
    requests = ("GET", "/federation"), ("POST", "/clients", b"{}"), ("GET", "/nothing")
    replies, connection = ask(federation.address, *requests)
    assert [reply.status for reply in replies] == [200, 201, 404]
    assert json.loads(replies[0].content)["items"] == ITEMS
    assert connection.received > sum(len(reply.content) for reply in replies)
    assert connection.sent > 0


def test_cut_connection_is_opened_again(federation):
    federation.fault("GET", "/federation", "cut")

    async def cut_and_again():
        connection = Connection(federation.address)
        with pytest.raises(NoAnswer):
            await connection.request("GET", "/federation")
        answer = await connection.request("GET", "/federation")
        connection.close()
        return answer.status

    assert asyncio.run(cut_and_again()) == 200


def test_long_and_malformed_answers_are_refused(federation):
    federation.fault("GET", "/model", (200, {}, bytes(5000)))
    with pytest.raises(NoAnswer):
        ask(federation.address, ("GET", "/model"), most_bytes=4999)

    async def talk_to_nonsense():
        async def nonsense(reader, writer):
            await reader.readline()
            writer.write(b"hello\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
        connection = Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            await connection.request("GET", "/federation")
        finally:
            connection.close()
            server.close()
            await server.wait_closed()

    with pytest.raises(NoAnswer):
        asyncio.run(talk_to_nonsense())


def play_rounds(federation, rounds, **options):
    plan = Plan(address=federation.address, last_version=federation.version + rounds)
    return play(federation, [1], plan, specs={"pi": 1.0}, **options)


def offer_older_rounds(federation, monkeypatch, count):
    """After one round of version 5 the server offers rounds of version 4."""
    monkeypatch.setattr(rehearsal, "SECONDS_UNTIL_ANOTHER", 0.01)
    federation.version = 5
    older = in_json(federation.ticket() | {"ticket": "older", "round": 4, "version": 4})
    federation.fault("GET", "/work", in_json(federation.ticket()), *[older] * count)


def test_rounds_of_a_lagging_worker_are_skipped(federation, monkeypatch):
    offer_older_rounds(federation, monkeypatch, 3)
    tally = play_rounds(federation, rounds=3)
    assert tally.counts["older round"] == 3
    assert tally.interactions == 3
    assert not any(ticket == "older" for ticket, _ in federation.uploads)


def test_server_with_older_rounds_alone_is_detected(federation, monkeypatch):
    offer_older_rounds(federation, monkeypatch, 50)
    with pytest.raises(BadAnswer):
        play_rounds(federation, rounds=30)


def test_rate_limits_are_waited_for(federation, monkeypatch):
    monkeypatch.setattr(rehearsal, "FIRST_PAUSE", 0.001)
    limit = in_json({"error": "too-many", "message": "Too many requests."}, 429, **{"Retry-After": "0.01"})
    federation.fault("POST", "/clients", *[limit] * (ATTEMPTS + 2))
    notes = []
    tally = play_rounds(federation, rounds=2, note=notes.append)
    assert (tally.interactions, tally.counts["busy 429"]) == (2, ATTEMPTS + 2)
    assert len(notes) == 1


def test_refused_enrolment_ends_simulated_clients(federation):
    federation.fault("POST", "/clients", (403, {}, b'{"error": "not-invited", "message": "No."}'))
    with pytest.raises(BadAnswer, match="403"):
        play_rounds(federation, rounds=2)


def test_tallies_of_processes_add_up():
    one, other = Tally(seconds=2.0, interactions=10, rounds=3), Tally(seconds=2.1, interactions=11, rounds=3)
    one.took["task"], other.took["task"] = [0.1] * 10, [0.3] * 10
    one.counts["vanished"], other.counts["vanished"] = 1, 2
    one.merge(other)
    told = one.report()
    assert (told["interactions"], told["rounds"], told["seconds"]) == (21, 3, 2.1)
    assert told["interactions_per_s"] == 10.0
    assert told["task_ms"]["p50"] == 200.0
    assert told["not_counted"] == {"vanished": 3}


def small_city():
    return fr.city(people=40, places=60, checkins=600)


@pytest.mark.slow
@pytest.mark.parametrize(
    "specs",
    [{"pi": 0.5}, {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 2.0}],
    ids=["all", "randomized-response"],
)
def test_federation_of_all_clients_learns_the_simulations_model(tmp_path, specs):
    data = small_city()
    options = (
        "--data",
        written(data, tmp_path),
        "--target",
        data.n_users,
        "--minimum",
        data.n_users,
        "--over-selection",
        1,
    )
    with served(tmp_path, *options, "--triples", 7) as address:
        federation, *_ = fetched(address)
        played = rehearse(Rehearsal(plan=Plan(address=address), rounds=6, data=data, specs=specs))
        _, model = fetched(address)
    simulated = SimulatedClients(federation.info, federation.ids, data, 1, specs).kernels.federation
    first = simulated.item_vectors.copy()
    play_compiled(simulated, 6)
    assert model.version == 6
    assert len(played.users) == played.tally.interactions / 6 == data.n_users
    np.testing.assert_allclose(model.vectors, simulated.item_vectors[:, :20], atol=TOLERANCE)
    np.testing.assert_allclose(model.tables["biases"], simulated.item_biases, atol=TOLERANCE)
    np.testing.assert_allclose(played.vectors, simulated.user_vectors[:, :20], atol=TOLERANCE)
    assert not np.allclose(first, simulated.item_vectors, atol=100 * TOLERANCE)


@pytest.mark.slow
def test_server_over_tls_learns_although_clients_vanish(tmp_path):
    data = small_city()
    options = (
        "--data",
        written(data, tmp_path),
        "--target",
        20,
        "--minimum",
        5,
        "--over-selection",
        1.8,
        "--deadline",
        3,
    )
    with served(tmp_path, *options, "--triples", 7, "--self-signed") as address:
        plan, authority = Plan(address=address, vanish=0.3), str(tmp_path / "federank-cert.pem")
        played = Rehearsal(plan=plan, rounds=5, data=data, specs={}, ca=authority)
        tally = rehearse(played).tally
        _, model = fetched(address, ca=authority)
        with pytest.raises(BadAnswer):
            rehearse(replace(played, ca=None))
    assert model.version == 5
    assert tally.report()["not_counted"]["vanished"] > 0
    assert np.isfinite(model.vectors).all()


def fleet_of_processes(address, source, *options):
    command = [sys.executable, "-m", "federank", "client", "simulate", "--server", address, "--data", source, "--json"]
    done = subprocess.run([*command, *map(str, options)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def simulated_precision(address, split, rounds, clients, specs):
    """Precision at 10 of the compiled simulation of the same federation after the same number of rounds."""
    federation, *_ = fetched(address)
    rehearsal = Rehearsal(plan=Plan(address=address), data=split.train, specs=specs)
    simulated = SimulatedClients(federation.info, federation.ids, split.train, 1, specs).kernels.federation
    simulated.recipe = simulated.recipe._replace(clients_per_round=clients)
    play_compiled(simulated, rounds)
    model = Model(rounds, {"vectors": simulated.item_vectors[:, :20], "biases": simulated.item_biases})
    listed = recommendations(rehearsal, federation, model, simulated.user_vectors[:, :20], 10)
    return fr.evaluate(listed, split).means["precision@10"]


def popular_precision(split):
    return fr.evaluate(fr.MostPopular().fit(split.train), split).means["precision@10"]


@pytest.mark.slow
def test_processes_of_simulated_clients_are_as_accurate_as_the_simulation(tmp_path):
    path = written(fr.city(people=100, places=120, checkins=2500), tmp_path)
    data = fr.load(path)
    split = fr.split_temporal(data, 0.2)
    options = ("--data", path, "--target", data.n_users, "--minimum", data.n_users, "--over-selection", 1)
    plain = ("--row-quantile", 1, "--move-quantile", 1)  # the simulation has no defences
    with served(tmp_path, *options, *plain, "--triples", 20) as address:
        told = fleet_of_processes(address, path, "--processes", 2, "--rounds", 10, "--test", 0.2, "--pi", 0.5)
        expected = simulated_precision(address, split, 10, data.n_users, {"pi": 0.5})
    assert told["clients"] == data.n_users
    assert told["accuracy"]["precision@10"] == pytest.approx(expected, abs=0.002)
    assert expected > 1.05 * popular_precision(split)
