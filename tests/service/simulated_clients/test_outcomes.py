"""Simulated clients in rounds that are open, discarded or of another season, and what cannot be played."""

import asyncio
import threading
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from tests.commands import refused, run
from tests.service.client.homes import two_servers
from tests.service.client.worlds import scripted_federation
from tests.service.federations import Served, small_world, stored, wait_until
from tests.service.simulated_clients.test_frugal import MESSAGES
from tests.service.simulated_clients.worlds import fetched, play, written

import federank as fr
from federank.service.simulated_clients import rehearsal
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.simulated_clients.rehearsal import MOST_RELEASED


def test_outcome_is_asked_for_until_the_round_ends():
    with scripted_federation(MESSAGES) as federation:
        federation.outcomes = ["waiting"] * 3
        tally = play(federation)
        asked = [path.rpartition("/")[2].partition("?")[0] for _, path in federation.asked]
        first, second = (place for place, path in enumerate(asked) if path == "update")
        assert asked[first:second].count("outcome") == 4
        assert asked[second:].count("outcome") == 1
        assert (tally.interactions, tally.counts["discarded"]) == (MESSAGES, 0)


def test_waits_grow_after_discarded_rounds(monkeypatch):
    waits, sleep = [], asyncio.sleep

    async def noted(seconds):
        waits.append(seconds)
        await sleep(0.001)

    monkeypatch.setattr(rehearsal.asyncio, "sleep", noted)
    with scripted_federation(MESSAGES) as federation:
        federation.outcomes = ["abandoned"] * MESSAGES
        tally = play(federation)
    assert (tally.interactions, tally.counts["discarded"]) == (MESSAGES, MESSAGES), "the server has read them"
    assert [seconds for seconds in waits if seconds >= rehearsal.FIRST_PAUSE][:2] == [0.2, 0.4]


def test_one_upload_per_period(monkeypatch):
    slept, sleep, monotonic = [0.0], asyncio.sleep, time.monotonic

    async def skip(seconds):
        slept[0] += seconds
        await sleep(0)

    monkeypatch.setattr(rehearsal.asyncio, "sleep", skip)
    monkeypatch.setattr(rehearsal, "time", SimpleNamespace(monotonic=lambda: monotonic() + slept[0]))
    with scripted_federation(MESSAGES) as federation:
        federation.upload_period = 3600
        tally = play(federation)
    assert tally.interactions == MESSAGES
    assert slept[0] >= 3600 * (MESSAGES - 1)


@pytest.mark.slow
def test_discarded_uploads_in_no_sum_are_given_back(tmp_path, monkeypatch):
    """Two clients can never make a cohort of three: both go on until they have been given back often enough."""
    monkeypatch.setattr(rehearsal, "FIRST_PAUSE", 0.01)
    rounds = {"target": 3, "minimum": 3, "deadline": 1.0}
    with two_servers(tmp_path, rounds=rounds, messages=2) as (leader, _):
        plan = Plan(address=leader.address)
        tally = rehearse(Rehearsal(plan=plan, data=small_world(), specs={"pi": 1.0}), 1).tally
        assert tally.interactions == tally.counts["discarded"] == 2 * (MOST_RELEASED + 2)
        assert stored(leader.store, "SELECT invitations FROM clients") == [(0,), (0,)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpl", "frugal", "fedmf"])
def test_simulated_clients_continue_in_a_season(tmp_path, method):
    data = fr.city(30, 40, 300, seed=1)
    known = data.item_ids.tolist()[:30]  # ten begin while clients take part, and the first ends
    written(data.take(data.items < 30), tmp_path)
    flags = ("--data", "data.csv", "--method", method, "--target", "10", "--rehearsal", "--quiet", "--factors", "4")
    flags += ("--min-support", "1") if method == "frugal" else ()
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    with Served(store, *flags, folder=tmp_path) as server:
        items = [{"id": str(item)} for item in data.item_ids.tolist()[1:]]

        def operate():
            headers = {"Authorization": f"Bearer {server.token}"}
            with httpx.Client(base_url=f"{server.admin_address}/admin/api/v1", headers=headers) as operator:
                wait_until(lambda: operator.get("/versions").json()["version"] >= 2)
                answer = operator.post("/seasons", json={"items": items})
                assert answer.status_code == 201, answer.text

        operator = threading.Thread(target=operate)
        operator.start()
        played = rehearse(Rehearsal(plan=Plan(address=server.address), rounds=9, data=data, specs={"pi": 1.0}))
        operator.join()
        federation, model = fetched(server.address)
    assert (federation.info.season, federation.info.n_items) == (2, 40)
    assert (federation.ids[0], federation.ids[1]) == ("", str(known[1]))
    assert played.tally.counts["season"] == 1
    assert played.tally.rounds >= 9
    assert np.abs(model.vectors[30:]).max() > 0, "clients who have the new items were heard"


def complaint(*words):
    return str(refused("client", "simulate", *words))


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("--rounds", 0), "--rounds"),
        (("--seconds", -1), "--seconds"),
        (("--rounds", 1, "--vanish", 2), "--vanish"),
        (("--rounds", 1, "--users", 0), "--users"),
        (("--rounds", 1, "--processes", 0), "--processes"),
    ],
)
def test_wrong_flags_are_refused(words, flag):
    answer = run("client", "simulate", "--server", "http://127.0.0.1:1", *words)
    assert (answer.exit_code, flag in answer.stderr) == (2, True)


@pytest.mark.parametrize(("rows", "named"), [("1,a\n1,b\n2,c", "data"), ("1,101\n1,102\n2,103", "2")])
def test_other_catalogues_and_too_few_users_are_refused(federation, tmp_path, rows, named):
    (tmp_path / "data.csv").write_text(f"user,item\n{rows}\n")
    words = ("--server", federation.address, "--data", tmp_path / "data.csv", "--rounds", 1, "--users", 3)
    assert named in complaint(*words)
