"""After any crash of a helper a round's key is gone before an answer leaves, and nothing is answered twice."""

import asyncio
import shutil
import ssl
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.secagg.worlds import LENGTH
from tests.service.federations import refusal
from tests.service.helper.helpers import HelperProcess, Leader, Played, helping, in_round, terms

from federank.errors import SettingError
from federank.secagg.exchange import decode_answer
from federank.secagg.keys import new_private_key, public_key_of
from federank.secagg.ring import centred
from federank.secagg.round_config import read_offer
from federank.service.helper import rounds, store
from federank.service.helper.store import RoundKeys, refuse_a_disk


class Crash(BaseException):
    """The process is gone from here on."""


def crash(*_, **__):
    raise Crash


STEPS = {
    "before the key is kept": ("offer", RoundKeys, "put", "before"),
    "after the key is kept, before the offer is": ("offer", store, "add_round", "before"),
    "before the answer is committed": ("answer", store, "end_round", "before"),
    "after the commit, before the key is destroyed": ("answer", RoundKeys, "destroy", "before"),
    "after the key is destroyed, before anything is said": ("answer", RoundKeys, "destroy", "after"),
    "while it abandons": ("abandon", RoundKeys, "destroy", "before"),
}


@pytest.mark.parametrize("step", STEPS)
async def test_crash_at_any_step_leaves_a_round_that_ends_once(sqlite_store, tmp_path, monkeypatch, step):
    act, place, name, when = STEPS[step]
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client, noise=4096)
        played = Played(await leader.offer(0)) if act != "offer" else None
    with monkeypatch.context() as patched:
        real = getattr(place, name)

        def real_then_crash(*values, **named):
            real(*values, **named)
            raise Crash

        patched.setattr(place, name, crash if when == "before" else real_then_crash)
        async with helping(sqlite_store, tmp_path) as (service, _):

            def ask(connection):
                about = (connection, service.helper, leader.config, 0)
                if act == "offer":
                    return rounds.offer(*about, terms().to_bytes())
                return rounds.answer(*about, played.reports) if act == "answer" else rounds.abandon(*about)

            with pytest.raises(Crash):
                await service.ask(ask)
    async with helping(sqlite_store, tmp_path) as (service, client):
        leader.client = client
        if act == "offer":
            played = Played(await leader.offer(0))
            assert len(list((tmp_path / "keys").iterdir())) == 1
        if act == "abandon":
            assert (await leader.answer(0, played.reports)).status_code == 409
            assert (await leader.abandon(0)).status_code == 200
        else:
            first, again = await leader.answer(0, played.reports), await leader.answer(0, played.reports)
            assert first.status_code == 200
            assert first.content == again.content
            assert (await leader.answer(0, played.reports[1:])).status_code == 409
        assert not list((tmp_path / "keys").iterdir())


async def test_attack_a_helper_restored_from_a_backup(sqlite_store, tmp_path):
    """The store from before the answer comes back; the key does not, so that no other set can be answered."""
    kept = tmp_path / "federation.sqlite"
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client, noise=4096)
        played = Played(await leader.offer(0))
    shutil.copy(kept, tmp_path / "backup")
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader.client = client
        assert (await leader.answer(0, played.reports)).status_code == 200
    for beside in tmp_path.glob("federation.sqlite*"):
        beside.unlink()
    shutil.copy(tmp_path / "backup", kept)
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader.client = client
        for reports in (played.reports, played.reports[1:]):
            assert refusal(await leader.answer(0, reports)) == (409, "ended")
        # The round has ended, and the next one begins.
        await leader.offer(1)


async def test_round_without_its_key_is_abandoned(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client)
        played = Played(await leader.offer(0))
        for file in (tmp_path / "keys").iterdir():
            file.unlink()
        assert (await leader.prepare(0, played.reports)).status_code == 409
        listed = await client.get(f"/federations/{leader.config.digest().hex()}/rounds")
        assert listed.json()["rounds"] == [{"round": 0, "state": "abandoned"}]
        await leader.offer(1)


async def test_concurrent_requests_get_one_answer(store, tmp_path):
    async with in_round(store, tmp_path, noise=4096) as (leader, played):
        sets = [played.reports, played.reports[1:], played.reports, played.reports[::-1], played.reports[:-1]]
        answers = await asyncio.gather(*(leader.answer(0, reports) for reports in sets))
        given = {answer.content for answer in answers if answer.status_code == 200}
        assert len(given) == 1
        assert {answer.status_code for answer in answers} == {200, 409}


async def test_two_processes_on_one_store_give_one_answer(store, tmp_path):
    async with helping(store, tmp_path) as (_, client), helping(store, tmp_path) as (_, other):
        leader = await Leader.of(client, noise=4096)
        offers = await asyncio.gather(leader.ask_offer(0), _with(leader, other).ask_offer(0))
        assert len({offer.content for offer in offers if offer.status_code == 200}) == 1
        played = Played(await leader.offer(0))
        both = (leader, _with(leader, other))
        one, two = await asyncio.gather(*(each.answer(0, played.reports) for each in both))
        assert (one.status_code, one.content) == (200, two.content)


@pytest.mark.parametrize("moment", ["the round is looked up", "its key is looked for"])
async def test_overtaken_process_gives_the_same_answer(store, tmp_path, monkeypatch, moment):
    """The other process answers, and destroys the key, right after this one has found the round open."""
    async with helping(store, tmp_path) as (service, client), helping(store, tmp_path) as (other, _):
        leader = await Leader.of(client, noise=4096)
        played = Played(await leader.offer(0))

        def answer_of(helper_service):
            with helper_service.database.connection() as connection:
                return rounds.answer(connection, helper_service.helper, leader.config, 0, played.reports)

        at, name = {
            "the round is looked up": (rounds, "_end_what_is_lost"),
            "its key is looked for": (RoundKeys, "get"),
        }[moment]
        real, overtaken = getattr(at, name), []

        def overtaken_then_real(*values):
            if not overtaken:
                overtaken.append(None)
                overtaken[0] = answer_of(other)
            return real(*values)

        monkeypatch.setattr(at, name, overtaken_then_real)
        assert answer_of(service) == overtaken[0]
        # And the next round begins, although its asker may have found the last one open and its key gone.
        await leader.offer(1)


def _with(leader, client):
    same = object.__new__(Leader)
    same.__dict__.update(leader.__dict__ | {"client": client})
    return same


def test_destroyed_key_is_overwritten(tmp_path):
    keys, private = RoundKeys(tmp_path / "keys"), new_private_key()
    keys.put(public_key_of(private), private)
    [file] = (tmp_path / "keys").iterdir()
    file.write_bytes(bytes(len(private)))
    assert keys.get(public_key_of(private)) is None, "it is being destroyed"
    file.write_bytes(private)
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    with file.open("rb") as held:
        keys.destroy(public_key_of(private))
        assert held.read() == bytes(32)  # overwritten before it was taken away
    assert keys.get(public_key_of(private)) is None
    keys.destroy(public_key_of(private))


def test_keys_are_kept_in_memory_alone(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/sda1 / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n")
    refuse_a_disk(Path("/dev/shm/keys"), mounts)
    for table in (mounts, tmp_path / "nothing"):
        with pytest.raises(SettingError):
            refuse_a_disk(Path("/var/keys"), table)


@pytest.mark.slow
async def test_killed_helper_answers_every_round_once(tmp_path, memory):
    """SIGKILL at random moments; requests are repeated."""
    process = HelperProcess(tmp_path, memory).start()
    try:
        async with httpx.AsyncClient(base_url=process.address, timeout=30) as client:
            leader = await Leader.of(client, noise=0)
            for number in range(6):

                async def stubborn(act, *values, number=number):
                    while True:
                        try:
                            answer = await act(number, *values)
                            assert answer.status_code == 200, answer.text
                            return answer
                        except httpx.TransportError:
                            await asyncio.to_thread(process.start)

                async def killing(act, *values, after):
                    if process.process.poll() is not None:  # killed after its last answer
                        await asyncio.to_thread(process.start)
                    asking = asyncio.create_task(stubborn(act, *values))
                    await asyncio.sleep(after)
                    process.kill()
                    return await asking

                offered = await killing(leader.ask_offer, after=0.001 * number)
                played = Played(read_offer(offered.content, leader.key), people=40, seed=number)
                answer = await killing(leader.answer, played.reports, after=0.004 * number)
                _, masks = decode_answer(answer.content, LENGTH)
                np.testing.assert_array_equal(centred(played.shares + masks), played.messages.sum(axis=0))
                assert (await stubborn(leader.answer, played.reports)).content == answer.content
                assert not list(memory.iterdir())
    finally:
        process.kill()


@pytest.mark.slow
def test_helper_command(tmp_path, memory):
    process = HelperProcess(tmp_path, memory, "--self-signed").start()
    try:
        trusting = ssl.create_default_context(cafile=tmp_path / "federank-cert.pem")
        identity = httpx.get(f"{process.address}/identity", verify=trusting).json()
        assert identity["fingerprint"] in "".join(process.said)
        assert identity["origin"] == process.address
    finally:
        code, log = process.stop()
    assert code == 0
    assert '"event": "stopped"' in log
    assert (tmp_path / "helper.db").stat().st_mode & 0o777 == 0o600
