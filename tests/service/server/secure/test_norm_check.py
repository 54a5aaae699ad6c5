"""A federation whose messages carry a proof of their norm: who is too loud is left out, counted, and told so."""

import asyncio

import numpy as np
import pytest
from tests.service.federations import ITEMS, WAITS, stored
from tests.service.server.secure.federations import (
    HISTORIES,
    federation,
    loud_upload,
    prepared_upload,
    take_part,
)
from tests.service.server.secure.test_rounds_of_sums import kept_model, simulated

from federank.secagg.config import config_from
from federank.secagg.proof.parameters import FULL, LIGHT
from federank.secagg.upload import upload_bytes


async def outcome(device, ticket):
    """What a device is told of its message, once both servers have looked at it."""
    for _ in range(WAITS):
        answer = await device.client.get(f"/api/v1/tasks/{ticket}/outcome", headers=device.headers)
        if answer.status_code != 200 or answer.json()["outcome"] != "waiting":
            break
        await asyncio.sleep(0.05)
    return answer


async def test_attack_a_too_long_message_is_in_no_sum_and_every_client_concerned_is_told(sqlite_store, tmp_path):
    """The model is that of the honest three; the operator sees the count, the malicious client a sentence; its
    message is spent.
    """
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        people = await running.devices(4)
        malicious_user, ticket = people[3], await people[3].ticket()
        assert (await malicious_user.send(ticket, await loud_upload(malicious_user))).status_code == 201
        told = (await outcome(malicious_user, ticket)).json()
        assert told["outcome"] == "norm-too-large"
        assert "its proof" in told["message"]
        assert told["message"].endswith("It is in no sum, and stays spent.")
        again = await malicious_user.send(ticket, (await prepared_upload(malicious_user, ticket, HISTORIES[0]))[1])
        assert again.status_code == 409  # the ticket is used: there is no second try
        messages = []
        tickets = [await device.ticket() for device in people[:3]]
        for device, leave, history in zip(people, tickets, HISTORIES, strict=False):
            message, body = await prepared_upload(device, leave, history)
            messages.append(message)
            assert (await device.send(leave, body)).status_code == 201
        await running.version(1)
        assert (await outcome(people[0], tickets[0])).json() == {"outcome": "counted", "message": "", "uploads": 3}
        assert (await outcome(malicious_user, ticket)).json() == told  # remembered after the round
        assert (await outcome(people[1], ticket)).status_code == 404  # no one else is told
        view = await running.overview()
        assert view["rejected"]["norm-too-large"] == 1
        assert next(one for one in view["rounds"] if one["number"] == 0)["rejected"]["norm-too-large"] == 1
        metrics = await running.metrics()
        assert 'federank_uploads_total{outcome="norm-too-large"} 1.0' in metrics
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([messages], 4).vectors)
    assert stored(sqlite_store, "SELECT invitations FROM devices") == [(1,)] * 4


async def test_what_the_helper_cannot_open_and_a_copy_are_left_out_with_their_own_reasons(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, {"target": 5}) as (_, running):
        people = await running.devices(5)
        tickets = [await device.ticket() for device in people]
        made = [await prepared_upload(*one) for one in zip(people[:3], tickets, HISTORIES, strict=False)]
        broken = bytearray((await prepared_upload(people[3], tickets[3], HISTORIES[3]))[1])
        broken[100] ^= 1
        bodies = [body for _, body in made] + [bytes(broken), made[0][1]]
        for device, ticket, body in zip(people, tickets, bodies, strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        told = [(await outcome(*one)).json()["outcome"] for one in zip(people, tickets, strict=True)]
        assert sorted(told) == ["copied", "counted", "counted", "counted", "unopened"]
        assert {told[0], told[4]} == {"copied", "counted"}  # whichever was prepared first
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([[m for m, _ in made]], 5).vectors)


async def test_a_copy_of_an_upload_that_was_added_before_is_left_out(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, {"target": 4}) as (_, running):
        people = await running.devices(4)
        tickets = [await device.ticket() for device in people]
        made = [await prepared_upload(*one) for one in zip(people[:3], tickets, HISTORIES, strict=False)]
        bodies = [body for _, body in made]
        assert (await people[0].send(tickets[0], bodies[0])).status_code == 201
        while stored(sqlite_store, "SELECT COUNT(*) FROM uploads WHERE outcome = 'counted'") != [(1,)]:
            await asyncio.sleep(0.02)
        for device, ticket, body in zip(people[1:], tickets[1:], (bodies[1], bodies[2], bodies[0]), strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        assert (await outcome(people[3], tickets[3])).json()["outcome"] == "copied"
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([[m for m, _ in made]], 4).vectors)


@pytest.mark.parametrize(("projections", "check"), [(0, None), (64, LIGHT), (None, FULL)])
async def test_a_federation_plays_with_the_check_that_its_config_names(sqlite_store, tmp_path, projections, check):
    async with federation(tmp_path, sqlite_store, projections=projections) as (_, running):
        content = (await running.client.get("/api/v1/sums/config")).content
        config = config_from(content)
        assert (config.norm_check(), config.to_bytes()) == (check, content)
        people = await running.devices(3)
        messages = [await take_part(*one) for one in zip(people, HISTORIES, strict=False)]
        await running.version(1)
    length = (ITEMS + 5) * 5
    size = upload_bytes(length, check)
    assert stored(sqlite_store, "SELECT DISTINCT size FROM uploads") == [(size,)]
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([messages], 3).vectors)
