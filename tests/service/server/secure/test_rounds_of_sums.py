"""Rounds under secure aggregation end aggregated or discarded, and the server step is the simulation's."""

import asyncio
import io
from dataclasses import replace

import numpy as np
import pytest
from tests.service.federations import FRUGAL_SERVER, eventually, refusal, serving, small_world, stored
from tests.service.server.secure.federations import (
    HISTORIES,
    LEAST,
    assert_simulated,
    cohort,
    counted,
    establish_sums,
    federation,
    kept_model,
    prepared_upload,
    simulated,
    take_part,
    unchecked_upload,
)

from federank.errors import SettingError
from federank.methods.frugal.private_server import affordable
from federank.secagg.ring import implausible
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.logs import Log
from federank.service.server.secure_config import SecaggSpec, settings_from
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings


async def test_model_without_noise_is_the_simulations(store, tmp_path):
    async with federation(tmp_path, store) as (_, running):
        devices = await running.devices(len(HISTORIES))
        first = await cohort(devices[:3])
        await running.version(1)
        second = await cohort(devices[3:], HISTORIES[3:])
        await running.version(2)
    expected, found = simulated([first, second], 6), kept_model(store).content
    assert np.array_equal(found.tables["vectors"], expected.vectors)
    assert np.array_equal(found.tables["weights"], expected.weights)
    assert found.overall["regulariser"][0] == expected.regulariser
    assert found.state["received"][0] == 6


async def test_no_upload_is_kept(sqlite_store, tmp_path):
    """Once a share is added up its bytes are gone; and what the leader held before is uniform, whatever was in it."""
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        devices = await running.devices(4)
        await cohort(devices[:3])
        await eventually(lambda: stored(sqlite_store, "SELECT LENGTH(body) FROM uploads") == [(0,)] * 3)
        assert stored(sqlite_store, "SELECT COUNT(*) FROM reports WHERE stands = 1") == [(3,)]
        await take_part(devices[3], HISTORIES[3])
        await running.version(1)
    assert stored(sqlite_store, "SELECT COUNT(*) FROM reports") == [(0,)]


async def test_counted_share_stays_when_its_client_leaves(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        devices = await running.devices(3)
        first = await take_part(devices[0], HISTORIES[0])
        await counted(sqlite_store, 1)
        assert (await devices[0].leave()).status_code == 204
        rest = await cohort(devices[1:], HISTORIES[1:])
        await running.version(1)
    assert_simulated(sqlite_store, [[first, *rest]], 3)


async def test_rollback_is_refused_under_secure_aggregation(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        await cohort(await running.devices(3))
        await running.version(1)
        assert refusal(
            await running.admin.post("/admin/api/v1/rollback", headers=running.operator, json={"version": 0})
        ) == (409, "sums")
        assert running.service.latest.model.version == 1


async def test_noise_of_both_servers_is_on_the_published_sums(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        devices = await running.devices(3)
        messages = await cohort(devices)
        await running.version(1)
        leader = await running.client.get("/api/v1/sums/total?round=0")
        [(helper_sum,)] = stored(sqlite_store, "SELECT helper_sum FROM sums WHERE round = 0")
        words = np.frombuffer(leader.content, "<u4") + np.frombuffer(helper_sum, "<u4")
        noise = words.view(np.int32) - np.sum(messages, axis=0)
        assert 0.5 < noise.std() / (4096 * np.sqrt(2)) < 1.6


async def test_unknown_sum_is_not_published(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        assert refusal(await running.client.get("/api/v1/sums/total?round=0")) == (404, "unknown")


async def test_round_continues_when_the_helper_is_back(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        devices = await running.devices(3)
        first = await take_part(devices[0], HISTORIES[0])
        tickets = [await device.ticket() for device in devices[1:]]
        made = [await prepared_upload(*one) for one in zip(devices[1:], tickets, HISTORIES[1:], strict=False)]
        await asyncio.to_thread(helper.stop)
        for device, ticket, (_, body) in zip(devices[1:], tickets, made, strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.until(lambda view: view.round.state == "closed")
        await asyncio.to_thread(helper.start)
        await running.version(1)
    assert_simulated(sqlite_store, [[first, *(message for message, _ in made)]], 3)


async def test_lost_keys_of_the_helper_end_the_round(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        devices = await running.devices(3)
        await running.open_round()
        for key in (tmp_path / "keys").iterdir():
            key.unlink()
        ticket = await devices[0].ticket()
        _, body = await prepared_upload(devices[0], ticket, HISTORIES[0])
        assert (await devices[0].send(ticket, body)).status_code == 201
        await running.open_round(1)
        await cohort(devices)
        await running.version(1)
    states = stored(sqlite_store, "SELECT state FROM rounds ORDER BY number")
    assert states[:2] == [("abandoned",), ("aggregated",)]


async def test_cohort_with_too_few_valid_uploads_is_discarded(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        devices = await running.devices(3)
        await cohort(devices[:2])
        ticket = await devices[2].ticket()
        _, body = await prepared_upload(devices[2], ticket, HISTORIES[2])
        assert (await devices[2].send(ticket, body[:-1] + bytes([body[-1] ^ 1]))).status_code == 201
        await running.until(lambda view: view.abandoned == 1)
        await running.open_round(1)
        name = running.service.config.sums.name
        line = running.service.config.sums.line()
        states = await asyncio.to_thread(line.rounds, name)
        line.close()
        assert [number for number, state in states.items() if state == "open"] == [1]
    assert stored(sqlite_store, "SELECT COUNT(*) FROM versions WHERE version > 0") == [(0,)]
    assert len(list((helper.folder / "keys").iterdir())) == 1


async def test_malformed_uploads_are_refused(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        device = await running.device()
        ticket = await device.ticket()
        _, body = await prepared_upload(device, ticket, HISTORIES[0])
        for spoilt in (body[:-1], b"", bytes(len(body)), b"X" + body[1:]):
            assert (await device.send(ticket, spoilt)).status_code == 422
        assert (await device.send(ticket, body + b"\0")).status_code == 413
        assert (await device.send(ticket, body)).status_code == 201
        assert (await device.send(ticket, body)).status_code == 200  # idempotent
        _, other = await prepared_upload(device, ticket, HISTORIES[0])
        assert (await device.send(ticket, other)).status_code == 409


async def test_public_statements(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        info = await running.get("federation")
        assert (info["uploads"], info["method"]) == ("sums", "frugal-sums")  # no plain device takes part by mistake
        config = await running.get("sums/config")
        assert (config["helper_origin"], config["least_cohort"]) == (helper.origin, LEAST)
        assert config["helper_key"] == helper.service.helper.identity.public.hex()
        assert config["federation_id"] == info["federation_id"]
        settings = await running.client.get("/api/v1/sums/settings")
        assert settings_from(FRUGAL_SERVER.kind, settings.json()) == running.service.config.settings
        texts = (await running.client.get("/api/v1/sums/config")).text, settings.text
        assert (info["sums"]["config"], info["sums"]["settings"]) == texts
        assert (await running.client.get("/api/v1/sums/offer?round=7")).status_code == 404
        await running.open_round()
        assert (await running.client.get("/api/v1/sums/record?round=0")).status_code == 404
        listed = (await running.get("sums/rounds"))["rounds"]
        name = running.service.config.sums.name
        assert listed == [{"round": 0, "state": "open", "version": 0, "config": name}]


def test_wrong_terms_of_secure_aggregation_are_refused(helper, sqlite_store):
    sums = SecaggSpec(helper=helper.origin)
    spec = FederationSpec(data=small_world, source="small", method="frugal", sums=sums, settings={"min_support": 1})
    with pytest.raises(SettingError, match="least-cohort"):
        open_store(sqlite_store, replace(spec, rounds={"minimum": 3}))
    with pytest.raises(SettingError, match="clip"):
        open_store(sqlite_store, replace(spec, method="fpl", settings={}))
    for wrong in ({"sigma": float("nan")}, {"epsilon": 0.0}, {"epsilon": 1.0, "sigma": 2.0}, {"delta": 1.0}):
        with pytest.raises(SettingError):
            SecaggSpec(helper=helper.origin, **wrong)
    open_store(sqlite_store, spec)
    with pytest.raises(SettingError, match="keep-updates"):
        open_service(sqlite_store, TrustSettings(keep_updates=True), Log(None))


def test_noise_follows_the_size_of_a_round_by_default():
    asked = SecaggSpec(helper="http://127.0.0.1:9")
    assert asked.for_size(50, 1_500, affordable).sigma == 0, "few users would lose most of the accuracy"
    large, larger = (asked.for_size(users, 1_500, affordable).epsilon for users in (50_000, 100_000))
    assert 0.3 < larger < large < 2
    named = SecaggSpec(helper="http://127.0.0.1:9", epsilon=8.0)
    assert named.for_size(50, 1_500, affordable) == named


def test_implausible_sums():
    rng = np.random.default_rng(3)
    columns, rows, devices, noise = 5, 40, 10, 2000
    honest = rng.normal(0, np.sqrt(2) * noise, rows * columns)
    honest[:columns] += devices * 4096 / np.sqrt(columns)
    assert implausible(np.rint(honest).astype(np.int32), columns, devices, noise) is None
    pushed = honest.copy()
    pushed[3 * columns] += 120_000
    assert "row" in implausible(np.rint(pushed).astype(np.int32), columns, devices, noise)
    everywhere = np.full(rows * columns, 16_000, dtype=np.int32)  # no row is too long, all together are
    assert "sum" in implausible(everywhere, columns, devices, noise)


async def test_attack_a_sum_beyond_what_honest_messages_can_give_is_not_folded(sqlite_store, helper, monkeypatch):
    """Where norms are not checked, a message of a hundred times the bound: the round is abandoned, the log says why."""
    log = io.StringIO()
    establish_sums(sqlite_store, helper.origin, projections=0)
    async with serving(sqlite_store, log=Log(log)) as running:
        devices = await running.devices(3)
        await cohort(devices[:2])
        body = await unchecked_upload(devices[2], monkeypatch)
        assert (await devices[2].send(await devices[2].ticket(), body)).status_code == 201
        await running.until(lambda view: view.abandoned == 1)
        await running.open_round(1)
    assert "norm is" in log.getvalue()
    assert kept_model(sqlite_store).version == 0
