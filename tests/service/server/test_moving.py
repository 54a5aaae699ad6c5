"""Moving a federation from SQLite to PostgreSQL: completely or not at all, and it continues there."""

from pathlib import Path

import pytest
from tests.commands import refused, succeeded
from tests.service.federations import PATIENT, establish_small, opened, serving, some_update, stored
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import HISTORIES, establish_sums, take_part
from tests.service.server.secure.test_verifying import Published

from federank.errors import StoreError
from federank.service.server.store import schema
from federank.service.server.store.database import Database, LeaderLock
from federank.service.server.store.schema import TABLES, create_tables, move_store


def everything(address):
    return {
        table: sorted(repr([bytes(v) if isinstance(v, memoryview) else v for v in row]) for row in rows)
        for table in TABLES
        for rows in [stored(address, f"SELECT * FROM {table}")]
    }


def test_every_table_is_moved(sqlite_store):
    with opened(sqlite_store) as connection:
        create_tables(connection)
        names = {name for (name,) in connection.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names - {"store_format"} == set(TABLES)


@pytest.mark.slow
async def test_moved_federation_continues(sqlite_store, postgresql_server):
    rounds = {"target": 2, "over_selection": 1.0} | PATIENT
    async with serving(sqlite_store, rounds) as running:
        devices = await running.devices(3)
        for number in range(2):
            for device in devices[:2]:
                await device.upload(some_update(number))
            await running.version(number + 1)
        assert (await devices[2].take_part(some_update(7))).status_code == 201  # of a round that is under way
        token = running.token
    before, target = everything(sqlite_store), postgresql_server.database()
    succeeded("admin", "move-store", target, "--store", sqlite_store)
    assert everything(target) == before
    path = Path(sqlite_store.removeprefix("sqlite:///"))
    assert not path.exists()
    assert str(path) in str(refused("admin", "move-store", target, "--store", sqlite_store))
    path.with_name(f"{path.name}.moved").rename(path)
    refused("admin", "move-store", target, "--store", sqlite_store)  # the target has a federation
    assert path.exists()
    async with serving(target, rounds, token=token) as running:
        devices[0].client = running.client
        await devices[0].upload(some_update(8))
        await running.version(3)


@pytest.mark.slow
async def test_secure_aggregation_continues_in_its_round(sqlite_store, postgresql_server, tmp_path):
    with ThreadedHelper(tmp_path) as helper:
        token = establish_sums(sqlite_store, helper.origin, sigma=1.0)
        async with serving(sqlite_store, token=token) as running:
            clients = await running.devices(3)
            for one in zip(clients, HISTORIES, strict=False):
                await take_part(*one)
            await running.version(1)
            await take_part(clients[0], HISTORIES[0])
        target = postgresql_server.database()
        succeeded("admin", "move-store", target, "--store", sqlite_store)
        async with serving(target, token=token) as running, Published(helper, running, versions=0) as published:
            for client, history in zip(clients[1:], HISTORIES[1:], strict=False):
                client.client = running.client
                await take_part(client, history)
            await running.version(2)
            found, _ = await published.verify()
            assert (found.versions, found.recomputed, found.messages, found.findings) == (2, 2, 6, ())
            counts = stored(target, "SELECT invitations FROM clients WHERE invitations > 0")
            assert counts == [(2,)] * 3


@pytest.mark.slow
def test_copy_that_differs_is_not_kept(sqlite_store, postgresql_server, monkeypatch):
    establish_small(sqlite_store)
    before, target = everything(sqlite_store), postgresql_server.database()
    digests = iter(range(1000))
    monkeypatch.setattr(schema, "_table", lambda _, table, __: schema.Moved(table, 0, str(next(digests))))
    with pytest.raises(StoreError):
        move_store(sqlite_store, target)
    assert everything(sqlite_store) == before
    assert stored(target, "SELECT COUNT(*) FROM metadata") == [(0,)]
    monkeypatch.undo()
    move_store(sqlite_store, target)
    assert everything(target) == before


def test_store_that_cannot_be_moved_is_unchanged(sqlite_store, tmp_path):
    target = "postgresql://federank@127.0.0.1:9/federank"
    nowhere = f"sqlite:///{tmp_path / 'none'}"
    for source, to in ((target, sqlite_store), (sqlite_store, f"{sqlite_store}.other"), (nowhere, target)):
        refused("admin", "move-store", to, "--store", source)
    assert list(tmp_path.iterdir()) == []
    establish_small(sqlite_store)
    before = everything(sqlite_store)
    database = Database(sqlite_store)
    lock = LeaderLock(database)
    with database.connection() as connection:
        assert lock.acquire(connection)
    in_use = str(refused("admin", "move-store", target, "--store", sqlite_store))
    lock.release()
    assert in_use != str(refused("admin", "move-store", target, "--store", sqlite_store)), "no server is at the target"
    assert everything(sqlite_store) == before
