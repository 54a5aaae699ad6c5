"""An outsider with clients of its own: all uploads of a round but one are zeros with valid proofs."""

import os

import httpx
import numpy as np
import pytest
from tests.service.federations import refusal, serving, stored
from tests.service.server.secure.federations import HISTORIES, config_and_offer, establish_sums, federation, take_part

from federank.cli.serve import report_guarantee
from federank.secagg.ring import centred
from federank.secagg.upload import bytes_of_message

OPEN = {"invited_only": False}


async def send_zeros(device):
    """The upload of a client that the attacker controls: zeros, with a proof that holds."""
    ticket = await device.ticket()
    config, offer = await config_and_offer(device)
    zeros = np.zeros(offer.length, dtype=np.int64)
    body = bytes_of_message(config.norm_check(), offer, zeros, os.urandom)
    assert (await device.send(ticket, body)).status_code == 201


async def published_sums(running, helper):
    """What anyone can fetch of round 0's sum, from both servers."""
    name = running.service.config.sums.name
    leader, copy = [await running.client.get(f"/api/v1/sums/{part}?round=0") for part in ("total", "helper-sum")]
    async with httpx.AsyncClient(base_url=helper.origin) as client:
        return leader, copy, await client.get(f"/federations/{name}/rounds/0/sum")


async def test_sums_without_noise_are_not_published(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (helper, running):
        for sybil in await running.devices(2):
            await send_zeros(sybil)
        await take_part(await running.device(), HISTORIES[0])
        await running.version(1)
        answers = await published_sums(running, helper)
        assert [refusal(answer) for answer in answers] == [(403, "no-noise")] * 3
        assert stored(sqlite_store, "SELECT LENGTH(noisy), LENGTH(helper_sum) FROM sums WHERE round = 0") == [(0, 0)]


async def test_with_noise_the_sum_of_one_client_is_drowned(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (helper, running):
        for sybil in await running.devices(2):
            await send_zeros(sybil)
        message = await take_part(await running.device(), HISTORIES[0])
        await running.version(1)
        leader, _, other = await published_sums(running, helper)
        total = centred(np.frombuffer(leader.content, "<u4") + np.frombuffer(other.content, "<u4"))
        assert abs(np.corrcoef(total, message)[0, 1]) < 0.5


@pytest.mark.parametrize(("sigma", "expected"), [(0.0, 403), (1.0, 201)])
async def test_without_noise_only_invited_clients_enrol(sqlite_store, helper, sigma, expected, capsys):
    token = establish_sums(sqlite_store, helper.origin, sigma=sigma)
    report_guarantee(sqlite_store, None)  # the operator sees it at the start
    assert ("federank admin invite" in capsys.readouterr().out) is (sigma == 0)
    async with serving(sqlite_store, token=token, trust={"invited_only": None}) as running:
        assert (await running.get("federation"))["invited_only"] is (sigma == 0)
        assert (await running.client.post("/api/v1/clients", json={})).status_code == expected
        [code] = await running.invitations(1)
        assert (await running.client.post("/api/v1/clients", json={"invitation": code})).status_code == 201


async def test_the_minimum_cohort_counts_invited_clients(sqlite_store, helper):
    """Clients that enrolled without an invitation are in the open round, and do not count any more."""
    token = establish_sums(sqlite_store, helper.origin, {"target": 4})
    async with serving(sqlite_store, token=token, trust=OPEN) as running:
        early = await running.devices(3)
        for sybil in early[:2]:
            await send_zeros(sybil)
    async with serving(sqlite_store, token=token, trust={"invited_only": True}) as running:
        early[2].client = running.client
        assert (await early[2].work()).json()["error"] == "not-invited"
        for code in await running.invitations(2):
            answer = await running.client.post("/api/v1/clients", json={"invitation": code})
            await take_part(type(early[0])(running.client, answer.json()), HISTORIES[0])
        await running.until(lambda view: view.abandoned)
        assert stored(sqlite_store, "SELECT state, reports FROM rounds WHERE number = 0") == [("abandoned", 4)]
