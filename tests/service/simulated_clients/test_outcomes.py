"""What simulated clients do about rounds that have not ended, and about discarded ones."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from tests.service.client.test_sums import two_servers
from tests.service.client.worlds import scripted_federation
from tests.service.federations import small_world, stored
from tests.service.simulated_clients.test_frugal import MESSAGES, devices_of

from federank.service.simulated_clients import rehearsal
from federank.service.simulated_clients.clients import Models
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.simulated_clients.rehearsal import MOST_RELEASED, Fleet, Plan


def play(federation):
    info, devices = devices_of(federation)
    users = devices.participants[:1].tolist()
    return asyncio.run(Fleet(Plan(address=federation.address), devices, Models(info), users).play())


def test_a_simulated_client_asks_until_its_round_has_ended():
    with scripted_federation(MESSAGES) as federation:
        federation.outcomes = ["waiting"] * 3
        tally = play(federation)
        asked = [path.rpartition("/")[2].partition("?")[0] for _, path in federation.asked]
        first, second = (place for place, path in enumerate(asked) if path == "update")
        assert asked[first:second].count("outcome") == 4
        assert asked[second:].count("outcome") == 1
        assert (tally.interactions, tally.counts["discarded"]) == (MESSAGES, 0)


def test_a_simulated_client_waits_longer_after_each_discarded_round(monkeypatch):
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


def test_a_simulated_client_uploads_once_per_period(monkeypatch):
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
def test_discarded_uploads_that_are_in_no_sum_are_given_back(tmp_path, monkeypatch):
    """Two clients can never make a cohort of three: both go on until they have been given back often enough."""
    monkeypatch.setattr(rehearsal, "FIRST_PAUSE", 0.01)
    rounds = {"target": 3, "minimum": 3, "deadline": 1.0}
    with two_servers(tmp_path, rounds=rounds, messages=2) as (leader, _):
        plan = Plan(address=leader.address, seconds=60)
        tally = rehearse(Rehearsal(plan=plan, data=small_world(), specs={"pi": 1.0}), 1).tally
        assert tally.interactions == tally.counts["discarded"] == 2 * (MOST_RELEASED + 2)
        assert stored(leader.store, "SELECT invitations FROM devices") == [(0,), (0,)]
