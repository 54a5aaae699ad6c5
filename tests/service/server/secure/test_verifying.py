"""`federank audit verify` recomputes every version from what was published, and detects what does not fit."""

import asyncio
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from tests.commands import run
from tests.service.federations import opened, serving
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import cohort, establish_sums, federation

from federank.errors import BadMessage, NoAnswer
from federank.secagg.exchange import Terms, read_record, sign_record
from federank.service import verification as verifying
from federank.service.helper.service import open_helper
from federank.service.seasons import InTotal
from federank.service.server.http.app import public_app
from federank.service.server.http.listening import ConnectionLimits, bind, uvicorn_server
from federank.service.server.logs import Log
from federank.service.server.model_versions import EncodedRows
from federank.service.server.seasons import SeasonSpec, propose
from federank.service.server.secure_config import get_agreement
from federank.service.server.store import secure as store
from federank.service.server.store.versions import jump_ahead
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow


def change(store, *statements):
    """Change a server's store behind its back."""
    with opened(store) as connection, connection.transaction():
        for statement in statements:
            connection.run(statement)


class Published:
    """A federation of two versions, its leader on a port of this machine."""

    def __init__(self, helper, running, versions=2):
        self.helper, self.running, self.versions = helper, running, versions

    async def __aenter__(self):
        devices = await self.running.devices(3)
        for version in range(1, self.versions + 1):
            await cohort(devices)
            await self.running.version(version)
        self.socket = bind("127.0.0.1", 0)
        limits = ConnectionLimits(header_timeout=10, reading_timeout=30)
        self.server = uvicorn_server(public_app(self.running.service), limits)
        self.task = asyncio.create_task(self.server.serve(sockets=[self.socket]))
        self.leader = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.should_exit = True
        await self.task
        self.socket.close()

    async def verify(self, **changes):
        lines = []
        servers = Servers(**({"leader": self.leader, "helper": self.helper.origin} | changes))
        return await asyncio.to_thread(verify, servers, lines.append), lines


async def test_every_version_is_recomputed_to_the_last_bit(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both, Published(*both) as published:
        found, lines = await published.verify()
        assert (found.versions, found.recomputed, found.messages, found.abandoned) == (2, 2, 6, 0)
        assert (found.restores, found.findings) == ((), ())
        assert found.config == both[1].service.config.sums.name
        assert [line.split(":")[0] for line in lines[2:]] == ["version 1", "version 2"]


@pytest.mark.parametrize(
    ("server", "statement"),
    [
        ("leader", "UPDATE sums SET noisy = helper_sum WHERE round = 1"),
        ("helper", "UPDATE rounds SET total = (SELECT total FROM rounds WHERE number = 0) WHERE number = 1"),
        ("leader", "UPDATE sums SET record = helper_record WHERE round = 0"),
        ("helper", "UPDATE rounds SET record = offer WHERE number = 0"),
        ("leader", "UPDATE sums SET offer = (SELECT offer FROM sums WHERE round = 0) WHERE round = 1"),
        ("leader", "UPDATE metadata SET value = x'7b7d' WHERE name = 'sums settings'"),
    ],
    ids=["sum", "helper's sum", "record", "helper's record", "offer", "settings"],
)
async def test_later_changes_are_detected(sqlite_store, tmp_path, server, statement):
    async with (
        federation(tmp_path, sqlite_store, sigma=1.0) as (helper, running),
        Published(helper, running) as published,
    ):
        change(sqlite_store if server == "leader" else helper.store, statement)
        if "settings" in statement:
            config = running.service.config
            other = config._replace(sums=config.sums._replace(settings=b"{}"))
            object.__setattr__(running.service, "config", other)
        with pytest.raises(BadMessage):
            await published.verify()


async def test_attack_lying_about_how_many_messages_a_sum_has(sqlite_store, tmp_path):
    """A leader signs a record of one message more: the helper has counted them, and its record says otherwise."""
    async with federation(tmp_path, sqlite_store) as both, Published(*both) as published:
        agreement = both[1].service.config.sums
        with opened(sqlite_store) as connection:
            record = read_record(store.sum_row(connection, 1).record, agreement.config.leader_public())
            forged = sign_record(agreement.private, replace(record, messages=record.messages + 1))
            connection.run("UPDATE sums SET record = ? WHERE round = 1", forged)
        with pytest.raises(BadMessage, match=r"\b4\b.*\b3\b"):
            await published.verify()


async def test_step_that_does_not_follow_is_detected(sqlite_store, tmp_path, monkeypatch):
    async with federation(tmp_path, sqlite_store, sigma=0.05) as both, Published(*both) as published:
        real = verifying.centred
        monkeypatch.setattr(verifying, "centred", lambda total: real(total) + np.int32(500))
        with pytest.raises(BadMessage, match="follow"):
            await published.verify()


async def test_another_helper_is_detected(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as both, Published(*both) as published:
        real = published.helper.service.helper.identities
        store, own = f"sqlite:///{tmp_path / 'other.sqlite'}", published.helper
        other = open_helper(store, own.origin, tmp_path / "others", own.settings, Log(None))
        kept = list(real)
        real[:] = other.helper.identities
        with pytest.raises(BadMessage, match="signed"):
            await published.verify()
        real[:] = kept
        other.stop()
        with pytest.raises(NoAnswer):
            await published.verify(helper="http://127.0.0.1:9")


async def test_versions_before_a_new_identity_are_recomputed(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as both, Published(*both) as published:
        await published.running.open_round(2)  # its offer has the old signature
        await asyncio.to_thread(published.helper.renew_identity)
        await cohort(await published.running.devices(3))
        await published.running.version(3)
        found, _ = await published.verify()
        assert found.versions == 3


async def test_chain_of_versions_is_checked_without_noise(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as both, Published(*both) as published:
        found, _ = await published.verify()
        assert (found.versions, found.recomputed, found.findings) == (2, 0, ())
        agreement = both[1].service.config.sums
        with opened(sqlite_store) as connection:
            record = read_record(store.sum_row(connection, 0).record, agreement.config.leader_public())
            other = sign_record(agreement.private, replace(record, model="00" * 32))
            connection.run("UPDATE sums SET record = ? WHERE round = 0", other)
        with pytest.raises(BadMessage):
            await published.verify()


async def test_season_without_noise_is_in_the_chain(sqlite_store, tmp_path):
    """Its first version is not published: the first round config names it, and no later one may name another."""
    async with federation(tmp_path, sqlite_store) as both, Published(*both) as published:
        running = both[1]
        assert (await running.ask("POST", "seasons", json={"uploads": 3}))[0] == 201
        await running.open_round(3)
        assert (await published.verify())[0].findings == ()
        assert (await running.ask("POST", "seasons/end"))[0] == 200
        assert (await published.verify())[0].findings == ()
        with opened(sqlite_store) as connection:
            agreement = get_agreement(connection)
        line, length = agreement.line(), agreement.config.length_of(0)
        terms = Terms(version=3, model="00" * 32, length=length, stage=0, seconds=600)
        await asyncio.to_thread(line.offer, agreement.name, 9, terms)
        line.close()
        findings = (await published.verify())[0].findings
        assert len(findings) == 1
        assert "00" * 32 in findings[0]


async def test_hidden_round_is_detected(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both, Published(*both) as published:
        change(sqlite_store, "DELETE FROM sums WHERE round = 1", "DELETE FROM rounds WHERE number = 1")
        found, _ = await published.verify()
        assert found.versions == 1
        assert len(found.findings) >= 2  # the round, the version that followed from it, and the next round
        assert "Round 1" in found.findings[0]
        assert any("Version 2" in finding for finding in found.findings[1:])


async def test_hidden_season_is_detected(sqlite_store, tmp_path):
    """The leader has another season signed, asks for a round of it, and lists the first season alone."""
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both, Published(*both) as published:
        with opened(sqlite_store) as connection:
            hidden = propose(connection, SeasonSpec(until="2999-12-31")).agreement
        line, length = hidden.line(), hidden.config.length_of(0)
        terms = Terms(version=9, model="00" * 32, length=length, stage=0, seconds=600)
        await asyncio.to_thread(line.offer, hidden.name, 9, terms)
        line.close()
        found, _ = await published.verify()
        assert len(found.seasons) == len(found.findings) == 1
        assert hidden.name in found.findings[0]


async def test_model_outside_the_chain_is_named(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both, Published(*both) as published:
        latest = both[1].service.latest
        content = latest.model.content
        other = content._replace(tables={**content.tables, "vectors": content.tables["vectors"] + np.float32(1)})
        latest.model = latest.model._replace(content=other)
        both[1].service.encoded = EncodedRows(both[1].service.config.encode)
        found, _ = await published.verify()
        assert len(found.findings) == 1
        assert "Version 2" in found.findings[0]


@pytest.mark.parametrize("sigma", [0.0, 1.0])
async def test_restored_leader_is_accepted_and_its_losses_named(tmp_path, sigma):
    """The documented restore: a backup of while round 1 was open, put back in round 2, started with --restored."""
    leader, backup = tmp_path / "leader.sqlite", tmp_path / "backup.sqlite"
    with ThreadedHelper(tmp_path) as helper:
        token = establish_sums(f"sqlite:///{leader}", helper.origin, sigma=sigma)
        async with serving(f"sqlite:///{leader}", token=token) as running:
            devices = await running.devices(3)
            for version in (1, 2):
                if version == 2:
                    await running.open_round(1)
                    with sqlite3.connect(leader) as one, sqlite3.connect(backup) as other:
                        one.backup(other)
                await cohort(devices)
                await running.version(version)
            await running.open_round(2)
        for part in ("", "-wal", "-shm"):
            (tmp_path / f"leader.sqlite{part}").unlink(missing_ok=True)
        backup.rename(leader)
        with opened(f"sqlite:///{leader}") as connection:
            version = jump_ahead(connection)
        async with serving(f"sqlite:///{leader}", token=token) as running, Published(helper, running, 0) as published:
            await cohort(await running.devices(3))
            await running.version(version + 1)
            found, _ = await published.verify()
    assert (found.versions, found.recomputed, found.findings) == (2, 2 if sigma else 0, ())
    assert [restore.version for restore in found.restores] == [version]
    assert found.restores[0].lost == (2,)


async def test_rounds_lost_by_the_helper_are_read_from_the_leader(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both, Published(*both) as published:
        change(f"sqlite:///{tmp_path / 'helper.sqlite'}", "DELETE FROM rounds WHERE number >= 1")
        found, lines = await published.verify()
        assert (found.versions, found.recomputed, found.findings) == (2, 2, ())
        assert "1" in lines[-1]


def test_findings_end_the_command_with_2(monkeypatch):
    total = InTotal(1, 5, None, None, None)
    result = verifying.Verified("ab", "cd", (), total, 1, 1, 3, 0, (), ("Round 1 is hidden.",))
    monkeypatch.setattr(verifying, "verify", lambda *_: result)
    done = run("audit", "verify", "https://leader.example", "--helper", "https://helper.example")
    assert (done.exit_code, "Round 1 is hidden." in done.output) == (2, True)
