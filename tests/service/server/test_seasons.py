"""Another season: its catalogue, quota and end; the model goes on from a version before it, and workers follow."""

import io
import json

import numpy as np
import pytest
from safetensors.numpy import load
from tests.commands import refused
from tests.service.federations import (
    FPL_SERVER,
    FRUGAL_SERVER,
    ITEMS,
    ONE,
    opened,
    same_bits,
    serving,
    small_world,
    some_update,
    stored,
)
from tests.service.server.test_few_messages import few, settings_of
from tests.squares_worlds import encode_update, read_broadcast, update_of

from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.federation.method import DataSummary
from federank.federation.server import Content
from federank.methods.fpl.method import FPL
from federank.service.operator import recommender_of
from federank.service.server.bootstrap import FederationSpec, open_store, renew_admin_token
from federank.service.server.logs import Log
from federank.service.server.seasons import next_items, season_content, season_rows
from federank.service.server.store.seasons import all_seasons, is_resting
from federank.service.server.store.versions import model_with_state
from federank.service.server.store.writer import all_actions, is_unbroken

KEPT = [{"id": f"item-{number:02d}", "categories": ["Museum" if number % 2 else "Café"]} for number in range(ITEMS)]
NEW = [{"id": "new-0", "title": "A new museum", "categories": ["Museum"]}, {"id": "new-1"}]
NEXT = KEPT[1:] + NEW
"""The first item ends, and two begin."""


def message_to(told, history, messages=5):
    """What a client of few messages with this history sends, whatever the size of the catalogue."""
    method = settings_of(messages=messages).resolve(DataSummary(len(told.items)))
    return encode_update(update_of(method, told, history))


async def test_season_continues_the_last_model_with_another_catalogue(store):
    async with serving(store, ONE) as running:
        await running.play(2)
        device, last = await running.device(), running.service.latest.model
        ticket = await device.ticket()
        begun = await running.begin_season(items=NEXT, until="2999-12-31")
        assert (begun["number"], begun["version"], begun["starts_from"]) == (2, 3, 2)
        assert (await device.send(ticket, some_update(7))).status_code == 410, "the open round was discarded"
        info, catalogue = await running.get("federation"), await running.get("catalogue")
        assert (info["items"], info["catalogue"]) == (ITEMS + 2, catalogue["digest"])
        assert (info["season"]["number"], info["season"]["until"]) == (2, "2999-12-31")
        assert [item["id"] for item in catalogue["items"]] == [item["id"] for item in KEPT + NEW]
        assert [n for n, item in enumerate(catalogue["items"]) if item.get("ended")] == [0]
        assert len((await running.get("catalogue?season=1"))["items"]) == ITEMS
        model = running.service.latest.model
        assert same_bits(model.vectors[1:ITEMS], last.vectors[1:])
        museums = last.vectors[1::2].astype(np.float64)
        assert np.allclose(model.vectors[ITEMS], museums.mean(axis=0), atol=1e-6)
        assert not model.vectors[0].any(), "an item that has ended is empty"
        assert not model.vectors[ITEMS + 1].any(), "and one without categories starts low"
        assert (await (await running.device()).work()).json()["season"] == 2
        await running.upload(some_update(9, items=ITEMS + 2))
        await running.version(4)
        log = await running.log()
        assert ([line["action"] for line in log["actions"]], log["unbroken"]) == (["established", "season"], True)
        seasons = (await running.ask("GET", "seasons"))[1]["seasons"]
        shown = [(season["number"], season["first_version"], bool(season["ended"])) for season in seasons]
        assert shown == [(1, 0, True), (2, 3, False)]


async def test_returning_item_has_its_number_and_starts_as_new(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.play()
        await running.begin_season(items=NEXT)
        await running.begin_season(items=KEPT + NEW[:1])
        items = json.loads(running.service.config.catalogue.content)["items"]
        assert [n for n, item in enumerate(items) if item.get("ended")] == [ITEMS + 1]
        vectors = running.service.latest.model.vectors
        assert np.allclose(vectors[0], vectors[2:ITEMS:2].mean(axis=0), atol=1e-6), "the mean of the other cafés"


async def test_season_starts_from_a_version_of_an_earlier_one(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.play(2)
        earlier = running.service.latest.model
        await running.begin_season(items=NEXT)
        await running.upload(some_update(3, items=ITEMS + 2))
        await running.version(4)
        assert (await running.ask("POST", "rollback", json={"version": 2}))[0] == 404, "it is of another season"
        begun = await running.begin_season(start_from=2)
        assert (begun["number"], begun["starts_from"], begun["version"]) == (3, 2, 5)
        now = running.service.latest.model
        assert same_bits(now.vectors[1:ITEMS], earlier.vectors[1:])
        assert now.vectors[ITEMS].any(), "the catalogue is the latest one: its new items start from the mean again"
        exported = await running.admin.get("/admin/api/v1/export?version=2", headers=running.operator)
        about, tables = json.loads(exported.headers["X-Export"]), load(exported.content)
        items = json.loads(running.service.config.catalogue.content)["items"]
        assert len(recommender_of(about, tables, items[: len(tables["vectors"])]).item_ids) == ITEMS


async def test_ended_season_begins_no_round(sqlite_store, monkeypatch):
    async with serving(sqlite_store, ONE) as running:
        device = await running.play()
        ticket = await device.ticket()
        status, season = await running.ask("POST", "seasons/end")
        assert (status, season["number"], bool(season["ended"])) == (200, 1, True)
        assert (await device.send(ticket, some_update(1))).status_code == 410
        assert (await device.work(wait=1)).status_code == 204
        assert (await running.client.get("/api/v1/model")).status_code == 200
        await running.begin_season(until="2999-12-31")
        await device.upload(some_update(2))
        await running.version(3)
        with opened(sqlite_store) as connection:
            assert not is_resting(connection)
            monkeypatch.setattr("federank.service.server.store.seasons.today", lambda: "3000-01-01")
            assert is_resting(connection), "after its last day"


async def test_other_workers_follow_a_season(store):
    async with serving(store, ONE) as running, serving(store) as another:
        await running.open_round()
        await running.begin_season(items=NEXT)
        other = another.service
        await another.until(lambda _: other.config.season.number == 2)
        assert other.config.n_items == other.form.n_items == ITEMS + 2
        assert other.config.catalogue.digest == running.service.config.catalogue.digest


WRONG = [
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
]


async def test_wrong_seasons_change_nothing(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        before = stored(sqlite_store, "SELECT name, value FROM metadata ORDER BY name")
        for spec, fact in WRONG:
            status, told = await running.ask("POST", "seasons", json=spec)
            assert (status, fact in told["message"]) == (422, True), spec
        assert stored(sqlite_store, "SELECT name, value FROM metadata ORDER BY name") == before
        assert stored(sqlite_store, "SELECT number, state FROM rounds") == [(0, "open")]


@pytest.mark.parametrize("epsilon", ["nan", "inf"])
def test_epsilon_must_be_finite(epsilon):
    assert isinstance(refused("admin", "--token", "t" * 43, "season", "new", "--epsilon", epsilon), SettingError)


def test_ids_have_the_type_of_the_catalogue():
    known = [{"id": 1}, {"id": 2}]
    assert [item["id"] for item in next_items(known, [{"id": "1"}, {"id": "7"}])] == [1, 2, 7]
    with pytest.raises(SettingError, match="seven"):
        next_items(known, [{"id": 1}, {"id": "seven"}])
    assert next_items([{"id": "a"}], [{"id": "a"}, {"id": 7}])[1]["id"] == "7"


async def test_quotas_count_per_season_and_the_state_continues(sqlite_store):
    few(sqlite_store, {"target": 2, "minimum": 1}, messages=1)
    with opened(sqlite_store) as connection:
        token = renew_admin_token(connection)

    async def cohort(running, devices, histories):
        version = running.service.latest.model.version
        for device, history in zip(devices, histories, strict=True):
            ticket = await device.ticket()
            n_items = len(running.service.latest.model.changed)
            told = read_broadcast((await device.task(ticket)).content, 4, n_items)
            answer = await device.send(ticket, message_to(told, history))
            assert answer.status_code == 201, answer.text
        await running.version(version + 1)

    async with serving(sqlite_store, token=token) as running:
        devices = await running.devices(2)
        await cohort(running, devices, ([0, 1, 2], [0, 1, 3]))
        assert (await devices[0].work(wait=1)).status_code == 409, "one upload was the quota"
        for many in (0, 1001, 2**64):
            assert (await running.ask("POST", "seasons", json={"uploads": many}))[0] == 422
        assert (await running.begin_season(items=NEXT, uploads=2))["uploads"] == 2
        assert running.service.selection.invitations == 2
        with opened(sqlite_store) as connection:
            state = model_with_state(connection).content.state
            assert len(state["counts"]) == len(state["sketch"]) == ITEMS + 2
            assert np.allclose(state["counts"][:4], [0, 2, 1, 1], atol=1e-6), "the first item has ended"
            assert np.isclose(state["counts"][ITEMS], state["counts"][1:ITEMS:2].mean()), "the mean of the museums"
        for _ in range(2):
            await cohort(running, devices, ([1, 2, ITEMS], [1, 3, ITEMS]))
        assert (await devices[0].work(wait=1)).status_code == 409
        assert (running.service.latest.model.vectors[ITEMS] != 0).any()
    with opened(sqlite_store) as connection:
        assert [season.uploads for season in all_seasons(connection)] == [1, 2]
        assert is_unbroken(all_actions(connection))


async def test_pruned_season_keeps_its_metadata_alone(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.play(2)
        assert (await running.ask("POST", "seasons/prune", json={"season": 1}))[0] == 422, "it is the current one"
        await running.begin_season()
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(2,)]
        status, season = await running.ask("POST", "seasons/prune", json={"season": 1})
        assert (status, season["pruned"]) == (200, True)
        assert [season["pruned"] for season in (await running.get("seasons"))["seasons"]] == [True, False]
        assert stored(sqlite_store, "SELECT version FROM versions ORDER BY version") == [(3,)]
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        assert (await running.ask("POST", "seasons", json={"start_from": 2}))[0] == 422
        assert (await running.client.get("/api/v1/catalogue?season=1")).status_code == 200
        assert (await running.ask("POST", "seasons/prune", json={"season": 9}))[0] == 422


def test_new_items_start_from_the_mean_of_their_categories():
    content = Content({"vectors": np.arange(6, dtype=np.float32).reshape(3, 2), "biases": np.zeros(3, np.float32)})
    then = [{"id": 0, "categories": ["a"]}, {"id": 1, "categories": ["a", "b"]}, {"id": 2, "categories": ["c"]}]
    now = [*then, {"id": 3, "categories": ["a"]}, {"id": 4, "categories": ["b"]}, {"id": 5, "categories": ["d"]}]
    rows = season_rows(then, now)
    assert {row: alike.tolist() for row, alike in rows.begun.items()} == {3: [0], 4: [1], 5: []}
    vectors = season_content(FPL_SERVER, FPL(factors=2, triples=1), content, rows).tables["vectors"]
    assert vectors.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3], [0, 0]]


def test_a_season_begins_without_negative_zeros():
    content = Content({"vectors": np.array([[-0.0, 1.0], [0.0, -1.0]], np.float32), "biases": np.zeros(2, np.float32)})
    items = [{"id": number, "categories": []} for number in range(2)]
    begun = season_content(FPL_SERVER, FPL(factors=2, triples=1), content, season_rows(items, items)).tables["vectors"]
    assert not np.signbit(begun[0, 0])
    assert begun.tolist() == [[0, 1], [0, -1]]


def test_state_that_is_not_by_item_is_not_extended():
    settings = FRUGAL_SERVER.kind(factors=3, alpha=2.0, min_support=1)
    settings = FRUGAL_SERVER.settle(settings, small_world(), None)
    content = FRUGAL_SERVER.first_content(settings, small_world(), None)
    extended = FRUGAL_SERVER.extend(settings, content, ITEMS + 2)
    assert extended.state["curvature"].shape == content.state["curvature"].shape == (3, 3)
    assert len(extended.tables["weights"]) == len(extended.state["counts"]) == ITEMS + 2


async def test_store_in_a_later_season_opens_with_its_first_data(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.open_round()
        await running.begin_season(items=NEXT)
    other = Interactions.from_columns(["a"] * 3, ["x", "y", "z"], name="Elsewhere")
    ignored = {}
    for data in (small_world(), other):
        log = io.StringIO()
        open_store(sqlite_store, FederationSpec(data=lambda data=data: data, source=data.name), Log(log))
        ignored[data.name] = [json.loads(line)["flag"] for line in log.getvalue().splitlines()]
    assert ignored == {small_world().name: [], "Elsewhere": ["--data"]}
