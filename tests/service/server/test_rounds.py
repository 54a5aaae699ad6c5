"""Rounds over HTTP: when they end, who is in them, and what the model gets from them."""

import asyncio
import hashlib

import numpy as np
import pytest
from safetensors.numpy import load
from tests.service.federations import (
    ITEMS,
    KEEP,
    ONE,
    PATIENT,
    assert_recomputed,
    opened,
    refusal,
    rows_sent,
    same_bits,
    serving,
    some_update,
    stored,
)

from federank.federation.wire import encode
from federank.methods.fpl.method import FPLUpdate
from federank.service.server import rounds
from federank.service.server.store.queries import close_round
from federank.service.server.store.versions import LEAP, jump_ahead

TWO = {"target": 2} | PATIENT


async def test_round_ends_at_its_target_and_adds_the_uploads(store):
    updates = [some_update(seed) for seed in range(3)]
    async with serving(store, {"target": 3, "over_selection": 1.0} | PATIENT, KEEP) as running:
        before = running.service.latest.model
        await running.upload(*updates)
        await running.version(1)
        after = running.service.latest.model
        total = np.zeros_like(before.vectors, dtype=np.float64)
        for update in updates:
            total[update.items] += update.vectors
        np.testing.assert_allclose(after.vectors, before.vectors + 0.5 * total, rtol=1e-5, atol=1e-6)
        assert_recomputed(store, after)


async def test_task_has_the_rows_that_changed(store):
    update = some_update(1, rows=2)
    async with serving(store, ONE) as running:
        device = await running.device()
        await device.upload(update)
        await running.version(1)
        ticket = await device.ticket()
        rows = (await device.task(ticket, have=0)).content
        assert rows_sent(rows) == update.items.tolist()
        assert same_bits(load(rows)["vectors"], running.service.latest.model.vectors[update.items])
        for have, count in ((None, ITEMS), (1, 0), (99, ITEMS)):
            assert len(rows_sent((await device.task(ticket, have=have)).content)) == count


async def test_round_below_its_minimum_is_discarded(store):
    async with serving(store, {"target": 3, "minimum": 2} | PATIENT, KEEP) as running:
        before, device = running.service.latest.model, await running.device()
        ticket = await device.ticket()
        assert (await device.send(ticket, some_update(1))).status_code == 201
        await running.ask("POST", "close")
        await running.until(lambda view: view.abandoned == 1)
        assert running.service.latest.model is before
        assert stored(store, "SELECT state, reports FROM rounds WHERE number = 0") == [("abandoned", 1)]
        assert stored(store, "SELECT LENGTH(body) FROM uploads") == [(0,)]
        assert (await device.send(ticket, some_update(1))).status_code == 200, "the receipt stays true"


async def test_late_upload_is_refused(store):
    async with serving(store, {"target": 1, "over_selection": 2.0} | PATIENT, KEEP) as running:
        quick, slow = await running.devices(2)
        ticket = await slow.ticket()
        await quick.upload(some_update(1))
        await running.version(1)
        assert refusal(await slow.send(ticket, some_update(2))) == (410, "late")
        assert (await slow.task(ticket)).status_code == 410
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(1,)]
        assert_recomputed(store, running.service.latest.model)


async def test_equal_uploads_are_stored_once_and_others_refused(store):
    async with serving(store, TWO, KEEP) as running:
        device = await running.device()
        ticket = await device.ticket()
        answers = await asyncio.gather(*(device.send(ticket, some_update(1)) for _ in range(20)))
        assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
        assert len({answer.json()["receipt"] for answer in answers}) == 1
        assert refusal(await device.send(ticket, some_update(2))) == (409, "repeated")
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(1,)]


async def test_ticket_is_for_one_client(store):
    async with serving(store, TWO) as running:
        one, other = await running.devices(2)
        ticket = await one.ticket()
        assert refusal(await other.send(ticket, some_update(1))) == (404, "foreign")
        assert (await other.task(ticket)).status_code == 404
        assert (await one.send(ticket[:-2] + "AA", some_update(1))).status_code == 404


@pytest.mark.slow
async def test_over_selection_bounds_the_tickets_of_a_round(store):
    async with serving(store, {"target": 2, "over_selection": 1.5} | PATIENT) as running:
        answers = await asyncio.gather(*(device.work(wait=1) for device in await running.devices(5)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 204, 204]


async def test_client_has_one_ticket_until_it_has_uploaded(store):
    async with serving(store, {"over_selection": 1.0} | TWO) as running:
        device, other = await running.devices(2)
        ticket = await device.ticket()
        assert await device.ticket() == ticket
        await device.send(ticket, some_update(1))
        assert (await device.work(wait=0)).status_code == 204
        assert (await other.work()).status_code == 200, "asking twice has not used up a place"


async def test_waiting_clients_get_the_next_round(store):
    async with serving(store, {"over_selection": 1.0} | ONE) as running:
        first, second = await running.devices(2)
        ticket = await first.ticket()
        waiting = asyncio.create_task(second.work(wait=30))
        await running.until(lambda _: running.service.selection.waiting == 1)
        await first.send(ticket, some_update(1))
        work = (await waiting).json()
        assert (work["round"], work["version"]) == (1, 1)


@pytest.mark.slow
async def test_deadline_begins_with_the_first_ticket(sqlite_store):
    async with serving(sqlite_store, {"target": 2, "minimum": 1, "deadline": 0.3}) as running:
        await asyncio.sleep(0.8)
        assert running.service.latest.round.number == 0, "no client was there, so no time has passed"
        device = await running.device()
        while (await device.take_part(some_update(1))).status_code != 201:
            pass  # the machine is so slow that the deadline has passed meanwhile
        await running.version(1)


async def test_long_rows_are_shortened_and_counted(store):
    async with serving(store, ONE, {"most_norm": 1.0}) as running:
        before = running.service.latest.model
        items = np.array([2, 5], dtype=np.int32)
        vectors = np.array([[1e30, 0, 0], [0.5, 0, 0]], dtype=np.float32)
        await running.upload(FPLUpdate(items, vectors, np.zeros(2, dtype=np.float32)))
        await running.version(1)
        moved = running.service.latest.model.vectors - before.vectors
        np.testing.assert_allclose(moved[items], [[0.5, 0, 0], [0.25, 0, 0]], rtol=1e-5, atol=1e-6)
        assert stored(store, "SELECT clipped FROM rounds WHERE number = 0") == [(1,)]


@pytest.mark.parametrize("paused", [False, True])
async def test_aggregated_uploads_disappear_from_the_disk(sqlite_store, tmp_path, monkeypatch, paused):
    monkeypatch.setattr(rounds, "LONGEST_DIRTY_SECONDS", 0.2)
    update = some_update(1)

    def is_there():
        content = [path.read_bytes() for path in tmp_path.glob("federation.sqlite*")]
        return any(update.vectors.tobytes() in part for part in content)

    async with serving(sqlite_store, {"over_selection": 1.0} | TWO) as running:
        await running.upload(update)
        assert is_there(), "what is not aggregated yet must be on the disk"
        await running.ask("POST", "rounds", json={"paused": paused})
        await running.upload(some_update(2))
        await running.version(1)
        await running.until(lambda _: not is_there())


@pytest.mark.slow
async def test_pause_keeps_the_next_round_from_opening(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        assert await running.ask("POST", "rounds", json={"paused": True}) == (200, {"paused": True})
        device = await running.device()
        await device.upload(some_update(1))
        await running.version(1)
        assert (await device.work(wait=1)).status_code == 204
        await running.ask("POST", "rounds", json={"paused": False})
        assert (await device.work(wait=10)).status_code == 200


async def test_operator_ends_a_round(sqlite_store):
    async with serving(sqlite_store, {"target": 5} | PATIENT) as running:
        await running.upload(some_update(1))
        assert (await running.ask("POST", "close"))[0] == 202
        await running.version(1)


async def test_round_goes_on_after_a_restart(store):
    async with serving(store, {"over_selection": 2.0} | TWO, KEEP) as running:
        one, two = await running.devices(2)
        ticket = await two.ticket()
        await one.upload(some_update(1))
    async with serving(store, trust=KEEP) as running:
        two.client = running.client
        assert (await two.send(ticket, some_update(2))).status_code == 201, "tickets outlive a restart"
        await running.version(1)
        assert stored(store, "SELECT number, state, reports FROM rounds ORDER BY number")[0] == (0, "aggregated", 2)
        assert_recomputed(store, running.service.latest.model)


async def test_closed_round_is_aggregated_after_a_restart(store):
    async with serving(store, {"target": 9} | PATIENT, KEEP) as running:
        await running.upload(some_update(1))
    with opened(store) as connection:
        assert close_round(connection, 0, 1) == 1
    async with serving(store, trust=KEEP) as running:
        await running.version(1)
        assert_recomputed(store, running.service.latest.model)


async def test_restore_overwrites_discarded_uploads(store):
    async with serving(store, TWO) as running:
        await running.upload(some_update(1))
    with opened(store) as connection:
        jump_ahead(connection)
    assert stored(store, "SELECT LENGTH(body), state FROM uploads JOIN rounds ON number = round") == [(0, "abandoned")]


async def test_restored_backup_uses_no_number_again(store):
    async with serving(store, ONE) as running:
        device = await running.play()
        old = await device.ticket()
    with opened(store) as connection:
        assert jump_ahead(connection) == 1 + LEAP
    async with serving(store) as running:
        device.client = running.client
        await running.until(lambda view: view.round.number > LEAP)
        assert (await device.send(old, some_update(2))).status_code == 410
        work = (await device.work()).json()
        assert (work["round"], work["version"]) == (2 + LEAP, 1 + LEAP)
        assert len(rows_sent((await device.task(work["ticket"], have=5)).content)) == ITEMS, "every row is new"
        await device.send(work["ticket"], some_update(3))
        await running.version(2 + LEAP)
        assert running.service.latest.aggregated == 2


@pytest.mark.slow
async def test_model_is_the_first_one_plus_the_accepted_uploads(store):
    """Devices come and vanish at random, rounds are aggregated or discarded, and the worker restarts."""
    rng = np.random.default_rng(5)
    rounds = {"target": 3, "minimum": 2, "over_selection": 2.0, "deadline": 0.3}
    accepted = 0
    for _ in range(4):
        async with serving(store, rounds, KEEP) as running:
            devices = await running.devices(5)
            for _ in range(8):
                answers = await asyncio.gather(*(device.work(wait=1) for device in devices))
                for device, answer in zip(devices, answers, strict=True):
                    if answer.status_code == 200 and rng.random() < 0.6:
                        sent = await device.send(answer.json()["ticket"], some_update(int(rng.integers(2**31))))
                        accepted += sent.status_code == 201
            await asyncio.sleep(0.4)
    async with serving(store, rounds, KEEP) as running:
        await running.service.stop()
        assert_recomputed(store, running.service.latest.model)
    assert stored(store, "SELECT COUNT(*) FROM uploads") == [(accepted,)]


async def test_uploads_are_summed_in_the_order_of_digests(store):
    # In float32, 1e8 + 1 is 1e8: what is left of a sum depends on what is added when.
    parts = [np.float32(value) for value in (1e8, 1.0, -1e8, 3.0)]
    item = np.zeros(1, dtype=np.int32)
    updates = [FPLUpdate(item, np.full((1, 3), value, dtype=np.float32), np.zeros(1, np.float32)) for value in parts]
    async with serving(store, {"target": 4, "over_selection": 1.0} | PATIENT, {"most_norm": 1e9}) as running:
        before = running.service.latest.model.vectors[0, 0]
        # They arrive in the reverse of the stated order.
        in_order = sorted(updates, key=lambda update: hashlib.sha256(encode(update)).digest())
        for update in reversed(in_order):
            await running.upload(update)
        await running.version(1)
        after = running.service.latest.model.vectors[0, 0]
    sums = [np.float32(0), np.float32(0)]
    for place, order in enumerate((in_order, in_order[::-1])):
        for update in order:
            sums[place] += update.vectors[0, 0]
    assert sums[0] != sums[1], "the other way round would show"
    assert after == before + np.float32(0.5) * sums[0]
