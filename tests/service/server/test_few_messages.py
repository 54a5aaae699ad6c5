"""Frugal on the server: its step is the simulation's for any cohorts, and quotas count for a client's lifetime."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from tests.service.federations import (
    FRUGAL_SERVER,
    ITEMS,
    PATIENT,
    establish_in,
    opened,
    refusal,
    serving,
    small_world,
    stored,
)
from tests.squares_worlds import encode_update, read_broadcast, update_of

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.federation.method import DataSummary
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, message_norm
from federank.service.server.model_versions import first_model
from federank.service.server.store.versions import jump_ahead, model_with_state

FACTORS = 4
HISTORIES = [[0, 1, 2], [0, 1, 3], [4, 5, 6], [4, 5, 7, 8], [1, 2, 9], [5, 6, 10]]


def settings_of(kind=Frugal, **given):
    return kind(**({"factors": FACTORS, "messages": 2, "min_support": 1} | given))


def few(address, rounds=None, **given):
    """Establish a federation of Frugal in a store; its address."""
    chosen = {"target": 3, "over_selection": 1.0} | PATIENT | (rounds or {})
    establish_in(address, settings_of(**given), FRUGAL_SERVER, chosen)
    return address


def alone(**given):
    """The method of that federation."""
    return settings_of(**given).resolve(DataSummary(ITEMS))


def message_of(broadcast, history, **given):
    """What a device with this history sends."""
    return update_of(alone(**given), broadcast, history)


async def prepared(device, history):
    """A device's ticket, and what it would send."""
    ticket = await device.ticket()
    broadcast = read_broadcast((await device.task(ticket)).content, FACTORS, ITEMS)
    return ticket, encode_update(message_of(broadcast, history))


async def take_part(device, history):
    """One complete interaction of a device with this history; what it has sent."""
    ticket, body = await prepared(device, history)
    answer = await device.send(ticket, body)
    assert answer.status_code == 201, answer.text
    return body


def after(state, devices, bodies):
    """The state after these messages in the stated order, where there are this many devices."""
    method, form = alone(), FRUGAL_SERVER.form(settings_of(), ITEMS, 100.0)
    aggregate = method.empty()
    for body in sorted(bodies, key=lambda body: hashlib.sha256(body).digest()):
        method.add(aggregate, FRUGAL_SERVER.summand(body, form))
    aggregate.count, aggregate.enrolled = len(bodies), devices
    return method.server_update(state, aggregate)


def begun(**given):
    """The settings and the first model of a federation, and that model as clients read it."""
    settings = FRUGAL_SERVER.settle(settings_of(**given), small_world(), None)
    model = first_model(FRUGAL_SERVER.first_content(settings, small_world(), None))
    return settings, model, read(settings, model)


def read(settings, model):
    return read_broadcast(FRUGAL_SERVER.encode(settings, model, model.rows_since(None), 0), FACTORS, ITEMS)


async def test_any_cohorts_give_the_simulations_model(store):
    simulated = alone().initial_state()
    async with serving(few(store)) as running:
        devices = await running.devices(4)
        simulated = after(simulated, 4, [await take_part(devices[n], HISTORIES[n]) for n in range(3)])
        await running.version(1)
    async with serving(store) as running:  # the state after the first step is in the store
        for device in devices:
            device.client = running.client
        devices += await running.devices(2)
        for version, cohort in ((2, (3, 4, 5)), (3, (0, 2, 4))):
            simulated = after(simulated, 6, [await take_part(devices[n], HISTORIES[n]) for n in cohort])
            await running.version(version)
        content = (await running.client.get("/api/v1/model")).content
    with opened(store) as connection:
        kept = model_with_state(connection).content
    assert np.array_equal(kept.tables["vectors"], simulated.vectors)
    assert np.array_equal(kept.tables["weights"], simulated.weights)
    assert kept.overall["regulariser"] == simulated.regulariser
    assert kept.state["received"] == simulated.received
    told = read_broadcast(content, FACTORS, ITEMS)
    assert (told.version, told.regulariser) == (3, simulated.regulariser)
    steps = np.abs(simulated.vectors).max(axis=1) / 127  # of bytes, one per row
    assert np.abs(told.vectors - simulated.vectors).max() <= steps.max() / 2 * 1.01


async def test_client_is_invited_once_per_message_and_round(store):
    async with serving(few(store, {"target": 2})) as running:
        known, other, *more = await running.devices(4)
        for version in (1, 2):
            ticket, body = await prepared(known, [0, 1, 2])
            assert await known.ticket() == ticket, "to ask again in a round is no other invitation"
            await known.send(ticket, body)
            assert (await known.work(wait=0)).status_code == 204, "until the next round"
            await take_part(other if version == 1 else more[0], [0, 1, 3])
            await running.version(version)
        await running.open_round(2)
        answer = await known.work(wait=5)
        assert refusal(answer) == (409, "spent")
        assert (await running.client.get("/api/v1/model?since=0")).status_code == 200, "models are still there for it"
        assert (await other.work(wait=5)).status_code == 200
    counts = dict(stored(store, "SELECT client, invitations FROM clients"))
    assert (counts[known.name], counts[other.name], counts[more[1].name]) == (2, 2, 0)


async def test_invitations_survive_a_restart(store):
    async with serving(few(store, messages=1)) as running:
        device = await running.device()
        ticket = await device.ticket()
    async with serving(store) as running:
        device.client = running.client
        assert await device.ticket() == ticket, "the same round's, and not counted twice"
        assert stored(store, "SELECT invitations FROM clients") == [(1,)]
        assert stored(store, "SELECT granted FROM grants") == [(1,)]
        await running.ask("POST", "close")
    with opened(store) as connection:
        jump_ahead(connection)
    async with serving(store) as running:
        device.client = running.client
        assert (await device.work(wait=5)).json()["error"] == "spent"


async def test_clients_get_the_public_settings(store):
    async with serving(few(store)) as running:
        told = await running.get("federation")
    assert told["method"] == "frugal"
    assert told["recipe"] == {
        "factors": FACTORS,
        "messages": 2,
        "alpha": 0.0,
        "unobserved_weight": 1.0,
        "activity": 0.3,
        "clip": None,
        "min_support": 1,
    }


def an_update(**changed):
    usual = FrugalUpdate.of(np.ones(ITEMS, np.float32), np.ones(FACTORS, np.float32), np.float32(1))
    return replace(usual, **changed)


MALFORMED = [
    {"strengths": np.ones(ITEMS - 1, np.float32)},
    {"vector": np.ones(FACTORS + 1, np.float32)},
    {"vector": np.full(FACTORS, np.nan, np.float32)},
    {"strengths": np.full(ITEMS, np.inf, np.float32)},
    {"scale": np.array([1.5], np.float32)},
    {"scale": np.array([-0.5], np.float32)},
]


async def test_malformed_messages_are_refused(store):
    async with serving(few(store)) as running:
        device = await running.device()
        for changed in MALFORMED:
            answer = await device.send(await device.ticket(), encode_update(an_update(**changed)))
            assert refusal(answer) == (422, "malformed"), changed


def test_long_messages_are_scaled_down():
    form = FRUGAL_SERVER.form(settings_of(), ITEMS, 2.0)
    long, short = an_update(strengths=np.full(ITEMS, 9, np.float32)), an_update(scale=np.array([0.01], np.float32))
    assert [FRUGAL_SERVER.judge(encode_update(update), form) for update in (long, short)] == [1, 0]
    kept = FRUGAL_SERVER.summand(encode_update(long), form)
    assert kept.scale * message_norm(kept.strengths, kept.vector) == pytest.approx(2.0)
    assert FRUGAL_SERVER.summand(encode_update(short), form).scale == short.scale


@pytest.mark.parametrize("history", [[0], [0, 3, 5]])
def test_cohort_without_common_items_changes_counts_alone(history):
    settings, model, broadcast = begun()
    first = FRUGAL_SERVER.step(settings, model, 1, [message_of(broadcast, history)])
    assert np.array_equal(first.tables["vectors"], model.vectors)
    assert first.overall["regulariser"] == model.content.overall["regulariser"]
    assert np.rint(first.state["counts"]).tolist() == [float(item in history) for item in range(ITEMS)]
    second = FRUGAL_SERVER.step(settings, model.followed_by(first), 2, [message_of(broadcast, history)])
    assert np.isfinite(second.tables["vectors"]).all()
    assert np.abs(second.tables["vectors"][history]).max() > 0, "two users have it now"


def test_strong_regularisation_waits_for_more_users():
    settings, model, broadcast = begun(regulariser=2.5)
    moved = []
    for number in range(12):
        content = FRUGAL_SERVER.step(settings, model, 99, [message_of(broadcast, [0, 1, 2])] * 2)
        assert content.state["received"] == 2 * (number + 1), "uploads that moved nothing are counted"
        assert np.isfinite(content.tables["vectors"]).all()
        moved.append(not np.array_equal(content.tables["vectors"], model.vectors))
        model = model.followed_by(content)
        if moved[-1]:
            break
    assert (moved[0], moved[-1]) == (False, True)


def test_messages_of_weight_zero_change_nothing():
    settings, model, _ = begun()
    content = FRUGAL_SERVER.step(settings, model, 9, [an_update(scale=np.array([0], np.float32))] * 3)
    assert np.array_equal(content.tables["vectors"], model.vectors)
    assert content.state["received"] == 0


def people_of(histories):
    users = [f"person-{n}" for n, history in enumerate(histories) for _ in history]
    return Interactions.from_columns(users, [f"item-{item:02d}" for history in histories for item in history])


def test_federation_starts_from_a_trained_model():
    trained = fr.Frugal(min_support=1, factors=FACTORS, messages=3).fit(people_of(HISTORIES * 5))
    settings = FRUGAL_SERVER.settle(settings_of(factors=None), small_world(), trained)
    content = FRUGAL_SERVER.first_content(settings, small_world(), trained)
    assert settings.factors == FACTORS
    known = trained.training.item_ids.tolist()
    numbers = [int(item.removeprefix("item-")) for item in known]
    assert np.array_equal(content.tables["vectors"][numbers], trained.item_vectors)
    assert not content.tables["vectors"][11].any(), "an item that no one has is recommended to no one"
    assert (content.state["received"][0], content.state["before"][0]) == (30, 30)
    # A new user is one among 31: the model stays nearly as it was, and their items are counted.
    model = first_model(content)
    after = FRUGAL_SERVER.step(settings, model, 1, [message_of(read(settings, model), [0, 1, 2, 11])])
    assert after.state["received"][0] == 31
    counts = content.state["counts"] + np.isin(range(ITEMS), [0, 1, 2, 11])
    assert np.rint(after.state["counts"]).tolist() == counts.tolist()
    before, now = (vectors @ vectors.T for vectors in (model.vectors, after.tables["vectors"]))
    assert np.linalg.norm(now - before) < 0.35 * np.linalg.norm(before)


def test_more_factors_than_items_and_other_models_are_refused():
    for given, trained, error in (({"factors": ITEMS + 1}, None, SettingError), ({}, object(), ModelError)):
        with pytest.raises(error):
            FRUGAL_SERVER.settle(settings_of(**given), small_world(), trained)
