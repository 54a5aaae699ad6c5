"""What may change or be lost in the median of a round: the helper's identity key, its answers; and clocks apart."""

import asyncio
import socket
import threading
import time

import numpy as np
import pytest
from tests.service.federations import WAITS, serving, small_world
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import HISTORIES, establish_sums, federation, prepared_upload, take_part
from tests.service.server.secure.test_rounds_of_sums import kept_model, simulated

from federank.errors import BadMessage, SettingError
from federank.methods.frugal.method import Frugal
from federank.secagg.round_config import CLOCKS_APART, read_offer
from federank.service.server import secure_rounds as rounds
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.secure_config import SecaggSpec, agree
from federank.service.server.store import secure as store


async def signed_by(running, key):
    """Until the round's offer is told with a signature of this key."""
    for _ in range(WAITS):
        try:
            return read_offer((await running.client.get("/api/v1/sums/offer")).content, key)
        except BadMessage:
            await asyncio.sleep(0.05)
    raise AssertionError("The offer was never signed again.")


@pytest.mark.slow
async def test_the_helper_changes_its_key_twice_in_the_middle_of_a_round(sqlite_store, tmp_path, monkeypatch):
    """The offer stays the same and is signed again; who came before and who comes after are in one sum."""
    monkeypatch.setattr(rounds, "IDENTITY_PAUSE", 0.0)
    async with federation(tmp_path, sqlite_store) as (helper, running):
        people = await running.devices(3)
        messages, offers = [], []
        for device, history in zip(people, HISTORIES, strict=False):
            messages.append(await take_part(device, history))
            if len(messages) < 3:
                await asyncio.to_thread(helper.renew_identity)
                offers.append(await signed_by(running, helper.service.helper.identity.public))
        await running.version(1)
    assert len(helper.service.helper.identities) == 3
    assert offers[0] == offers[1]
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([messages], 3).vectors)


@pytest.mark.slow
async def test_an_answer_that_was_lost_is_reported_again_by_a_helper_with_a_new_key(
    sqlite_store, tmp_path, monkeypatch
):
    """Its record has the old signature: the leader knows all keys of the helper's life, and folds once."""
    real, lost = store.put_answer, []

    def losing(*values):
        if not lost:
            lost.append(values)
            helper.renew_identity()
            raise RuntimeError("the answer was lost")
        real(*values)

    monkeypatch.setattr(store, "put_answer", losing)
    async with federation(tmp_path, sqlite_store) as (helper, running):
        people = await running.devices(3)
        messages = [await take_part(*one) for one in zip(people, HISTORIES, strict=False)]
        await running.version(1)
    assert lost
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([messages], 3).vectors)


@pytest.mark.parametrize("minutes", [-9, 9])
async def test_clocks_that_are_minutes_apart_end_no_round(sqlite_store, tmp_path, monkeypatch, minutes):
    """The helper's clock is ahead or behind; every device checks the offer by its own."""
    assert abs(60 * minutes) < CLOCKS_APART
    monkeypatch.setattr(rounds, "OFFER_SECONDS", 1)  # it has expired by everyone's clock before anyone has answered
    with ThreadedHelper(tmp_path) as helper:
        helper.service.helper = helper.service.helper._replace(clock=lambda: time.time() + 60 * minutes)
        establish_sums(sqlite_store, helper.origin)
        async with serving(sqlite_store) as running:
            people = await running.devices(3)
            messages = []
            for device, history in zip(people, HISTORIES, strict=False):
                ticket = await device.ticket()
                message, body = await prepared_upload(device, ticket, history, now=time.time())
                messages.append(message)
                assert (await device.send(ticket, body)).status_code == 201
            offered = await signed_by(running, helper.service.helper.identity.public)
            assert abs(offered.expires - time.time() - 60 * minutes) < 120
            await running.version(1)
    assert np.array_equal(kept_model(sqlite_store).vectors, simulated([messages], 3).vectors)


def test_who_waits_for_a_helper_that_does_not_answer_has_made_no_store(tmp_path):
    """It takes the connection and says nothing. Until it answers there is no file: anyone who gives up leaves none."""
    path, refused = tmp_path / "leader.sqlite", []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        helper = SecaggSpec(helper=f"http://127.0.0.1:{silent.getsockname()[1]}", sigma=0)
        spec = FederationSpec(
            data=small_world, source="small", method="frugal", sums=helper, settings={"min_support": 1}
        )

        def begin():
            with pytest.raises(SettingError, match="cannot be used") as reason:
                open_store(f"sqlite:///{path}", spec)
            refused.append(str(reason.value))

        waiting = threading.Thread(target=begin)
        waiting.start()
        taken, _ = silent.accept()
        assert b"/identity" in taken.recv(1000)
        assert list(tmp_path.iterdir()) == []
        taken.close()
        waiting.join()
    assert "Is it running there?" in refused[0]
    assert list(tmp_path.iterdir()) == []


def test_more_messages_than_a_config_can_name_are_refused_before_the_helper_is_asked():
    method = Frugal(n_items=10, factors=8, clip=1.0, messages=10_001, uploads="secure")
    with pytest.raises(SettingError, match=r"messages is 10,001; a federation of sums has 10,000 at most"):
        agree(SecaggSpec(helper="http://127.0.0.1:1"), method, "", b"", 10, b"", b"")
