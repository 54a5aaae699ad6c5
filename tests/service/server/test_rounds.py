"""Rounds with devices that are elsewhere: when they end, who is in them, and what stays of them in the model."""

import asyncio
import hashlib

import numpy as np
import pytest
from safetensors.numpy import load
from tests.service.federations import (
    KEEP,
    PATIENT,
    opened,
    recomputed,
    rows_sent,
    same_bits,
    serving,
    some_update,
    stored,
)

from federank.federation.wire import encode
from federank.methods.fpl.method import FPLUpdate
from federank.service.server import rounds
from federank.service.server.store.versions import LEAP, jump_ahead


async def test_a_round_ends_when_the_target_is_reached_and_moves_the_model_by_the_sum(store):
    async with serving(store, {"target": 3, "over_selection": 1.0} | PATIENT, KEEP) as running:
        before = running.service.latest.model
        updates = [some_update(seed) for seed in range(3)]
        for update in updates:
            device = await running.device()
            assert (await device.take_part(update)).status_code == 201
        await running.version(1)
        after = running.service.latest.model
        total = np.zeros_like(before.vectors, dtype=np.float64)
        for update in updates:
            total[update.items] += update.vectors
        np.testing.assert_allclose(after.vectors, before.vectors + 0.5 * total, rtol=1e-5, atol=1e-6)
        vectors, biases = recomputed(store)
        assert same_bits(after.vectors, vectors)
        assert same_bits(after.content.tables["biases"], biases)


async def test_a_client_is_sent_only_the_rows_that_changed(store):
    async with serving(store, {"target": 1, "over_selection": 1.0} | PATIENT) as running:
        device = await running.device()
        update = some_update(1, rows=2)
        await device.take_part(update)
        await running.version(1)
        ticket = await device.ticket()
        told = (await device.task(ticket, have=0)).content
        assert rows_sent(told) == update.items.tolist()
        assert same_bits(load(told)["vectors"], running.service.latest.model.vectors[update.items])
        assert len(rows_sent((await device.task(ticket)).content)) == 12
        assert len(rows_sent((await device.task(ticket, have=1)).content)) == 0
        assert len(rows_sent((await device.task(ticket, have=99)).content)) == 12


async def test_a_round_below_its_minimum_is_abandoned_without_a_trace(store):
    async with serving(store, {"target": 3, "minimum": 2} | PATIENT, KEEP) as running:
        before = running.service.latest.model
        device = await running.device()
        ticket = await device.ticket()
        assert (await device.send(ticket, some_update(1))).status_code == 201
        await running.admin.post("/admin/api/v1/close", headers=running.operator)
        await running.until(lambda view: view.abandoned == 1)
        assert running.service.latest.model is before
        assert stored(store, "SELECT state, reports FROM rounds WHERE number = 0") == [("abandoned", 1)]
        assert stored(store, "SELECT LENGTH(body) FROM uploads") == [(0,)]
        again = await device.send(ticket, some_update(1))
        assert again.status_code == 200, "a receipt stays true, whatever became of the round"


async def test_an_upload_after_the_end_of_its_round_is_late_and_counts_for_nothing(store):
    async with serving(store, {"target": 1, "over_selection": 2.0} | PATIENT, KEEP) as running:
        quick, slow = await running.device(), await running.device()
        late_ticket = await slow.ticket()
        await quick.take_part(some_update(1))
        await running.version(1)
        answer = await slow.send(late_ticket, some_update(2))
        assert (answer.status_code, answer.json()["error"]) == (410, "late")
        assert (await slow.task(late_ticket)).status_code == 410
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(1,)]
        assert same_bits(running.service.latest.model.vectors, recomputed(store)[0])


async def test_the_same_upload_twice_counts_once_and_another_one_is_refused(store):
    async with serving(store, {"target": 2} | PATIENT, KEEP) as running:
        device = await running.device()
        ticket = await device.ticket()
        first = await device.send(ticket, some_update(1))
        again = await device.send(ticket, some_update(1))
        other = await device.send(ticket, some_update(2))
        assert [answer.status_code for answer in (first, again, other)] == [201, 200, 409]
        assert first.json()["receipt"] == again.json()["receipt"]
        assert other.json()["error"] == "repeated"
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(1,)]


async def test_many_equal_uploads_at_once_are_stored_once(store):
    async with serving(store, {"target": 5} | PATIENT) as running:
        device = await running.device()
        ticket = await device.ticket()
        answers = await asyncio.gather(*(device.send(ticket, some_update(1)) for _ in range(20)))
        assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]


async def test_a_ticket_is_good_for_the_client_it_was_given_to_only(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        one, other = await running.device(), await running.device()
        ticket = await one.ticket()
        answer = await other.send(ticket, some_update(1))
        assert (answer.status_code, answer.json()["error"]) == (404, "foreign")
        assert (await other.task(ticket)).status_code == 404
        assert (await one.send(ticket[:-2] + "AA", some_update(1))).status_code == 404


@pytest.mark.slow
async def test_no_more_clients_than_the_over_selection_are_given_a_round(store):
    async with serving(store, {"target": 2, "over_selection": 1.5} | PATIENT) as running:
        devices = [await running.device() for _ in range(5)]
        answers = await asyncio.gather(*(device.work(wait=1) for device in devices))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 204, 204]


async def test_a_client_that_asks_again_is_given_the_same_ticket_until_it_has_reported(store):
    async with serving(store, {"target": 2, "over_selection": 1.0} | PATIENT) as running:
        device = await running.device()
        ticket = await device.ticket()
        assert await device.ticket() == ticket
        await device.send(ticket, some_update(1))
        assert (await device.work(wait=0)).status_code == 204
        other = await running.device()
        assert (await other.work()).status_code == 200, "asking twice has not used up a place"


async def test_those_who_wait_are_served_when_the_next_round_opens(store):
    async with serving(store, {"target": 1, "over_selection": 1.0} | PATIENT) as running:
        first, second = await running.device(), await running.device()
        ticket = await first.ticket()
        waiting = asyncio.create_task(second.work(wait=30))
        await running.until(lambda _: running.service.selection.waiting == 1)
        await first.send(ticket, some_update(1))
        told = (await waiting).json()
        assert (told["round"], told["version"]) == (1, 1)


@pytest.mark.slow
async def test_a_deadline_begins_with_the_first_ticket(sqlite_store):
    async with serving(sqlite_store, {"target": 2, "minimum": 1, "deadline": 0.3}) as running:
        await asyncio.sleep(0.8)
        assert running.service.latest.round.number == 0, "no one was there, so no time has passed"
        device = await running.device()
        while (await device.take_part(some_update(1))).status_code != 201:
            pass  # the machine is so slow that the deadline has passed meanwhile
        await running.version(1)


async def test_rows_that_are_too_long_are_shortened_and_counted(store):
    async with serving(store, {"target": 1} | PATIENT, {"most_norm": 1.0}) as running:
        before = running.service.latest.model
        device = await running.device()
        items = np.array([2, 5], dtype=np.int32)
        vectors = np.array([[1e30, 0, 0], [0.5, 0, 0]], dtype=np.float32)
        await device.take_part(FPLUpdate(items, vectors, np.zeros(2, dtype=np.float32)))
        await running.version(1)
        moved = running.service.latest.model.vectors - before.vectors
        np.testing.assert_allclose(moved[items], [[0.5, 0, 0], [0.25, 0, 0]], rtol=1e-5, atol=1e-6)
        assert stored(store, "SELECT clipped FROM rounds WHERE number = 0") == [(1,)]


@pytest.mark.parametrize("paused", [False, True])
async def test_folded_updates_are_in_no_file_of_the_store_after_a_while(sqlite_store, tmp_path, monkeypatch, paused):
    monkeypatch.setattr(rounds, "LONGEST_DIRTY_SECONDS", 0.2)
    update = some_update(1)
    secret = update.vectors.tobytes()

    def is_there():
        return any(secret in path.read_bytes() for path in tmp_path.glob("federation.sqlite*"))

    async with serving(sqlite_store, {"target": 2, "over_selection": 1.0} | PATIENT) as running:
        await (await running.device()).take_part(update)
        assert is_there(), "what is not folded yet must be on the disk"
        await running.admin.post("/admin/api/v1/rounds", json={"paused": paused}, headers=running.operator)
        await (await running.device()).take_part(some_update(2))
        await running.version(1)
        await running.until(lambda _: not is_there())


@pytest.mark.slow
async def test_a_pause_keeps_the_next_round_from_opening(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT) as running:
        await running.open_round()
        answer = await running.admin.post("/admin/api/v1/rounds", json={"paused": True}, headers=running.operator)
        assert answer.json() == {"paused": True}
        device = await running.device()
        await device.take_part(some_update(1))
        await running.version(1)
        assert (await device.work(wait=1)).status_code == 204
        await running.admin.post("/admin/api/v1/rounds", json={"paused": False}, headers=running.operator)
        assert (await device.work(wait=10)).status_code == 200


async def test_the_operator_can_end_a_round(sqlite_store):
    async with serving(sqlite_store, {"target": 5} | PATIENT) as running:
        device = await running.device()
        await device.take_part(some_update(1))
        answer = await running.admin.post("/admin/api/v1/close", headers=running.operator)
        assert answer.status_code == 202
        await running.version(1)


async def test_rounds_go_on_where_they_were_after_a_restart(store):
    rounds = {"target": 2, "over_selection": 2.0} | PATIENT
    async with serving(store, rounds, KEEP) as running:
        one = await running.device()
        two = await running.device()
        other_ticket = await two.ticket()
        await one.take_part(some_update(1))
    async with serving(store, rounds, KEEP) as running:
        two.client = running.client
        assert (await two.send(other_ticket, some_update(2))).status_code == 201, "tickets outlive a restart"
        await running.version(1)
        assert stored(store, "SELECT number, state, reports FROM rounds ORDER BY number")[0] == (0, "folded", 2)
        assert same_bits(running.service.latest.model.vectors, recomputed(store)[0])


async def test_a_round_that_was_closed_but_not_folded_is_folded_by_the_next(store):
    from federank.service.server.store.queries import close_round

    rounds = {"target": 9} | PATIENT
    async with serving(store, rounds, KEEP) as running:
        device = await running.device()
        await device.take_part(some_update(1))
    with opened(store) as connection:
        assert close_round(connection, 0, 1) == 1
    async with serving(store, rounds, KEEP) as running:
        await running.version(1)
        assert same_bits(running.service.latest.model.vectors, recomputed(store)[0])


async def test_uploads_that_a_restore_discards_are_overwritten(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        device = await running.device()
        assert (await device.send(await device.ticket(), some_update(1))).status_code == 201
    with opened(store) as connection:
        jump_ahead(connection)
    assert stored(store, "SELECT LENGTH(body), state FROM uploads JOIN rounds ON number = round") == [(0, "abandoned")]


async def test_a_restored_backup_gives_out_no_number_twice(store):
    async with serving(store, {"target": 1} | PATIENT) as running:
        device = await running.device()
        await device.take_part(some_update(1))
        await running.version(1)
        old = await device.ticket()
    with opened(store) as connection:
        assert jump_ahead(connection) == 1 + LEAP
    async with serving(store, {"target": 1} | PATIENT) as running:
        device.client = running.client
        await running.until(lambda view: view.round.number > LEAP)
        assert (await device.send(old, some_update(2))).status_code == 410
        work = (await device.work()).json()
        assert (work["round"], work["version"]) == (2 + LEAP, 1 + LEAP)
        told = (await device.task(work["ticket"], have=5)).content
        assert len(rows_sent(told)) == 12, "whatever a device had, every row is new to it"
        await device.send(work["ticket"], some_update(3))
        await running.version(2 + LEAP)
        assert running.service.latest.folded == 2


@pytest.mark.slow
async def test_the_model_is_the_first_one_plus_the_accepted_updates_whatever_happened_between(store):
    """Random lives: devices come and vanish, rounds are folded or abandoned, the worker restarts."""
    rng = np.random.default_rng(5)
    rounds = {"target": 3, "minimum": 2, "over_selection": 2.0, "deadline": 0.3}
    accepted = 0
    for _ in range(4):
        async with serving(store, rounds, KEEP) as running:
            devices = [await running.device() for _ in range(5)]
            for _ in range(8):
                answers = await asyncio.gather(*(device.work(wait=1) for device in devices))
                for device, answer in zip(devices, answers, strict=True):
                    if answer.status_code == 200 and rng.random() < 0.6:
                        sent = await device.send(answer.json()["ticket"], some_update(int(rng.integers(2**31))))
                        accepted += sent.status_code == 201
            await asyncio.sleep(0.4)
    async with serving(store, rounds, KEEP) as running:
        model = running.service.latest.model
        await running.service.stop()
        vectors, biases = recomputed(store)
        assert same_bits(model.vectors, vectors) or running.service.latest.model.version > model.version
        assert same_bits(running.service.latest.model.vectors, vectors)
        assert same_bits(running.service.latest.model.content.tables["biases"], biases)
    assert stored(store, "SELECT COUNT(*) FROM uploads") == [(accepted,)]


async def test_a_round_adds_up_in_the_order_of_digests_where_the_order_tells(store):
    # In float32, 1e8 + 1 is 1e8: what is left of a sum depends on what is added when.
    parts = [np.float32(value) for value in (1e8, 1.0, -1e8, 3.0)]
    item = np.zeros(1, dtype=np.int32)
    updates = [FPLUpdate(item, np.full((1, 3), value, dtype=np.float32), np.zeros(1, np.float32)) for value in parts]
    async with serving(store, {"target": 4, "over_selection": 1.0} | PATIENT, {"most_norm": 1e9}) as running:
        before = running.service.latest.model.vectors[0, 0]
        # They arrive in the reverse of the stated order.
        in_order = sorted(updates, key=lambda update: hashlib.sha256(encode(update)).digest())
        for update in reversed(in_order):
            assert (await (await running.device()).take_part(update)).status_code == 201
        await running.version(1)
        after = running.service.latest.model.vectors[0, 0]
    sums = [np.float32(0), np.float32(0)]
    for place, order in enumerate((in_order, in_order[::-1])):
        for update in order:
            sums[place] += update.vectors[0, 0]
    assert sums[0] != sums[1], "the other way round would show"
    assert after == before + np.float32(0.5) * sums[0]
