"""Messages with a proof of their norm: one whose proof fails is left out and counted, and its client is informed."""

import pytest
from tests.service.federations import ITEMS, stored
from tests.service.server.secure.federations import (
    HISTORIES,
    assert_simulated,
    cohort,
    counted,
    federation,
    final,
    loud_upload,
    prepared_upload,
)

from federank.secagg.config import config_from
from federank.secagg.proof.parameters import FULL, LIGHT
from federank.secagg.upload import upload_bytes


async def test_attack_a_too_long_message_is_in_no_sum_and_every_client_concerned_is_told(sqlite_store, tmp_path):
    """The model is that of the honest three; the operator sees the count; the malicious client's message is spent."""
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        devices = await running.devices(4)
        malicious_user, ticket = devices[3], await devices[3].ticket()
        assert (await malicious_user.send(ticket, await loud_upload(malicious_user))).status_code == 201
        rejected = await final(malicious_user, ticket)
        assert rejected["outcome"] == "norm-too-large"
        again = await malicious_user.send(ticket, (await prepared_upload(malicious_user, ticket, HISTORIES[0]))[1])
        assert again.status_code == 409  # the ticket is used: there is no second try
        honest = await devices[0].ticket()
        messages = await cohort(devices[:3])
        await running.version(1)
        assert await final(devices[0], honest) == {"outcome": "counted", "message": "", "uploads": 3}
        assert await final(malicious_user, ticket) == rejected  # remembered after the round
        place = f"/api/v1/tasks/{ticket}/outcome"
        assert (await running.client.get(place, headers=devices[1].headers)).status_code == 404  # for its client alone
        view = await running.overview()
        assert view["rejected"]["norm-too-large"] == 1
        assert next(one for one in view["rounds"] if one["number"] == 0)["rejected"]["norm-too-large"] == 1
        metrics = await running.metrics()
        assert 'federank_uploads_total{outcome="norm-too-large"} 1.0' in metrics
    assert_simulated(sqlite_store, [messages], 4)
    assert stored(sqlite_store, "SELECT invitations FROM clients") == [(1,)] * 4


async def test_unopened_and_copied_uploads_are_left_out(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, {"target": 5}) as (_, running):
        devices = await running.devices(5)
        tickets = [await device.ticket() for device in devices]
        made = [await prepared_upload(*one) for one in zip(devices[:3], tickets, HISTORIES, strict=False)]
        broken = bytearray((await prepared_upload(devices[3], tickets[3], HISTORIES[3]))[1])
        broken[100] ^= 1
        bodies = [body for _, body in made] + [bytes(broken), made[0][1]]
        for device, ticket, body in zip(devices, tickets, bodies, strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        outcomes = [(await final(*one))["outcome"] for one in zip(devices, tickets, strict=True)]
        assert sorted(outcomes) == ["copied", "counted", "counted", "counted", "unopened"]
        assert {outcomes[0], outcomes[4]} == {"copied", "counted"}  # whichever was prepared first
    assert_simulated(sqlite_store, [[m for m, _ in made]], 5)


async def test_copy_of_a_counted_upload_is_left_out(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        devices = await running.devices(4)
        tickets = [await device.ticket() for device in devices]
        made = [await prepared_upload(*one) for one in zip(devices[:3], tickets, HISTORIES, strict=False)]
        bodies = [body for _, body in made]
        assert (await devices[0].send(tickets[0], bodies[0])).status_code == 201
        await counted(sqlite_store, 1)
        for device, ticket, body in zip(devices[1:], tickets[1:], (bodies[1], bodies[2], bodies[0]), strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        assert (await final(devices[3], tickets[3]))["outcome"] == "copied"
    assert_simulated(sqlite_store, [[m for m, _ in made]], 4)


@pytest.mark.parametrize(("projections", "check"), [(0, None), (64, LIGHT), (None, FULL)])
async def test_config_names_the_norm_check(sqlite_store, tmp_path, projections, check):
    async with federation(tmp_path, sqlite_store, projections=projections) as (_, running):
        content = (await running.client.get("/api/v1/sums/config")).content
        config = config_from(content)
        assert (config.norm_check(), config.to_bytes()) == (check, content)
        devices = await running.devices(3)
        messages = await cohort(devices)
        await running.version(1)
    assert stored(sqlite_store, "SELECT DISTINCT size FROM uploads") == [(upload_bytes((ITEMS + 5) * 5, check),)]
    assert_simulated(sqlite_store, [messages], 3)
