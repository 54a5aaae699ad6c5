"""A leader that cannot read uploads: rounds with a helper end folded or abandoned, and the fold is the simulation's."""

import asyncio

import numpy as np
import pytest
from tests.service.federations import FRUGAL_SERVER, ITEMS, WAITS, opened, refusal, serving, small_world, stored
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import (
    FACTORS,
    HISTORIES,
    LEAST,
    establish_sums,
    federation,
    prepared_upload,
    recipe_of,
    settings_of,
    take_part,
)

from federank.errors import SettingError
from federank.methods.frugal.private_server import affordable
from federank.methods.frugal.server_steps import SummedMessages
from federank.methods.frugal.server_update import first_shared
from federank.methods.frugal.server_update import fold as fold_summed
from federank.secagg.ring import implausible, in_units
from federank.secagg.upload import decode_upload
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.logs import Log
from federank.service.server.secure_config import SecaggSpec, settings_from
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings
from federank.service.server.store.versions import model_to_fold


def simulated(rounds, devices):
    """What the simulation's fold makes of these rounds' whole messages."""
    recipe = recipe_of()._replace(participants=np.arange(devices, dtype=np.int32))
    shared = first_shared(recipe, settings_of().initial_scale)
    for messages in rounds:
        values = in_units(np.sum(messages, axis=0), 3.0).reshape(-1, FACTORS + 1)
        sums = SummedMessages(values[:ITEMS], values[ITEMS:], len(messages))
        fold_summed(recipe, shared, sums)
    return shared


def kept_model(store):
    with opened(store) as connection:
        return model_to_fold(connection)


async def test_with_noise_off_the_model_is_the_simulations_to_the_last_bit(store, tmp_path):
    async with federation(tmp_path, store) as (_, running):
        people = [await running.device() for _ in HISTORIES]
        first = [await take_part(*one) for one in zip(people[:3], HISTORIES, strict=False)]
        await running.version(1)
        second = [await take_part(*one) for one in zip(people[3:], HISTORIES[3:], strict=False)]
        await running.version(2)
    expected, found = simulated([first, second], 6), kept_model(store).content
    assert np.array_equal(found.tables["vectors"], expected.vectors)
    assert np.array_equal(found.tables["weights"], expected.weights)
    assert found.overall["regulariser"][0] == expected.regulariser
    assert found.state["received"][0] == 6


async def test_no_upload_is_kept_and_none_can_be_read(sqlite_store, tmp_path):
    """Once a share is added up its bytes are gone; and what the leader held before is uniform, whatever was in it."""
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        people = await running.devices(4)
        for device, history in zip(people[:3], HISTORIES, strict=False):
            await take_part(device, history)
        for _ in range(WAITS):
            bodies = stored(sqlite_store, "SELECT body, kind FROM uploads")
            if all(not body for body, _ in bodies) and len(bodies) == 3:
                break
            await asyncio.sleep(0.01)
        assert [(len(body), kind) for body, kind in bodies] == [(0, "sums")] * 3
        assert stored(sqlite_store, "SELECT COUNT(*) FROM reports WHERE stands = 1") == [(3,)]
        await take_part(people[3], HISTORIES[3])
        await running.version(1)
    assert stored(sqlite_store, "SELECT COUNT(*) FROM reports") == [(0,)]


async def test_a_share_that_is_in_the_sum_stays_when_its_client_leaves(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        people = await running.devices(3)
        first = await take_part(people[0], HISTORIES[0])
        while stored(sqlite_store, "SELECT COUNT(*) FROM reports WHERE stands = 1") != [(1,)]:
            await asyncio.sleep(0.01)
        answer = await running.client.delete("/api/v1/devices/me", headers=people[0].headers)
        assert answer.status_code == 204
        rest = [await take_part(*one) for one in zip(people[1:], HISTORIES[1:], strict=False)]
        await running.version(1)
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([[first, *rest]], 3).vectors)


async def test_a_version_that_no_sum_leads_to_is_not_published(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        for device, history in zip(await running.devices(3), HISTORIES, strict=False):
            await take_part(device, history)
        await running.version(1)
        assert refusal(
            await running.admin.post("/admin/api/v1/rollback", headers=running.operator, json={"version": 0})
        ) == (409, "sums")
        assert running.service.latest.model.version == 1


async def test_noise_of_both_servers_is_on_the_published_sums(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        people = await running.devices(3)
        messages = [await take_part(*one) for one in zip(people, HISTORIES, strict=False)]
        await running.version(1)
        leader = await running.client.get("/api/v1/sums/total?round=0")
        [(helper_sum,)] = stored(sqlite_store, "SELECT helper_sum FROM sums WHERE round = 0")
        words = np.frombuffer(leader.content, "<u4") + np.frombuffer(helper_sum, "<u4")
        noise = words.view(np.int32) - np.sum(messages, axis=0)
        assert 0.5 < noise.std() / (4096 * np.sqrt(2)) < 1.6


async def test_a_sum_that_is_not_kept_is_not_published_as_an_empty_one(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        assert refusal(await running.client.get("/api/v1/sums/total?round=0")) == (404, "unknown")


async def test_uploads_wait_while_the_helper_is_away_and_the_round_goes_on_when_it_is_back(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        people = await running.devices(3)
        first = await take_part(people[0], HISTORIES[0])
        tickets = [await device.ticket() for device in people[1:]]
        made = [await prepared_upload(*one) for one in zip(people[1:], tickets, HISTORIES[1:], strict=False)]
        await asyncio.to_thread(helper.stop)
        for device, ticket, (_, body) in zip(people[1:], tickets, made, strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.until(lambda view: view.round.state == "closed")
        await asyncio.to_thread(helper.start)
        await running.version(1)
    expected = simulated([[first, *(message for message, _ in made)]], 3)
    assert np.array_equal(kept_model(sqlite_store).vectors, expected.vectors)


async def test_a_helper_that_lost_its_keys_ends_the_round_and_the_next_one_begins(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        people = await running.devices(3)
        await running.open_round()
        for key in (tmp_path / "keys").iterdir():
            key.unlink()
        ticket = await people[0].ticket()
        _, body = await prepared_upload(people[0], ticket, HISTORIES[0])
        assert (await people[0].send(ticket, body)).status_code == 201
        await running.open_round(1)
        for one in zip(people, HISTORIES, strict=False):
            await take_part(*one)
        await running.version(1)
    states = stored(sqlite_store, "SELECT state FROM rounds ORDER BY number")
    assert states[:2] == [("abandoned",), ("folded",)]


async def test_a_cohort_in_which_too_few_stand_is_abandoned(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        people = await running.devices(3)
        for device, history in zip(people[:2], HISTORIES, strict=False):
            await take_part(device, history)
        ticket = await people[2].ticket()
        _, body = await prepared_upload(people[2], ticket, HISTORIES[2])
        assert (await people[2].send(ticket, body[:-1] + bytes([body[-1] ^ 1]))).status_code == 201
        await running.until(lambda view: view.abandoned == 1)
        await running.open_round(1)
        name = running.service.config.sums.name
        line = running.service.config.sums.line()
        listed = await asyncio.to_thread(line.rounds, name)
        assert [number for number, state in listed.items() if state == "open"] == [1]
        line.close()
    assert stored(sqlite_store, "SELECT COUNT(*) FROM versions WHERE version > 0") == [(0,)]
    assert len(list((helper.folder / "keys").iterdir())) == 1


async def test_an_upload_of_another_form_is_refused(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        device = await running.device()
        ticket = await device.ticket()
        _, body = await prepared_upload(device, ticket, HISTORIES[0])
        for spoilt in (body[:-1], b"", bytes(len(body)), b"X" + body[1:]):
            refused = await device.send(ticket, spoilt)
            assert refused.status_code == 422
            assert refused.json()["message"].endswith(".")
        assert (await device.send(ticket, body + b"\0")).status_code == 413
        assert (await device.send(ticket, body)).status_code == 201
        assert (await device.send(ticket, body)).status_code == 200  # idempotent
        _, other = await prepared_upload(device, ticket, HISTORIES[0])
        assert (await device.send(ticket, other)).status_code == 409


async def test_what_anyone_can_fetch(sqlite_store, tmp_path):
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


def test_no_client_keeps_uploads_of_sums_or_folds_them_as_they_come(tmp_path, sqlite_store):
    with ThreadedHelper(tmp_path) as helper:
        sums = SecaggSpec(helper=helper.origin)
        spec = FederationSpec(data=small_world, source="small", method="frugal", sums=sums, settings={"min_support": 1})
        with pytest.raises(SettingError, match="least-cohort"):
            open_store(sqlite_store, _changed(spec, rounds={"minimum": 3}))
        with pytest.raises(SettingError, match="clip"):
            open_store(sqlite_store, _changed(spec, method="fpl", settings={}))
        with pytest.raises(SettingError, match="sigma"):
            SecaggSpec(helper=helper.origin, sigma=float("nan"))
        for wrong in ({"epsilon": 0.0}, {"epsilon": 1.0, "sigma": 2.0}, {"delta": 1.0}):
            with pytest.raises(SettingError):
                SecaggSpec(helper=helper.origin, **wrong)
        open_store(sqlite_store, spec)
        with pytest.raises(SettingError, match="keep-updates"):
            open_service(sqlite_store, TrustSettings(keep_updates=True), Log(None))


def test_unless_named_the_noise_follows_the_size_of_a_round():
    asked = SecaggSpec(helper="http://127.0.0.1:9")
    assert asked.for_size(50, 1_500, affordable).sigma == 0, (
        "so few people would pay for a guarantee with most of the accuracy"
    )
    large, larger = (asked.for_size(people, 1_500, affordable).epsilon for people in (50_000, 100_000))
    assert 0.3 < larger < large < 2
    named = SecaggSpec(helper="http://127.0.0.1:9", epsilon=8.0)
    assert named.for_size(50, 1_500, affordable) == named


def _changed(spec, **changes):
    from dataclasses import replace

    return replace(spec, **changes)


def test_plausible_sums_pass_and_others_do_not():
    rng = np.random.default_rng(3)
    columns, rows, people, noise = 5, 40, 10, 2000
    honest = rng.normal(0, np.sqrt(2) * noise, rows * columns)
    honest[:columns] += people * 4096 / np.sqrt(columns)
    assert implausible(np.rint(honest).astype(np.int32), columns, people, noise) is None
    pushed = honest.copy()
    pushed[3 * columns] += 120_000
    assert "row" in implausible(np.rint(pushed).astype(np.int32), columns, people, noise)
    everywhere = np.full(rows * columns, 16_000, dtype=np.int32)  # no row is too long, all together are
    assert "sum" in implausible(everywhere, columns, people, noise)


async def test_attack_a_sum_beyond_what_honest_messages_can_give_is_not_folded(sqlite_store, tmp_path):
    """Where norms are not checked, a message of a hundred times the bound: the round is abandoned, the log says why."""
    import io

    from federank.secagg import upload as uploads

    log = io.StringIO()
    with ThreadedHelper(tmp_path) as helper:
        establish_sums(sqlite_store, helper.origin, projections=0)
        async with serving(sqlite_store, log=Log(log)) as running:
            people = await running.devices(3)
            for one in zip(people[:2], HISTORIES, strict=False):
                await take_part(*one)
            ticket = await people[2].ticket()
            before, uploads.C_INT = uploads.C_INT, 10**7
            try:
                body = await lying_upload(people[2])
            finally:
                uploads.C_INT = before
            assert (await people[2].send(ticket, body)).status_code == 201
            await running.until(lambda view: view.abandoned == 1)
            await running.open_round(1)
    assert "norm is" in log.getvalue()
    assert kept_model(sqlite_store).version == 0


async def lying_upload(device):
    import os

    from federank.secagg.config import config_from
    from federank.secagg.round_config import read_offer
    from federank.secagg.upload import encode_upload, make_upload, new_secrets

    config = config_from((await device.client.get("/api/v1/sums/config")).content)
    terms = read_offer((await device.client.get("/api/v1/sums/offer")).content, config.helper_public())
    message = np.zeros(terms.length, dtype=np.int32)
    message[0] = 400_000
    body = encode_upload(make_upload(terms, message, new_secrets(os.urandom)))
    assert decode_upload(body, terms.length).id
    return body
