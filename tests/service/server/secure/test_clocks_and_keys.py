"""What may change or be lost during a round: the helper's identity key and its answers; and clocks apart."""

import asyncio
import socket
import threading
import time
from contextlib import suppress

import pytest
from tests.service.federations import serving, small_world
from tests.service.server.secure.federations import (
    HISTORIES,
    assert_simulated,
    cohort,
    establish_sums,
    federation,
    prepared_upload,
    take_part,
)

from federank.errors import BadMessage, SettingError
from federank.methods.frugal.method import Frugal
from federank.secagg.round_config import CLOCKS_APART, read_offer
from federank.service.server import secure_rounds as rounds
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.secure_config import SecaggSpec, agree
from federank.service.server.store import secure as store

ALL_ITEMS = {"min_support": 1}


async def signed_by(running, key):
    """The round's offer, once it has a signature of this key."""
    while True:
        with suppress(BadMessage):
            return read_offer((await running.client.get("/api/v1/sums/offer")).content, key)
        await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_helper_changes_its_key_twice_during_a_round(sqlite_store, tmp_path, monkeypatch):
    """The offer stays the same and is signed again; uploads before and after are in one sum."""
    monkeypatch.setattr(rounds, "IDENTITY_PAUSE", 0.0)
    async with federation(tmp_path, sqlite_store) as (helper, running):
        devices = await running.devices(3)
        messages, offers = [], []
        for device, history in zip(devices, HISTORIES, strict=False):
            messages.append(await take_part(device, history))
            if len(messages) < 3:
                await asyncio.to_thread(helper.renew_identity)
                offers.append(await signed_by(running, helper.service.helper.identity.public))
        await running.version(1)
    assert len(helper.service.helper.identities) == 3
    assert offers[0] == offers[1]
    assert_simulated(sqlite_store, [messages], 3)


@pytest.mark.slow
async def test_lost_answer_is_sent_again_by_a_helper_with_a_new_key(sqlite_store, tmp_path, monkeypatch):
    """Its record has the old signature: the leader knows all keys of the helper, and aggregates once."""
    real, lost = store.put_answer, []

    def losing(*values):
        if not lost:
            lost.append(values)
            helper.renew_identity()
            raise RuntimeError("the answer was lost")
        real(*values)

    monkeypatch.setattr(store, "put_answer", losing)
    async with federation(tmp_path, sqlite_store) as (helper, running):
        devices = await running.devices(3)
        messages = await cohort(devices)
        await running.version(1)
    assert lost
    assert_simulated(sqlite_store, [messages], 3)


@pytest.mark.parametrize("minutes", [-9, 9])
async def test_clocks_may_be_minutes_apart(sqlite_store, helper, monkeypatch, minutes):
    """The helper's clock is ahead or behind; every device checks the offer by its own."""
    assert abs(60 * minutes) < CLOCKS_APART
    monkeypatch.setattr(rounds, "OFFER_SECONDS", 1)  # it has expired by everyone's clock before anyone has answered
    helper.service.helper = helper.service.helper._replace(clock=lambda: time.time() + 60 * minutes)
    establish_sums(sqlite_store, helper.origin)
    async with serving(sqlite_store) as running:
        devices = await running.devices(3)
        messages = []
        for device, history in zip(devices, HISTORIES, strict=False):
            ticket = await device.ticket()
            message, body = await prepared_upload(device, ticket, history, now=time.time())
            messages.append(message)
            assert (await device.send(ticket, body)).status_code == 201
        offered = await signed_by(running, helper.service.helper.identity.public)
        assert abs(offered.expires - time.time() - 60 * minutes) < 120
        await running.version(1)
    assert_simulated(sqlite_store, [messages], 3)


def test_silent_helper_leaves_no_store(tmp_path):
    """It accepts the connection and answers nothing. Until it answers there is no file."""
    refused = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        helper = SecaggSpec(helper=f"http://127.0.0.1:{silent.getsockname()[1]}", sigma=0)
        spec = FederationSpec(data=small_world, source="small", method="frugal", sums=helper, settings=ALL_ITEMS)

        def begin():
            with pytest.raises(SettingError) as reason:
                open_store(f"sqlite:///{tmp_path / 'leader.sqlite'}", spec)
            refused.append(str(reason.value))

        waiting = threading.Thread(target=begin)
        waiting.start()
        taken, _ = silent.accept()
        assert b"/identity" in taken.recv(1000)
        assert list(tmp_path.iterdir()) == []
        taken.close()
        waiting.join()
    assert helper.helper in refused[0]
    assert list(tmp_path.iterdir()) == []


def test_more_messages_than_a_config_has_are_refused():
    method = Frugal(n_items=10, factors=8, clip=1.0, messages=10_001, uploads="secure")
    with pytest.raises(SettingError, match="10,001"):
        agree(SecaggSpec(helper="http://127.0.0.1:1"), method, "", b"", 10, b"", b"")
