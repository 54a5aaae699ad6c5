"""Small federations under secure aggregation: a helper in a thread, a leader in this process, devices that split."""

import asyncio
import os
from contextlib import asynccontextmanager

import numpy as np
from tests.secagg.proof.uploads import liars_upload
from tests.service.federations import FRUGAL_SERVER, ITEMS, PATIENT, establish_in, opened, serving, stored
from tests.service.helper.helpers import ThreadedHelper
from tests.squares_worlds import read_broadcast, update_of

from federank.errors import BadMessage
from federank.federation.method import DataSummary
from federank.federation.secure import model_digest, secure_vector
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.records import SummedMessages
from federank.methods.frugal.server_update import stepped
from federank.secagg import upload
from federank.secagg.config import config_from
from federank.secagg.proof.proof import wires_of
from federank.secagg.ring import in_units, round_message
from federank.secagg.round_config import check_offer, read_offer
from federank.secagg.upload import bytes_of_message, encode_upload, rounding_chances
from federank.service.client.secure import helper_keys
from federank.service.server.secure_config import SecaggSpec
from federank.service.server.store.versions import model_with_state

FACTORS, LEAST = 4, 3
HISTORIES = [[0, 1, 2], [0, 1, 3], [4, 5, 6], [4, 5, 7, 8], [1, 2, 9], [5, 6, 10]]


def settings_of(kind=Frugal, **given):
    return kind(**({"factors": FACTORS, "messages": 5, "clip": 3.0, "min_support": 1} | given))


def establish_sums(store, helper, rounds=None, sigma=0.0, least=LEAST, data=None, projections=None, **given):
    """Establish a federation of sums in a store; the operator's token."""
    chosen = {"target": LEAST, "minimum": LEAST, "over_selection": 1.0} | PATIENT | (rounds or {})
    spec = SecaggSpec(helper=helper, sigma=sigma, least_cohort=least, projections=projections)
    return establish_in(store, settings_of(**given), FRUGAL_SERVER, chosen, data, sums=spec)


@asynccontextmanager
async def federation(tmp_path, store=None, rounds=None, sigma=0.0, **given):
    """A helper and a leader that have agreed; the helper, and the leader's worker."""
    store = store or f"sqlite:///{tmp_path / 'leader.sqlite'}"
    with ThreadedHelper(tmp_path) as helper:
        token = establish_sums(store, helper.origin, rounds, sigma, **given)
        async with serving(store, token=token) as running:
            yield helper, running


def simulated(rounds, devices):
    """What the simulation's server step makes of the messages of these rounds."""
    method = recipe_of()
    state = method.initial_state()
    for messages in rounds:
        values = in_units(np.sum(messages, axis=0), 3.0).reshape(-1, FACTORS + 1)
        state = stepped(method, state, SummedMessages(values[:ITEMS], values[ITEMS:], len(messages)), devices)
    return state


def kept_model(store):
    with opened(store) as connection:
        return model_with_state(connection)


def assert_simulated(store, rounds, devices):
    """The newest model is the simulation's of these rounds' messages, to the last bit."""
    assert np.array_equal(kept_model(store).vectors, simulated(rounds, devices).vectors)


def recipe_of(**given):
    return settings_of(**given).resolve(DataSummary(ITEMS))


def whole_message(broadcast, history, clip, random=os.urandom, **given):
    """The message of a device with this history, as integers."""
    method = recipe_of(**given)
    values = secure_vector(method, 0, update_of(method, broadcast, history))
    return round_message(values, clip, rounding_chances(len(values), random))


async def prepared_upload(device, ticket, history, now=0):
    """A device's upload of a round, after every check that it makes; the integers, and the bytes."""
    client = device.client
    config = config_from((await client.get("/api/v1/sums/config")).content)
    broadcast = read_broadcast((await device.task(ticket)).content, FACTORS, ITEMS)
    content = (await client.get("/api/v1/sums/offer")).content
    try:
        terms = read_offer(content, config.helper_public())
    except BadMessage:  # the helper has a new key
        terms = read_offer(content, (await asyncio.to_thread(helper_keys, config, None))[-1])
    parts = {"vectors": broadcast.vectors, "weights": broadcast.weights}
    model = model_digest(broadcast.version, parts | {"regulariser": np.array([broadcast.regulariser])})
    check_offer(terms, config, model, now)
    message = whole_message(broadcast, history, config.length_of_clip())
    return message, bytes_of_message(config.norm_check(), terms, message, os.urandom)


async def take_part(device, history):
    """One complete interaction of a device with this history; the integers that it has split."""
    ticket = await device.ticket()
    message, body = await prepared_upload(device, ticket, history)
    answer = await device.send(ticket, body)
    assert answer.status_code == 201, answer.text
    return message


async def cohort(devices, histories=HISTORIES):
    """One message of each device; the integers."""
    return [await take_part(*one) for one in zip(devices, histories, strict=False)]


async def outcome(device, ticket):
    """What a device gets to know of its upload now."""
    answer = await device.client.get(f"/api/v1/tasks/{ticket}/outcome", headers=device.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def final(device, ticket):
    """What became of an upload, once that is decided."""
    while (now := await outcome(device, ticket))["outcome"] == "waiting":
        await asyncio.sleep(0.02)
    return now


async def counted(store, count):
    """Wait until both servers have accepted this many uploads."""
    while stored(store, "SELECT COUNT(*) FROM uploads WHERE outcome = 'counted'") != [(count,)]:
        await asyncio.sleep(0.02)


async def config_and_offer(device):
    config = config_from((await device.client.get("/api/v1/sums/config")).content)
    return config, read_offer((await device.client.get("/api/v1/sums/offer")).content, config.helper_public())


async def unchecked_upload(device, monkeypatch):
    """An upload of a message a hundred times as long as one may be, where norms are not checked."""
    _, offer = await config_and_offer(device)
    message = np.zeros(offer.length, dtype=np.int32)
    message[0] = 400_000
    with monkeypatch.context() as patched:
        patched.setattr(upload, "C_INT", 10**7)
        return upload.encode_upload(upload.make_upload(offer, message, upload.new_secrets(os.urandom)))


async def loud_upload(device, times=50):
    """An upload of a message this many times as long as one may be, with a proof about a short one."""
    config, terms = await config_and_offer(device)
    message = np.zeros(terms.length, dtype=np.int64)
    message[3] = times * config.bound
    return encode_upload(liars_upload(config.norm_check(), terms, message, about_zero))


def about_zero(parameters, leader, helper):
    """The wires of a message that is all zeros, whatever was projected."""
    return wires_of(parameters, -helper, helper)
