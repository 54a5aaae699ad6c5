"""What a federation survives: a worker that is killed, a database that is away, a full disk, and wrong clocks."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from functools import partial

import httpx
import pytest
from tests.service.federations import (
    ONE,
    PATIENT,
    Device,
    Served,
    assert_recomputed,
    establish_small,
    eventually,
    refusal,
    serving,
    some_update,
    stored,
)
from tests.service.postgres import PostgreSQL


@pytest.mark.slow
def test_worker_takes_over_when_the_leading_one_is_killed(postgresql_server, tmp_path):
    store = postgresql_server.database()
    establish_small(store, {"target": 1, "over_selection": 1.0} | PATIENT)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    first = Served(store, "--rehearsal", "--keep-updates", folder=folders[0]).until_ready()
    second = Served(store, "--rehearsal", "--keep-updates", folder=folders[1]).until_ready()
    try:
        asyncio.run(_take_part(first.address, second.address, 1))
        assert "leads" in [line["event"] for line in first.lines()]
        assert "leads" not in [line["event"] for line in second.lines()]
        first.kill()
        asyncio.run(_take_part(second.address, second.address, 2))
        assert "leads" in [line["event"] for line in second.lines()]
        assert stored(store, "SELECT COUNT(*) FROM rounds WHERE state = 'aggregated'") == [(2,)]
    finally:
        second.stop()


async def has_version(client, version):
    return (await client.get("/api/v1/status")).json()["version"] == version


async def _take_part(works_at, uploads_at, version):
    """Work from one worker, upload to another, and see the version at both."""
    async with (
        httpx.AsyncClient(base_url=works_at, timeout=60) as one,
        httpx.AsyncClient(base_url=uploads_at, timeout=60) as two,
    ):
        device = await Device.enrolled(one)
        ticket = await device.ticket()
        device.client = two
        assert (await device.send(ticket, some_update(version))).status_code == 201
        for client in (one, two):
            await eventually(partial(has_version, client, version))


async def is_answered(running, status):
    return (await running.client.get("/ready")).status_code == status


@pytest.mark.slow
async def test_database_that_is_away_loses_nothing(postgresql):
    server = PostgreSQL(postgresql)
    server.start()
    try:
        store = server.database()
        async with serving(store, {"target": 4} | PATIENT, {"keep_updates": True}) as running:
            devices = await running.devices(4)
            tickets = [await device.ticket() for device in devices]
            await devices[0].upload(some_update(0))
            server.stop()
            for place in (1, 2):
                answer = await devices[place].send(tickets[place], some_update(place))
                assert refusal(answer) == (503, "away")
                assert int(answer.headers["Retry-After"]) >= 1
            assert (await running.client.get("/api/v1/model")).status_code == 200, "what is known is still published"
            await eventually(partial(is_answered, running, 503))
            assert (await running.client.get("/health")).status_code == 200
            server.start()
            for place in (1, 2, 3):
                while (answer := await devices[place].send(tickets[place], some_update(place))).status_code == 503:
                    await asyncio.sleep(0.05)
                assert answer.status_code == 201, answer.text
            await running.version(1)
            assert_recomputed(store, running.service.latest.model)
            assert stored(store, "SELECT reports FROM rounds WHERE number = 0") == [(4,)]
            assert (await running.client.get("/ready")).status_code == 200
    finally:
        server.remove()


FULL_DISK = """
import asyncio, io, os, resource, signal, sys
from federank.service.server.logs import Log
from tests.service.federations import WAITS, refusal, serving, some_update
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def main(path):
    lines = io.StringIO()
    rounds, trust = {"target": 100000, "deadline": 600.0}, {"keep_updates": True}
    async with serving(f"sqlite:///{path}", rounds, trust, log=Log(lines)) as running:
        device = await running.device()
        ticket = await device.ticket()
        others = await running.devices(60)
        tickets = [await other.ticket() for other in others]
        most = max(os.path.getsize(path), os.path.getsize(f"{path}-wal")) + 300_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        accepted = refused = 0
        for seed, (other, its) in enumerate(zip(others, tickets)):
            answer = await other.send(its, some_update(seed, rows=8))
            accepted += answer.status_code == 201
            refused += answer.status_code == 503
            assert answer.status_code in (201, 503), answer.text
        health = (await running.client.get("/health")).status_code
        ready = await running.client.get("/ready")
        assert refusal(ready) == (503, "full"), ready.text
        assert '"event": "disk full"' in lines.getvalue(), lines.getvalue()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for _ in range(WAITS):
            answer = await device.send(ticket, some_update(9999))
            if answer.status_code == 201:
                break
            await asyncio.sleep(0.1)
        assert (await running.client.get("/ready")).status_code == 200
        print(accepted, refused, health, answer.status_code)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
def test_full_disk_refuses_uploads_and_keeps_those_it_has(tmp_path):
    """The limit on a file's size stands for a disk without room; it is lifted at the end, as if room had been made."""
    path = tmp_path / "federation.sqlite"
    run = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    accepted, refused, health, last = map(int, run.stdout.split())
    assert accepted > 0
    assert refused > 0
    assert (health, last) == (200, 201)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT COUNT(*) FROM uploads").fetchone() == (accepted + 1,)
    connection.close()


async def test_jumps_of_the_wall_clock_change_nothing(sqlite_store, monkeypatch):
    """The wall clock jumps by years in both directions: rounds and limits go on, since only spans are measured."""
    async with serving(sqlite_store, ONE) as running:
        real = time.time
        for jump in (0.0, 3e8, -3e8):
            monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
            before = running.service.latest.aggregated
            device = await running.device()
            headers = {"Date": "Thu, 01 Jan 1970 00:00:00 GMT", "If-Modified-Since": "Fri, 31 Dec 2100 23:59:59 GMT"}
            assert (await device.send(await device.ticket(), some_update(1), **headers)).status_code == 201
            await running.version(before + 1)
            assert (await running.client.get("/api/v1/model", headers=headers)).status_code == 200
