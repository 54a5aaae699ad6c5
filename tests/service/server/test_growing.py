"""A catalogue that grows: new rows start low, a round that is under way ends first, and every worker follows."""

import io
import json

import numpy as np
import pytest
from safetensors.numpy import load
from tests.service.federations import (
    ITEMS,
    KEEP,
    NO_LIMITS,
    PATIENT,
    in_a_loop,
    opened,
    same_bits,
    serving,
    small_world,
    some_update,
    stored,
)
from tests.service.server.test_few_messages import few, settings_of
from tests.service.server.test_operating import ask, play

from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.methods.fpl.wire import decode_broadcast
from federank.methods.frugal.method import FrugalPrivate, compute_frugal, send
from federank.methods.frugal.server import FRUGAL_SERVER
from federank.methods.frugal.settings import frugal_recipe
from federank.methods.frugal.wire import decode_frugal_broadcast, encode_frugal_update
from federank.privacy.policy import SharedProfile
from federank.service.operator import recommender_of
from federank.service.server.bootstrap import Demand, open_store, renew_admin_token
from federank.service.server.growing import begins_with, checked_items
from federank.service.server.logs import Log
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings
from federank.service.server.store.versions import model_to_fold
from federank.service.server.store.writer import all_actions, is_unbroken

NEW = [
    {"id": "new-0", "title": "The first new one", "categories": ["Museum"]},
    {"id": "new-1"},
]
ONE = {"target": 1} | PATIENT


async def add(running, items=NEW):
    return await ask(running, "POST", "/items", json={"items": items})


def learning_of(*items):
    """An Update that moves these items."""
    update = some_update(5, rows=len(items))
    return update._replace(items=np.array(items, dtype=np.int32))


def message_to(told, history):
    """What a device of few messages with this history sends, whatever the size of the catalogue."""
    profile, n_items = np.array(history, dtype=np.int32), len(told.items)
    everything = np.ones(len(profile), dtype=np.bool_)
    device = FrugalPrivate(0, profile, SharedProfile(profile, everything, everything, True), 1)
    recipe = frugal_recipe(settings_of(messages=5), np.ones(1, dtype=np.int64), n_items)
    return encode_frugal_update(send(recipe, device, *compute_frugal(recipe, device, told)))


def low(model):
    """Whether the new items have no vector and a bias that few of the others have less than."""
    biases = model.content.tables["biases"]
    return (model.vectors[ITEMS:] == 0).all() and (biases[ITEMS:] < np.median(biases[:ITEMS])).all()


@in_a_loop
async def test_items_are_added_once_the_round_under_way_has_ended_and_rounds_go_on(store):
    async with serving(store, ONE, KEEP) as running:
        await play(running, 2)
        device = await running.device()
        ticket = await device.ticket()
        assert await add(running) == (202, {"waiting": 2})
        assert (await ask(running, "GET", "/items"))[1] == {"waiting": 2, "items": ITEMS, "version": 2}
        assert (await device.send(ticket, some_update(7))).status_code == 201, "who has a ticket may still use it"
        await running.until(lambda view: len(view.model.changed) == ITEMS + 2)
        extended = running.service.latest.model
        assert extended.version == 4
        assert low(extended)
        assert (await ask(running, "GET", "/items"))[1] == {"waiting": 0, "items": ITEMS + 2, "version": 4}
        facts = (await running.client.get("/api/v1/federation")).json()
        catalogue = (await running.client.get("/api/v1/catalogue")).json()
        assert (facts["items"], facts["catalogue"]) == (ITEMS + 2, catalogue["digest"])
        assert catalogue["items"][ITEMS:] == [NEW[0], {"id": "new-1", "title": "new-1", "categories": []}]
        told = decode_broadcast((await running.client.get("/api/v1/model?since=3")).content, 3, ITEMS + 2)
        assert told.items.tolist() == [ITEMS, ITEMS + 1], "who has the version before is sent the new rows alone"
        work = (await device.work()).json()
        assert work["items"] == ITEMS + 2
        update = some_update(9, items=ITEMS + 2, rows=4)
        assert (await device.send(work["ticket"], update)).status_code == 201
        await running.version(5)
        await running.until(lambda view: view.folded == 4)
        lines = (await ask(running, "GET", "/log"))[1]
        assert [line["action"] for line in lines["actions"]] == ["established", "add-items", "items added"]
        assert lines["unbroken"]


@in_a_loop
async def test_a_round_that_nobody_has_a_ticket_of_goes_on_with_the_larger_catalogue(store):
    async with serving(store, ONE) as running:
        await running.open_round()
        assert (await add(running))[0] == 202
        await running.until(lambda view: view.round.version == 1)
        assert stored(store, "SELECT number, version, state FROM rounds") == [(0, 1, "open")]
        device = await running.device()
        answer = await device.take_part(some_update(1, items=ITEMS + 2))
        assert answer.status_code == 201
        await running.version(2)


@in_a_loop
async def test_a_paused_federation_grows(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        await ask(running, "POST", "/rounds", json={"paused": True})
        await play(running, 1)
        await add(running)
        await running.until(lambda view: len(view.model.changed) == ITEMS + 2)
        assert running.service.latest.round.number == 0, "no round has begun meanwhile"


@in_a_loop
async def test_a_rollback_to_a_version_from_before_keeps_the_new_items_and_they_start_low(sqlite_store):
    async with serving(sqlite_store, ONE, KEEP) as running:
        await play(running, 2)
        earlier = running.service.latest.model
        await add(running)
        await running.version(3)
        device = await running.device()
        assert (await device.take_part(learning_of(ITEMS, ITEMS + 1))).status_code == 201
        await running.version(4)
        assert not (running.service.latest.model.vectors[ITEMS:] == 0).all(), "they were learnt"
        assert (await ask(running, "POST", "/rollback", json={"version": 2}))[0] == 200
        await running.version(5)
        now = running.service.latest.model
        assert same_bits(now.vectors[:ITEMS], earlier.vectors)
        assert low(now)
        exported = await running.admin.get("/admin/api/v1/export?version=2", headers=running.operator)
        about = json.loads(exported.headers["X-Export"])
        tables = load(exported.content)
        items = json.loads(running.service.config.catalogue.content)["items"]
        model = recommender_of(about, tables, items[: len(tables["vectors"])])
        assert len(model.item_ids) == ITEMS


@in_a_loop
async def test_another_worker_follows(store):
    async with serving(store, ONE) as running:
        other = open_service(store, TrustSettings(**NO_LIMITS), Log(None))
        await other.start()
        try:
            await running.open_round()
            await add(running)
            await running.until(lambda _: len(other.latest.model.changed) == ITEMS + 2)
            assert other.config.n_items == other.form.n_items == ITEMS + 2
            assert other.config.catalogue.digest == running.service.config.catalogue.digest
        finally:
            await other.stop()


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (None, "A list of 1 to"),
        ([], "A list of 1 to"),
        ([{"id": "item-03"}], "in the catalogue already"),
        ([{"id": "new"}, {"id": "new"}], "in the catalogue already, or twice"),
        ([{"title": "No id"}], "An id is None"),
        ([{"id": True}], "An id is True"),
        ([{"id": "new", "title": "two\nlines"}], "The title of 'new'"),
        ([{"id": "new", "categories": "Museum"}], "a list of words"),
    ],
)
@in_a_loop
async def test_a_list_with_something_wrong_in_it_adds_nothing(sqlite_store, items, says):
    async with serving(sqlite_store, ONE) as running:
        status, told = await add(running, items)
        assert status == 422
        assert says in told["message"]
        assert (await ask(running, "GET", "/items"))[1]["waiting"] == 0
        assert [line["action"] for line in (await ask(running, "GET", "/log"))[1]["actions"]] == ["established"]


def test_ids_are_of_the_kind_that_the_catalogue_has():
    assert checked_items([{"id": "7"}], [1, 2, 3])[0]["id"] == 7
    with pytest.raises(SettingError, match="no integer"):
        checked_items([{"id": "seven"}], [1, 2, 3])
    assert checked_items([{"id": 7}], ["a", "b"])[0]["id"] == "7"


@in_a_loop
async def test_a_federation_of_few_messages_learns_new_items_and_goes_back_across_them(sqlite_store):
    few(sqlite_store, {"target": 2, "minimum": 1}, messages=5)
    with opened(sqlite_store) as connection:
        token = renew_admin_token(connection)
    trust = {"refuse_implausible": True}

    async def cohort(running, devices, histories):
        version = running.service.latest.model.version
        for device, history in zip(devices, histories, strict=True):
            ticket = await device.ticket()
            n_items = len(running.service.latest.model.changed)
            told = decode_frugal_broadcast((await device.task(ticket)).content, 4, n_items)
            answer = await device.send(ticket, message_to(told, history))
            assert answer.status_code == 201, answer.text
        await running.version(version + 1)

    async with serving(sqlite_store, trust=trust, token=token) as running:
        devices = [await running.device() for _ in range(2)]
        await cohort(running, devices, ([0, 1, 2], [0, 1, 3]))
        await add(running)
        await running.until(lambda view: len(view.model.changed) == ITEMS + 2)
        assert (running.service.latest.model.vectors[ITEMS:] == 0).all(), "no one has been seen with them"
        await cohort(running, devices, ([0, 1, ITEMS], [1, 2, ITEMS]))
        assert (running.service.latest.model.vectors[ITEMS] != 0).any(), "two people have it"
        assert (await ask(running, "POST", "/rollback", json={"version": 1}))[0] == 200
        await running.version(4)
        await cohort(running, devices, ([0, 1, 2], [0, 1, ITEMS + 1]))
        assert running.service.latest.model.version == 5
    with opened(sqlite_store) as connection:
        state = model_to_fold(connection).content.state
        assert len(state["counts"]) == len(state["sketch"]) == ITEMS + 2
        assert is_unbroken(all_actions(connection))


def test_where_the_memory_of_a_fold_is_not_by_item_it_stays_as_it_is():
    settings = FRUGAL_SERVER.settings(factors=3, alpha=2.0)
    content = FRUGAL_SERVER.first_content(FRUGAL_SERVER.settle(settings, small_world(), None), small_world(), None)
    extended = FRUGAL_SERVER.extend(settings, content, ITEMS + 2)
    assert extended.state["sketch"].shape == content.state["sketch"].shape
    assert len(extended.tables["weights"]) == len(extended.state["counts"]) == ITEMS + 2


@in_a_loop
async def test_a_store_that_has_grown_opens_with_the_data_that_it_was_begun_with(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        await add(running)
        await running.until(lambda view: len(view.model.changed) == ITEMS + 2)
        content = running.service.config.catalogue.content
    other = Interactions.from_columns(["a"] * 3, ["x", "y", "z"], name="Elsewhere")
    ignored = {}
    for data in (small_world(), other):
        log = io.StringIO()
        open_store(sqlite_store, Demand(data=lambda data=data: data, source=data.name), Log(log))
        ignored[data.name] = [json.loads(line)["flag"] for line in log.getvalue().splitlines()]
    assert ignored == {small_world().name: [], "Elsewhere": ["--data"]}
    assert begins_with(content, content)
