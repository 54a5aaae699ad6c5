"""Another season: its catalogue, quota and end; the model goes on from a version before it, and workers follow."""

import io
import json

import numpy as np
import pytest
from safetensors.numpy import load
from tests.commands import refused
from tests.service.federations import (
    FRUGAL_SERVER,
    ITEMS,
    NO_LIMITS,
    PATIENT,
    opened,
    same_bits,
    serving,
    small_world,
    some_update,
    stored,
)
from tests.service.server.test_few_messages import few, settings_of
from tests.service.server.test_operating import ask, play
from tests.squares_worlds import update_of

from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.federation.server import Content
from federank.methods.fpl.method import FPL
from federank.methods.frugal.settings import FrugalSettings, frugal_recipe
from federank.methods.frugal.wire import decode_frugal_broadcast, encode_frugal_update
from federank.service.operator import recommender_of
from federank.service.server.bootstrap import FederationSpec, open_store, renew_admin_token
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.season_rows import season_content, season_rows
from federank.service.server.seasons import next_items
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings
from federank.service.server.store.seasons import all_seasons, is_resting
from federank.service.server.store.versions import model_to_fold
from federank.service.server.store.writer import all_actions, is_unbroken

ONE = {"target": 1} | PATIENT
KEPT = [{"id": f"item-{number:02d}", "categories": ["Museum" if number % 2 else "Café"]} for number in range(ITEMS)]
NEW = [{"id": "new-0", "title": "A new museum", "categories": ["Museum"]}, {"id": "new-1"}]
NEXT = KEPT[1:] + NEW
"""The first item ends, and two begin."""


async def new_season(running, **spec):
    return await ask(running, "POST", "/seasons", json=spec)


async def in_season(running, number):
    await running.until(lambda _: running.service.config.season.number == number)


def message_to(told, history, messages=5):
    """What a client of few messages with this history sends, whatever the size of the catalogue."""
    recipe = frugal_recipe(settings_of(FrugalSettings, messages=messages), np.ones(1, dtype=np.int64), len(told.items))
    return encode_frugal_update(update_of(recipe, told, history))


async def test_a_season_goes_on_from_the_last_model_with_another_catalogue(store):
    async with serving(store, ONE) as running:
        await play(running, 2)
        device, last = await running.device(), running.service.latest.model
        ticket = await device.ticket()
        status, told = await new_season(running, items=NEXT, until="2999-12-31")
        assert (status, told["number"], told["version"], told["starts_from"]) == (201, 2, 3, 2)
        assert (await device.send(ticket, some_update(7))).status_code == 410, "the open round was discarded"
        await in_season(running, 2)
        info = (await running.client.get("/api/v1/federation")).json()
        catalogue = (await running.client.get("/api/v1/catalogue")).json()
        assert (info["items"], info["catalogue"]) == (ITEMS + 2, catalogue["digest"])
        assert (info["season"]["number"], info["season"]["until"]) == (2, "2999-12-31")
        assert [item["id"] for item in catalogue["items"]] == [item["id"] for item in KEPT + NEW]
        assert [n for n, item in enumerate(catalogue["items"]) if item.get("ended")] == [0]
        before = (await running.client.get("/api/v1/catalogue?season=1")).json()
        assert len(before["items"]) == ITEMS
        model = running.service.latest.model
        assert same_bits(model.vectors[1:ITEMS], last.vectors[1:])
        museums = last.vectors[1::2].astype(np.float64)
        assert np.allclose(model.vectors[ITEMS], museums.mean(axis=0), atol=1e-6)
        assert not model.vectors[0].any(), "an item that has ended is empty"
        assert not model.vectors[ITEMS + 1].any(), "and one without categories starts low"
        work = (await (await running.device()).work()).json()
        assert work["season"] == 2
        answer = await (await running.device()).take_part(some_update(9, items=ITEMS + 2))
        assert answer.status_code == 201
        await running.version(4)
        actions = (await ask(running, "GET", "/log"))[1]
        assert [line["action"] for line in actions["actions"]] == ["established", "season"]
        assert actions["unbroken"]
        listed = (await ask(running, "GET", "/seasons"))[1]["seasons"]
        assert [(one["number"], one["first_version"], bool(one["ended"])) for one in listed] == [
            (1, 0, True),
            (2, 3, False),
        ]


async def test_an_item_that_returns_has_its_number_and_starts_like_a_new_one(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await play(running, 1)
        assert (await new_season(running, items=NEXT))[0] == 201
        assert (await new_season(running, items=KEPT + NEW[:1]))[0] == 201
        await in_season(running, 3)
        items = json.loads(running.service.config.catalogue.content)["items"]
        assert [n for n, item in enumerate(items) if item.get("ended")] == [ITEMS + 1]
        vectors = running.service.latest.model.vectors
        assert np.allclose(vectors[0], vectors[2:ITEMS:2].mean(axis=0), atol=1e-6), "the mean of the other cafés"


async def test_a_season_can_start_from_a_version_of_an_earlier_one(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await play(running, 2)
        earlier = running.service.latest.model
        await new_season(running, items=NEXT)
        await in_season(running, 2)
        device = await running.device()
        assert (await device.take_part(some_update(3, items=ITEMS + 2))).status_code == 201
        await running.version(4)
        assert (await ask(running, "POST", "/rollback", json={"version": 2}))[0] == 404, "it is of another season"
        status, told = await new_season(running, start_from=2)
        assert (status, told["number"], told["starts_from"], told["version"]) == (201, 3, 2, 5)
        await in_season(running, 3)
        now = running.service.latest.model
        assert same_bits(now.vectors[1:ITEMS], earlier.vectors[1:])
        assert now.vectors[ITEMS].any(), "the catalogue is the latest one: its new items start from the mean again"
        exported = await running.admin.get("/admin/api/v1/export?version=2", headers=running.operator)
        about, tables = json.loads(exported.headers["X-Export"]), load(exported.content)
        items = json.loads(running.service.config.catalogue.content)["items"]
        assert len(recommender_of(about, tables, items[: len(tables["vectors"])]).item_ids) == ITEMS


async def test_an_ended_season_begins_no_round_and_the_model_stays(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await play(running, 1)
        device = await running.device()
        ticket = await device.ticket()
        status, told = await ask(running, "POST", "/seasons/end")
        assert (status, told["number"], bool(told["ended"])) == (200, 1, True)
        assert (await device.send(ticket, some_update(1))).status_code == 410
        assert (await device.work(wait=1)).status_code == 204
        assert (await running.client.get("/api/v1/model")).status_code == 200
        await new_season(running)
        assert (await device.take_part(some_update(2))).status_code == 201
        await running.version(3)


async def test_after_its_last_day_a_season_begins_no_round(sqlite_store, monkeypatch):
    async with serving(sqlite_store, ONE) as running:
        await new_season(running, until="2999-12-31")
        with opened(sqlite_store) as connection:
            assert not is_resting(connection)
            monkeypatch.setattr("federank.service.server.store.seasons.today", lambda: "3000-01-01")
            assert is_resting(connection)


async def test_another_worker_follows(store):
    async with serving(store, ONE) as running:
        other = open_service(store, TrustSettings(**NO_LIMITS), Log(None))
        await other.start()
        try:
            await running.open_round()
            await new_season(running, items=NEXT)
            await running.until(lambda _: other.config.season.number == running.service.config.season.number == 2)
            assert other.config.n_items == other.form.n_items == ITEMS + 2
            assert other.config.catalogue.digest == running.service.config.catalogue.digest
        finally:
            await other.stop()


@pytest.mark.parametrize(
    ("spec", "fact"),
    [
        ({"items": []}, "two items"),
        ({"items": [{"id": "elsewhere-1"}, {"id": "elsewhere-2"}]}, "none of the items"),
        ({"items": [KEPT[0], KEPT[0]]}, "item-00"),
        ({"items": [{"title": "No id"}, KEPT[0]]}, "None"),
        ({"items": [KEPT[0], {"id": "new", "title": "two\nlines"}]}, "'new'"),
        ({"items": [KEPT[0], {"id": "new", "categories": "Museum"}]}, "'new'"),
        ({"until": "2020-01-31"}, "2020-01-31"),
        ({"until": "2020-02-31"}, "2020-02-31"),
        ({"uploads": 3}, "fpl"),
        ({"epsilon": 2.0}, "epsilon"),
        ({"start_from": 7}, "7"),
        ({"start_from": True}, "start_from"),
        ({"catalog": []}, "catalog"),
    ],
)
async def test_a_season_with_something_wrong_in_it_changes_nothing(sqlite_store, spec, fact):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        before = stored(sqlite_store, "SELECT name, value FROM metadata ORDER BY name")
        status, told = await new_season(running, **spec)
        assert status == 422
        assert fact in told["message"]
        assert stored(sqlite_store, "SELECT name, value FROM metadata ORDER BY name") == before
        assert stored(sqlite_store, "SELECT number, state FROM rounds") == [(0, "open")]


@pytest.mark.parametrize("epsilon", ["nan", "inf"])
def test_an_epsilon_that_is_no_number_is_refused(epsilon):
    refusal = refused("admin", "--token", "t" * 43, "season", "new", "--epsilon", epsilon)
    assert isinstance(refusal, SettingError)


def test_ids_are_of_the_kind_that_the_catalogue_has():
    known = [{"id": 1}, {"id": 2}]
    assert [item["id"] for item in next_items(known, [{"id": "1"}, {"id": "7"}])] == [1, 2, 7]
    with pytest.raises(SettingError, match="seven"):
        next_items(known, [{"id": 1}, {"id": "seven"}])
    assert next_items([{"id": "a"}], [{"id": "a"}, {"id": 7}])[1]["id"] == "7"


async def test_quotas_count_again_in_a_season_and_it_remembers_what_was_learnt(sqlite_store):
    few(sqlite_store, {"target": 2, "minimum": 1}, messages=1)
    with opened(sqlite_store) as connection:
        token = renew_admin_token(connection)

    async def cohort(running, devices, histories):
        version = running.service.latest.model.version
        for device, history in zip(devices, histories, strict=True):
            ticket = await device.ticket()
            n_items = len(running.service.latest.model.changed)
            told = decode_frugal_broadcast((await device.task(ticket)).content, 4, n_items)
            answer = await device.send(ticket, message_to(told, history))
            assert answer.status_code == 201, answer.text
        await running.version(version + 1)

    async with serving(sqlite_store, token=token) as running:
        devices = [await running.device() for _ in range(2)]
        await cohort(running, devices, ([0, 1, 2], [0, 1, 3]))
        assert (await devices[0].work(wait=1)).status_code == 409, "one upload was the quota"
        assert [(await new_season(running, uploads=many))[0] for many in (0, 1001, 2**64)] == [422] * 3
        status, told = await new_season(running, items=NEXT, uploads=2)
        assert (status, told["uploads"]) == (201, 2)
        await in_season(running, 2)
        assert running.service.selection.invitations == 2
        with opened(sqlite_store) as connection:
            state = model_to_fold(connection).content.state
            assert len(state["counts"]) == len(state["sketch"]) == ITEMS + 2
            assert np.allclose(state["counts"][:4], [0, 2, 1, 1], atol=1e-6), "the first item has ended"
            assert np.isclose(state["counts"][ITEMS], state["counts"][1:ITEMS:2].mean()), "the mean of the museums"
        await cohort(running, devices, ([1, 2, ITEMS], [1, 3, ITEMS]))
        await cohort(running, devices, ([1, 2, ITEMS], [1, 3, ITEMS]))
        assert (await devices[0].work(wait=1)).status_code == 409
        assert (running.service.latest.model.vectors[ITEMS] != 0).any()
    with opened(sqlite_store) as connection:
        assert [season.uploads for season in all_seasons(connection)] == [1, 2]
        assert is_unbroken(all_actions(connection))


async def test_a_pruned_season_leaves_its_metadata_and_no_versions(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await play(running, 2)
        assert (await ask(running, "POST", "/seasons/prune", json={"season": 1}))[0] == 422, "it is the current one"
        await new_season(running)
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(2,)]
        status, told = await ask(running, "POST", "/seasons/prune", json={"season": 1})
        assert (status, told["pruned"]) == (200, True)
        listed = (await running.client.get("/api/v1/seasons")).json()["seasons"]
        assert [season["pruned"] for season in listed] == [True, False]
        assert stored(sqlite_store, "SELECT version FROM versions ORDER BY version") == [(3,)]
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        assert (await new_season(running, start_from=2))[0] == 422
        assert (await running.client.get("/api/v1/catalogue?season=1")).status_code == 200
        assert (await ask(running, "POST", "/seasons/prune", json={"season": 9}))[0] == 422


def test_a_mean_is_of_the_same_categories_or_of_those_that_share_one():
    content = Content({"vectors": np.arange(6, dtype=np.float32).reshape(3, 2), "biases": np.zeros(3, np.float32)})
    then = [{"id": 0, "categories": ["a"]}, {"id": 1, "categories": ["a", "b"]}, {"id": 2, "categories": ["c"]}]
    now = [*then, {"id": 3, "categories": ["a"]}, {"id": 4, "categories": ["b"]}, {"id": 5, "categories": ["d"]}]
    rows = season_rows(then, now)
    assert {row: alike.tolist() for row, alike in rows.begun.items()} == {3: [0], 4: [1], 5: []}
    vectors = season_content(SERVER_METHODS["fpl"], FPL(factors=2, triples=1), content, rows).tables["vectors"]
    assert vectors.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3], [0, 0]]


def test_a_season_begins_without_negative_zeros():
    content = Content({"vectors": np.array([[-0.0, 1.0], [0.0, -1.0]], np.float32), "biases": np.zeros(2, np.float32)})
    items = [{"id": 0, "categories": []}, {"id": 1, "categories": []}]
    rows = season_rows(items, items)
    begun = season_content(SERVER_METHODS["fpl"], FPL(factors=2, triples=1), content, rows).tables["vectors"]
    assert not np.signbit(begun[0, 0])
    assert begun.tolist() == [[0, 1], [0, -1]]


def test_where_the_memory_of_a_fold_is_not_by_item_it_stays_as_it_is():
    settings = FRUGAL_SERVER.kind(factors=3, alpha=2.0, min_support=1)
    settings = FRUGAL_SERVER.settle(settings, small_world(), None)
    content = FRUGAL_SERVER.first_content(settings, small_world(), None)
    extended = FRUGAL_SERVER.extend(settings, content, ITEMS + 2)
    assert extended.state["curvature"].shape == content.state["curvature"].shape == (3, 3)
    assert len(extended.tables["weights"]) == len(extended.state["counts"]) == ITEMS + 2


async def test_a_store_in_a_later_season_opens_with_the_data_that_it_was_begun_with(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        await new_season(running, items=NEXT)
    other = Interactions.from_columns(["a"] * 3, ["x", "y", "z"], name="Elsewhere")
    ignored = {}
    for data in (small_world(), other):
        log = io.StringIO()
        open_store(sqlite_store, FederationSpec(data=lambda data=data: data, source=data.name), Log(log))
        ignored[data.name] = [json.loads(line)["flag"] for line in log.getvalue().splitlines()]
    assert ignored == {small_world().name: [], "Elsewhere": ["--data"]}
