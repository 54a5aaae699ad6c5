"""A fleet: virtual devices that do what the protocol says, and a real server that learns what a simulation learns."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.service.client.worlds import FACTORS, ITEMS, rows, served
from tests.worlds import decode_update

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import BadAnswer, NoAnswer
from federank.federation import method as interface
from federank.federation.client import Model
from federank.methods.fpl.method import FPLModel
from federank.methods.fpl.simulation import play_compiled
from federank.privacy.policy import Policy, default_basis, shared_profile
from federank.service.client.federation import fetch_model, read_info, read_rows
from federank.service.client.http import Client
from federank.service.simulated_clients import rehearsal as fleet_module
from federank.service.simulated_clients.connection import Connection
from federank.service.simulated_clients.methods import ATTEMPTS, Models, Plan, SimulatedClients, Tally
from federank.service.simulated_clients.processes import Rehearsal, fetch_federation, recommendations, rehearse
from federank.service.simulated_clients.rehearsal import Fleet

# Engines and server add the same numbers in another order; factors are of size one.
TOLERANCE = 2e-5


def people(users=5):
    """Some people of the scripted federation's catalogue."""
    rng = np.random.default_rng(1)
    pairs = [(user, 100 + int(item)) for user in range(users) for item in rng.choice(ITEMS, 4, replace=False)]
    pairs += [(0, 100 + item) for item in range(ITEMS - 1)]  # so that every item but one is known to the data
    return Interactions.from_columns([user for user, _ in pairs], [item for _, item in pairs])


def info_of(federation):
    return read_info(json.dumps(federation.info()).encode())


def ids_of(federation):
    return [item["id"] for item in federation.catalogue()["items"]]


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
def test_a_virtual_client_sends_what_the_protocol_computes(federation, specs):
    info, data = info_of(federation), people()
    devices = SimulatedClients(info, ids_of(federation), data, 7, specs)
    told = read_rows(rows(range(ITEMS), 0, 0), info_of(federation))
    model, received = Models(info).receive(None, told), told.model
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
    info, data = info_of(federation), people()
    ids = ids_of(federation)
    devices = SimulatedClients(info, ids[::-1], data, 7, {})
    for user in range(data.n_users):
        own = {str(data.item_ids[item]) for item in data.profiles.of(user)}
        assert {ids[::-1][item] for item in devices.profiles.of(user)} == own
        assert (np.diff(devices.profiles.of(user)) > 0).all()


def test_a_server_that_shows_two_clients_different_models_is_found_out(federation):
    models = Models(info_of(federation))
    first = models.receive(None, read_rows(rows(range(ITEMS), 0, 0), info_of(federation)))
    models.receive(first, read_rows(rows([2, 3], 1, 1, seed=1), info_of(federation)))
    with pytest.raises(BadAnswer, match="different models"):
        models.receive(None, read_rows(rows(range(ITEMS), 1, 1, seed=2), info_of(federation)))


def test_rows_that_changed_are_laid_over_those_that_a_client_has(federation):
    models = Models(info_of(federation))
    before = models.receive(None, read_rows(rows(range(ITEMS), 0, 0), info_of(federation)))
    changed = read_rows(rows([2, 3], 1, 1, seed=1), info_of(federation))
    after = models.receive(before, changed)
    np.testing.assert_array_equal(after.vectors[[2, 3], :FACTORS], changed.model.vectors)
    np.testing.assert_array_equal(np.delete(after.vectors, [2, 3], 0), np.delete(before.vectors, [2, 3], 0))
    assert models.known(before, 1) is after
    assert models.known(None, 1) is None


def test_a_client_that_lags_far_behind_keeps_the_model_it_has(federation):
    models = Models(info_of(federation))
    first = models.receive(None, read_rows(rows(range(ITEMS), 0, 0), info_of(federation)))
    newest = first
    for version in range(1, Models.MOST + 5):
        newest = models.receive(newest, read_rows(rows([2], version, version), info_of(federation)))
    last = newest.version
    late = models.receive(first, read_rows(rows([2], last, last), info_of(federation)))
    assert late is newest


def ask(address, *requests, most_bytes=1 << 20):
    async def all_of_them():
        connection = Connection(address)
        connection.most_bytes = most_bytes
        try:
            return [await connection.request(*request) for request in requests], connection
        finally:
            connection.close()

    return asyncio.run(all_of_them())


def test_a_connection_is_kept_for_many_requests_and_counts_its_bytes(federation):
    replies, connection = ask(
        federation.address, ("GET", "/federation"), ("POST", "/devices", b"{}"), ("GET", "/nothing")
    )
    assert [reply.status for reply in replies] == [200, 201, 404]
    assert json.loads(replies[0].content)["items"] == ITEMS
    assert connection.received > sum(len(reply.content) for reply in replies)
    assert connection.sent > 0


def test_a_cut_connection_is_no_answer_and_the_next_request_makes_a_new_one(federation):
    federation.fault("GET", "/federation", "cut")

    async def cut_and_again():
        connection = Connection(federation.address)
        with pytest.raises(NoAnswer):
            await connection.request("GET", "/federation")
        answer = await connection.request("GET", "/federation")
        connection.close()
        return answer.status

    assert asyncio.run(cut_and_again()) == 200


def test_an_answer_that_is_too_long_or_no_http_is_no_answer(federation):
    federation.fault("GET", "/model", (200, {}, bytes(5000)))
    with pytest.raises(NoAnswer, match="more than"):
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

    with pytest.raises(NoAnswer, match="HTTP"):
        asyncio.run(talk_to_nonsense())


def older_work(federation, version):
    return 200, {}, json.dumps(federation.ticket() | {"ticket": "older", "round": version, "version": version}).encode()


def play_a_fleet(federation, rounds, **options):
    devices = SimulatedClients(info_of(federation), ids_of(federation), people(), 1, {"pi": 1.0})
    plan = Plan(address=federation.address, last_version=federation.version + rounds)
    return asyncio.run(Fleet(plan, devices, Models(info_of(federation)), [1], **options).play())


def test_a_round_that_a_lagging_worker_offers_is_passed_over(federation, monkeypatch):
    monkeypatch.setattr(fleet_module, "SECONDS_UNTIL_ANOTHER", 0.01)
    federation.version = 5
    federation.fault(
        "GET", "/work", (200, {}, json.dumps(federation.ticket()).encode()), *[older_work(federation, 4)] * 3
    )
    tally = play_a_fleet(federation, rounds=3)
    assert tally.counts["older round"] == 3
    assert tally.interactions == 3
    assert not any(ticket == "older" for ticket, _ in federation.uploads)


def test_a_server_that_offers_nothing_but_older_rounds_is_found_out(federation, monkeypatch):
    monkeypatch.setattr(fleet_module, "SECONDS_UNTIL_ANOTHER", 0.01)
    federation.version = 5
    federation.fault(
        "GET", "/work", (200, {}, json.dumps(federation.ticket()).encode()), *[older_work(federation, 4)] * 50
    )
    with pytest.raises(BadAnswer, match="never go back"):
        play_a_fleet(federation, rounds=30)


def test_simulated_clients_wait_for_a_rate_limit_as_long_as_it_takes(federation, monkeypatch):
    monkeypatch.setattr(fleet_module, "FIRST_PAUSE", 0.001)
    body = json.dumps({"error": "too-many", "message": "Too many requests."}).encode()
    limits = [(429, {"Retry-After": "0.01"}, body)] * (ATTEMPTS + 2)
    federation.fault("POST", "/devices", *limits)
    notes = []
    tally = play_a_fleet(federation, rounds=2, note=notes.append)
    assert tally.interactions == 2
    assert tally.counts["busy 429"] == len(limits)
    assert len(notes) == 1


def test_a_refused_enrolment_ends_simulated_clients(federation):
    federation.fault("POST", "/devices", (403, {}, b'{"error": "not-invited", "message": "No."}'))
    with pytest.raises(BadAnswer, match="403"):
        play_a_fleet(federation, rounds=2)


def test_counts_of_processes_that_run_at_once_add_up():
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


def written(data, folder):
    """A data set as the file that `serve` and `fleet` read."""
    path = folder / "city.tsv"
    columns = (data.user_ids[data.users], data.item_ids[data.items], data.times)
    lines = ["user\titem\ttime", *("\t".join(map(str, row)) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def shared_model(address, ca=None):
    with Client(address, ca=ca) as client:
        federation = fetch_federation(client)
        version, tables, _ = fetch_model(client, federation.info)
        return federation, version, tables["vectors"], tables["biases"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "specs",
    [{"pi": 0.5}, {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 2.0}],
    ids=["all", "randomized-response"],
)
def test_a_federation_where_every_client_answers_learns_what_the_simulation_learns(tmp_path, specs):
    data = small_city()
    path = written(data, tmp_path)
    options = ("--data", path, "--target", data.n_users, "--minimum", data.n_users, "--over-selection", 1)
    with served(tmp_path, *options, "--triples", 7) as address:
        federation, *_ = shared_model(address)
        rehearsal = Rehearsal(plan=Plan(address=address), rounds=6, data=data, specs=specs)
        played = rehearse(rehearsal)
        _, version, vectors, biases = shared_model(address)
    simulated = SimulatedClients(federation.info, federation.ids, data, 1, specs).kernels.federation
    first = simulated.item_vectors.copy()
    play_compiled(simulated, 6)
    assert version == 6
    assert len(played.users) == played.tally.interactions / 6 == data.n_users
    np.testing.assert_allclose(vectors, simulated.item_vectors[:, :20], atol=TOLERANCE)
    np.testing.assert_allclose(biases, simulated.item_biases, atol=TOLERANCE)
    np.testing.assert_allclose(played.vectors, simulated.user_vectors[:, :20], atol=TOLERANCE)
    assert not np.allclose(first, simulated.item_vectors, atol=100 * TOLERANCE)


@pytest.mark.slow
def test_a_server_learns_over_tls_although_a_third_of_the_clients_vanish_in_every_round(tmp_path):
    data = small_city()
    path = written(data, tmp_path)
    options = ("--data", path, "--target", 20, "--minimum", 5, "--over-selection", 1.8, "--deadline", 3)
    with served(tmp_path, *options, "--triples", 7, "--self-signed") as address:
        plan = Plan(address=address, vanish=0.3)
        rehearsal = Rehearsal(plan=plan, rounds=5, data=data, specs={}, ca=str(tmp_path / "federank-cert.pem"))
        told = rehearse(rehearsal).tally.report()
        _, version, vectors, _ = shared_model(address, ca=rehearsal.ca)
        with pytest.raises(BadAnswer, match="cannot be trusted"):
            rehearse(replace(rehearsal, ca=None))
    assert version == 5
    assert told["not_counted"]["vanished"] > 0
    assert np.isfinite(vectors).all()


def fleet_of_processes(address, source, *options):
    command = [sys.executable, "-m", "federank", "client", "simulate", "--server", address, "--data", source, "--json"]
    done = subprocess.run([*command, *map(str, options)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def simulated_precision(address, split, rounds, clients, specs):
    """Precision at 10 of the compiled simulation of the same federation after the same number of rounds."""
    federation, *_ = shared_model(address)
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
def test_processes_of_simulated_clients_in_the_city_are_as_accurate_as_the_simulation(tmp_path):
    path = written(fr.city(people=100, places=120, checkins=2500), tmp_path)
    data = fr.load(path)
    split = fr.split_temporal(data, 0.2)
    options = ("--data", path, "--target", data.n_users, "--minimum", data.n_users, "--over-selection", 1)
    plain = ("--row-quantile", 1, "--move-quantile", 1)  # the simulation has no defences
    with served(tmp_path, *options, *plain, "--triples", 20) as address:
        told = fleet_of_processes(address, path, "--processes", 2, "--rounds", 10, "--test", 0.2, "--pi", 0.5)
        expected = simulated_precision(address, split, 10, data.n_users, {"pi": 0.5})
    assert told["devices"] == data.n_users
    assert told["accuracy"]["precision@10"] == pytest.approx(expected, abs=0.002)
    assert expected > 1.05 * popular_precision(split)
