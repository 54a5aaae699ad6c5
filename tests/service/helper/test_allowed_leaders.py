"""A helper serves the leaders that its operator has allowed, and each has its own share of its time."""

import asyncio
import json

import pytest
from tests.commands import refused, succeeded
from tests.service.federations import refusal, small_world, stored
from tests.service.helper.helpers import Leader, Played, ThreadedHelper, helping, in_round

from federank.errors import LeaderNotAllowed, SettingError
from federank.secagg.keys import fingerprint, new_private_key, public_key_of
from federank.service.helper.service import MOST_QUEUED_SECONDS, FairShare, price
from federank.service.helper.store import allow_leader, remove_leader
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.http.responses import Refusal
from federank.service.server.secure_config import SecaggSpec

CLOSED = {"any_leader": False}


async def registration(client, private):
    told = (await client.get("/identity")).json()
    leader = Leader(client, bytes.fromhex(told["key"]), private)
    return leader, await leader.post("/federations", leader.config.to_bytes())


async def test_leaders_must_be_allowed(store, tmp_path):
    """Any number of self-signed registrations leaves the helper empty, and an allowed leader gets in."""
    async with helping(store, tmp_path, most_federations=2, **CLOSED) as (service, client):
        for _ in range(5):
            _, answer = await registration(client, new_private_key())
            assert refusal(answer) == (403, "not-allowed")
        assert stored(store, "SELECT COUNT(*) FROM federations") == [(0,)]
        private = new_private_key()
        known = fingerprint(public_key_of(private))
        await service.ask(lambda connection: allow_leader(connection, known, "film club", ""))
        leader, answer = await registration(client, private)
        assert answer.status_code == 201
        await leader.offer(0)
        await service.ask(lambda connection: remove_leader(connection, known))
        assert (await leader.ask_offer(1)).json()["error"] == "not-allowed"
        assert (await leader.get(0, "offer")).status_code == 200  # what was published stays


async def test_copies_of_a_report_are_refused(sqlite_store, tmp_path):
    async with in_round(sqlite_store, tmp_path, noise=0) as (leader, played):
        assert refusal(await leader.prepare(0, [played.reports[0]] * 500)) == (422, "malformed")


def test_work_is_priced_by_length():
    assert price(4_000_000, is_checked=True) > 100 * price(1000, is_checked=True)
    assert price(78_000, is_checked=True) > price(78_000, is_checked=False)


async def test_fair_share_of_leaders():
    """One leader has ten slices waiting; another one's first slice does not wait for them."""
    share, order = FairShare(1), []

    async def slices(leader, count):
        for _ in range(count):
            await share.acquire(leader)
            order.append(leader)
            await asyncio.sleep(0)
            share.release(leader, 1.0)

    await share.acquire("early")
    tasks = [asyncio.create_task(slices("greedy", 10)), asyncio.create_task(slices("modest", 3))]
    await asyncio.sleep(0)
    share.release("early", 1.0)
    await asyncio.gather(*tasks)
    assert order[:6].count("modest") == 3


async def test_queue_of_each_leader_is_bounded():
    share = FairShare(1)
    share.admit("greedy", MOST_QUEUED_SECONDS)  # however long, the first is taken
    with pytest.raises(Refusal):
        share.admit("greedy", 1.0)
    share.admit("modest", 1.0)
    share.done("greedy", MOST_QUEUED_SECONDS)
    share.admit("greedy", 1.0)


async def test_large_requests_are_answered_in_slices(sqlite_store, tmp_path, monkeypatch):
    monkeypatch.setattr("federank.service.helper.service.SLICE_SECONDS", 0.0)
    async with helping(sqlite_store, tmp_path) as (service, client):
        leader = await Leader.of(client, noise=0)
        played = Played(await leader.offer(0))
        assert (await leader.prepare(0, played.reports)).json() == {"stands": "11111"}
        first = await leader.answer(0, played.reports)
        assert first.status_code == 200
        assert (await leader.answer(0, played.reports)).content == first.content
        used = service.metrics.text({}).decode()
        assert f'federank_helper_work_seconds_total{{leader="{fingerprint(leader.config.leader_public())}"}}' in used


def test_refused_leader_keeps_its_key(tmp_path):
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    with ThreadedHelper(tmp_path, **CLOSED) as helper:
        sums = SecaggSpec(helper=helper.origin, sigma=0.0, least_cohort=3)
        spec = FederationSpec(data=small_world, source="small", method="frugal", sums=sums, settings={"min_support": 1})
        keys = []
        for _ in range(2):
            with pytest.raises(LeaderNotAllowed) as refusal:
                open_store(store, spec)
            keys.append(str(refusal.value).split("yet: ")[1].split(".")[0])
        assert keys[0] == keys[1]
        succeeded("helper", "allow", keys[0], "--store", helper.store, "--name", "club")
        assert open_store(store, spec) is not None


def test_operator_allows_lists_and_removes(tmp_path):
    store = tmp_path / "helper.db"
    key, shown = "00112233445566778899aabbccddeeff", "0011 2233 4455 6677 8899 aabb ccdd eeff"
    for words in ((key, "--name", "club"), (shown,)):
        succeeded("helper", "allow", *words, "--store", store)
    listed = json.loads(succeeded("helper", "--store", store, "list", "--json").stdout)
    assert [(one["fingerprint"], one["name"]) for one in listed] == [(shown, "club")]
    succeeded("helper", "remove", key, "--store", store)
    for words in (("remove", key), ("allow", "12 34")):
        assert isinstance(refused("helper", *words, "--store", store), SettingError)
