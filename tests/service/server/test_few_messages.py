"""A federation of few messages: cohorts as people come, the simulation's fold, and invitations counted for its
lifetime.
"""

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
from tests.squares_worlds import update_of

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, message_norm
from federank.methods.frugal.server_update import first_shared
from federank.methods.frugal.settings import FrugalSettings, frugal_recipe
from federank.methods.frugal.wire import decode_frugal_broadcast, encode_frugal_update
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.model_versions import first_model
from federank.service.server.store.versions import jump_ahead, model_to_fold

FACTORS = 4
HISTORIES = [[0, 1, 2], [0, 1, 3], [4, 5, 6], [4, 5, 7, 8], [1, 2, 9], [5, 6, 10]]


def settings_of(kind=Frugal, **given):
    return kind(**({"factors": FACTORS, "messages": 2, "min_support": 1} | given))


def few(address, rounds=None, **given):
    """Establish a federation of few messages in a store; its address."""
    chosen = {"target": 3, "over_selection": 1.0} | PATIENT | (rounds or {})
    establish_in(address, settings_of(**given), FRUGAL_SERVER, chosen)
    return address


def alone(**given):
    """The recipe of one person of that federation."""
    return frugal_recipe(settings_of(FrugalSettings, **given), np.ones(1, dtype=np.int64), ITEMS)


def message_of(broadcast, history, **given):
    """What a device with this history sends."""
    return update_of(alone(**given), broadcast, history)


async def take_part(device, history):
    """One whole interaction of a device with this history; what it has sent, and the answer."""
    ticket = await device.ticket()
    broadcast = decode_frugal_broadcast((await device.task(ticket)).content, FACTORS, ITEMS)
    body = encode_frugal_update(message_of(broadcast, history))
    answer = await device.send(ticket, body)
    assert answer.status_code == 201, answer.text
    return body


def folded(shared, devices, bodies):
    """What the simulation makes of these messages, in the stated order, where there are this many devices."""
    recipe = alone()._replace(participants=np.arange(devices, dtype=np.int32))
    form = FRUGAL_SERVER.form(settings_of(), ITEMS, 100.0)
    shared.aggregate(recipe, [FRUGAL_SERVER.summand(body, form) for body in sorted(bodies, key=digest)])


def folded_into(settings, enrolled, model, updates):
    """The next version, from plain uploads."""
    return FRUGAL_SERVER.step(settings, model, enrolled, updates)


def digest(body):
    return hashlib.sha256(body).digest()


async def test_cohorts_that_come_as_they_come_are_folded_as_in_the_simulation(store):
    simulated = first_shared(alone(), settings_of().initial_scale)
    async with serving(few(store)) as running:
        people = [await running.device() for _ in HISTORIES[:4]]
        folded(simulated, 4, [await take_part(*one) for one in zip(people[:3], HISTORIES, strict=False)])
        await running.version(1)
    async with serving(store) as running:  # what the first fold has left to remember is in the store
        for device in people:
            device.client = running.client
        people += [await running.device() for _ in HISTORIES[4:]]
        bodies = [await take_part(people[n], HISTORIES[n]) for n in (3, 4, 5)]
        folded(simulated, 6, bodies)
        await running.version(2)
        folded(simulated, 6, [await take_part(people[n], HISTORIES[n]) for n in (0, 2, 4)])
        await running.version(3)
        content = (await running.client.get("/api/v1/model")).content
    with opened(store) as connection:
        kept = model_to_fold(connection).content
    assert np.array_equal(kept.tables["vectors"], simulated.vectors)
    assert np.array_equal(kept.tables["weights"], simulated.weights)
    assert (kept.overall["regulariser"][0], kept.state["received"][0]) == (simulated.regulariser, simulated.received)
    told = decode_frugal_broadcast(content, FACTORS, ITEMS)
    assert (told.version, told.regulariser) == (3, simulated.regulariser)
    assert np.abs(told.codes * told.scales[:, None] - simulated.vectors).max() <= told.scales.max() / 2 * 1.01


async def test_a_client_is_invited_as_often_as_it_has_messages_and_never_twice_to_a_round(store):
    async with serving(few(store, {"target": 2})) as running:
        known, other, *more = await running.devices(4)
        for version in (1, 2):
            ticket = await known.ticket()
            assert await known.ticket() == ticket, "to ask again in a round is no other invitation"
            broadcast = decode_frugal_broadcast((await known.task(ticket)).content, FACTORS, ITEMS)
            await known.send(ticket, encode_frugal_update(message_of(broadcast, [0, 1, 2])))
            assert (await known.work(wait=0)).status_code == 204, "who has reported waits for the next round"
            await take_part(other if version == 1 else more[0], [0, 1, 3])
            await running.version(version)
        await running.open_round(2)
        answer = await known.work(wait=5)
        assert refusal(answer) == (409, "spent")
        assert "invited 2 times" in answer.json()["message"]
        assert (await running.client.get("/api/v1/model?since=0")).status_code == 200, "models are still there for it"
        assert (await other.work(wait=5)).status_code == 200
    counts = dict(stored(store, "SELECT device, invitations FROM devices"))
    assert (counts[known.name], counts[other.name], counts[more[1].name]) == (2, 2, 0)


async def test_invitations_are_remembered_by_a_worker_that_was_started_again(store):
    async with serving(few(store, messages=1)) as running:
        device = await running.device()
        ticket = await device.ticket()
    async with serving(store) as running:
        device.client = running.client
        assert await device.ticket() == ticket, "the same round's, and not counted twice"
        assert stored(store, "SELECT invitations FROM devices") == [(1,)]
        assert stored(store, "SELECT granted FROM grants") == [(1,)]
        await running.ask("POST", "close")
    with opened(store) as connection:
        jump_ahead(connection)
    async with serving(store) as running:
        device.client = running.client
        assert (await device.work(wait=5)).json()["error"] == "spent"


async def test_clients_are_sent_all_that_they_need_and_no_more(store):
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


@pytest.mark.parametrize(
    ("update", "says"),
    [
        (an_update(strengths=np.ones(ITEMS - 1, np.float32)), "a strength for each of the 12 items"),
        (an_update(vector=np.ones(FACTORS + 1, np.float32)), "a vector of 4"),
        (an_update(vector=np.full(FACTORS, np.nan, np.float32)), "not finite"),
        (an_update(strengths=np.full(ITEMS, np.inf, np.float32)), "not finite"),
        (an_update(scale=np.array([1.5], np.float32)), "FrugalUpdate.scale"),
        (an_update(scale=np.array([-0.5], np.float32)), "FrugalUpdate.scale"),
    ],
)
async def test_a_message_that_is_none_is_refused_with_the_reason(store, update, says):
    async with serving(few(store)) as running:
        device = await running.device()
        answer = await device.send(await device.ticket(), encode_frugal_update(update))
    assert refusal(answer) == (422, "malformed")
    assert says in answer.json()["message"]


def test_a_message_is_scaled_down_to_the_longest_that_is_allowed():
    form = FRUGAL_SERVER.form(settings_of(), ITEMS, 2.0)
    long, short = an_update(strengths=np.full(ITEMS, 9, np.float32)), an_update(scale=np.array([0.01], np.float32))
    assert [FRUGAL_SERVER.judge(encode_frugal_update(update), form) for update in (long, short)] == [1, 0]
    kept = FRUGAL_SERVER.summand(encode_frugal_update(long), form)
    assert kept.scale * message_norm(kept.strengths, kept.vector) == pytest.approx(2.0)
    assert FRUGAL_SERVER.summand(encode_frugal_update(short), form).scale == short.scale


@pytest.mark.parametrize("history", [[0], [0, 3, 5]])
def test_a_cohort_in_which_no_client_shares_anything_leaves_the_model_and_is_not_forgotten(history):
    settings = FRUGAL_SERVER.settle(settings_of(), small_world(), None)
    model = first_model(FRUGAL_SERVER.first_content(settings, small_world(), None))
    told = decode_frugal_broadcast(FRUGAL_SERVER.encode(settings, model, model.rows_since(None), 0), FACTORS, ITEMS)
    first = folded_into(settings, 1, model, [message_of(told, history)])
    assert np.array_equal(first.tables["vectors"], model.vectors)
    assert first.overall["regulariser"] == model.content.overall["regulariser"]
    assert np.rint(first.state["counts"]).tolist() == [float(item in history) for item in range(ITEMS)]
    second = folded_into(settings, 2, model.followed_by(first), [message_of(told, history)])
    assert np.isfinite(second.tables["vectors"]).all()
    assert np.abs(second.tables["vectors"][history]).max() > 0, "two people have it now"


def test_a_pull_that_is_too_strong_for_the_first_users_waits_for_more_of_them():
    settings = FRUGAL_SERVER.settle(settings_of(regulariser=2.5), small_world(), None)
    model = first_model(FRUGAL_SERVER.first_content(settings, small_world(), None))
    told = decode_frugal_broadcast(FRUGAL_SERVER.encode(settings, model, model.rows_since(None), 0), FACTORS, ITEMS)
    moved = []
    for number in range(12):
        content = folded_into(settings, 99, model, [message_of(told, [0, 1, 2])] * 2)
        assert content.state["received"] == 2 * (number + 1), "anyone who has spoken is not forgotten"
        assert np.isfinite(content.tables["vectors"]).all()
        moved.append(not np.array_equal(content.tables["vectors"], model.vectors))
        model = model.followed_by(content)
        if moved[-1]:
            break
    assert (moved[0], moved[-1]) == (False, True)


def test_messages_that_weigh_nothing_change_nothing():
    settings = FRUGAL_SERVER.settle(settings_of(), small_world(), None)
    model = first_model(FRUGAL_SERVER.first_content(settings, small_world(), None))
    weightless = [an_update(scale=np.array([0], np.float32))] * 3
    content = folded_into(settings, 9, model, weightless)
    assert np.array_equal(content.tables["vectors"], model.vectors)
    assert content.state["received"] == 0


def people_of(histories):
    users = [f"person-{n}" for n, history in enumerate(histories) for _ in history]
    return Interactions.from_columns(users, [f"item-{item:02d}" for history in histories for item in history])


def test_a_federation_can_start_from_a_trained_model_and_new_users_add_to_it():
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
    told = decode_frugal_broadcast(FRUGAL_SERVER.encode(settings, model, model.rows_since(None), 0), FACTORS, ITEMS)
    after = folded_into(settings, 1, model, [message_of(told, [0, 1, 2, 11])])
    assert after.state["received"][0] == 31
    assert (
        np.rint(after.state["counts"]).tolist()
        == (content.state["counts"] + np.isin(range(ITEMS), [0, 1, 2, 11])).tolist()
    )
    before, now = (vectors @ vectors.T for vectors in (model.vectors, after.tables["vectors"]))
    assert np.linalg.norm(now - before) < 0.35 * np.linalg.norm(before)


@pytest.mark.parametrize(
    ("given", "trained", "error", "says"),
    [
        ({"factors": ITEMS + 1}, None, SettingError, "only 12 items"),
        ({}, object(), ModelError, "something else"),
    ],
)
def test_a_federation_that_cannot_be_is_refused(given, trained, error, says):
    with pytest.raises(error, match=says):
        FRUGAL_SERVER.settle(settings_of(**given), small_world(), trained)


def test_a_suggestion_that_clients_cannot_follow_is_not_made(store):
    suggested = {"sharing": "all", "pi": 0.3, "basis": "history"}
    spec = FederationSpec(data=small_world, source="small", method="frugal", plain=True, suggested_policy=suggested)
    with pytest.raises(SettingError, match="fixed-subset or randomized-response is needed"):
        open_store(store, spec)
