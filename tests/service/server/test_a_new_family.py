"""A method of another family can be served: its own messages, its own fold, and a memory that survives a restart.

The family is as small as can be. A device sends one number; the fold adds the round's numbers to every item's vector,
tells devices how large the last round was, and remembers how many messages there have been, which they are never told.
"""

import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.service.federations import ITEMS, PATIENT, in_a_loop, serving, small_world, stored

from federank.errors import BadMessage, ModelError, StoreError
from federank.federation.wire import check_values, decode_parts, encode_parts
from federank.service.server.bootstrap import Demand, establish, open_store
from federank.service.server.config import read_config
from federank.service.server.families.family import Family, Form, Kind
from federank.service.server.families.registry import FAMILIES
from federank.service.server.logs import Log
from federank.service.server.model_versions import Content
from federank.service.server.settings import RoundSettings
from federank.service.server.store import versions
from federank.service.server.store.database import Database
from federank.service.server.store.schema import create_tables
from federank.service.server.store.versions import jump_ahead, model_to_fold, newest_model


@dataclass(frozen=True, kw_only=True)
class CountingSettings:
    step: float = 0.5
    secret: int = 7


def settle(settings, data, trained):
    return settings


def form_of(settings, n_items, most_norm):
    return Form(1, n_items, 1, most_norm, 200)


def recipe(settings, n_items, devices):
    return settings.step, devices


def first_content(settings, data, trained):
    vectors = np.zeros((data.n_items, 1), np.float32)
    return Content({"vectors": vectors}, {"size": np.zeros(1)}, {"heard": np.zeros(1, np.int64)})


def message(value):
    return encode_parts({"number": np.array([value], np.float32)})


def judge(body, form):
    check_values("an Update", "number", decode_parts(body, "an Update", ("number",)).arrays["number"], (1,))
    return 0


def summand(body, form):
    return float(decode_parts(body, "an Update", ("number",)).arrays["number"][0])


def fold(recipe, model, round_number, updates):
    numbers = list(updates)
    heard = model.content.state["heard"] + len(numbers)
    step, devices = recipe
    # How many devices there are shows, so that a test can tell.
    with np.errstate(over="ignore"):
        vectors = model.vectors + np.float32(step * sum(numbers) * devices)
    return Content({"vectors": vectors}, {"size": np.array([float(len(numbers))])}, {"heard": heard})


def encode(settings, model, rows, round_number):
    parts = {"rows": model.vectors[rows], "size": model.content.overall["size"]}
    return encode_parts(parts, {"round": round_number, "version": model.version})


def decode(settings, content, n_items):
    rows = decode_parts(content, "a Broadcast", ("rows", "size"), ("round", "version")).arrays["rows"]
    check_values("a Broadcast", "rows", rows, rows.shape)


COUNTING = Family(
    method="counting",
    settings=CountingSettings,
    federation_settings=("step", "secret"),
    device_settings=("step",),
    defaults={},
    settle=settle,
    first_content=first_content,
    form=form_of,
    recipe=recipe,
    fold=fold,
    encode=encode,
    decode=decode,
    kinds={"plain": Kind(judge, summand)},
)


@pytest.fixture
def counting(store, monkeypatch):
    """The address of a store with a federation of the new family."""
    monkeypatch.setitem(FAMILIES, "counting", COUNTING)
    database = Database(store)
    with database.connection() as connection:
        create_tables(connection)
        rounds = RoundSettings(target=2, over_selection=1.0, **PATIENT)
        establish(connection, CountingSettings(), small_world(), rounds, family=COUNTING)
    database.close()
    return store


async def play(running, *values):
    for value in values:
        device = await running.device()
        assert (await device.take_part(message(value))).status_code == 201


@in_a_loop
async def test_a_federation_of_another_family_learns_and_remembers_over_a_restart(counting):
    async with serving(counting) as running:
        told = (await running.client.get("/api/v1/federation")).json()
        assert (told["method"], told["recipe"]) == ("counting", {"step": 0.5})
        await play(running, 1.0, 3.0)
        await running.version(1)
    async with serving(counting) as running:
        await play(running, 0.25, 0.25)
        await running.version(2)
        content = (await running.client.get("/api/v1/model")).content
    arrays, numbers = decode_parts(content, "a Broadcast", ("rows", "size"), ("version",))
    assert numbers == {"version": 2}
    assert arrays["rows"].tolist() == [[0.5 * 4.0 * 2 + 0.5 * 0.5 * 4]] * ITEMS, "two devices, then four"
    assert arrays["size"].tolist() == [2.0]
    database = Database(counting)
    with database.connection() as connection:
        assert model_to_fold(connection).content.state["heard"].tolist() == [4]
        assert newest_model(connection).content.state == {}, "who does not fold does not read it"
        jump_ahead(connection)
        assert model_to_fold(connection).content.state["heard"].tolist() == [4]
    database.close()


@in_a_loop
async def test_what_a_fold_remembers_is_kept_with_the_newest_versions_and_with_whole_ones(counting, monkeypatch):
    monkeypatch.setattr(versions, "KEPT_STATES", 2)
    async with serving(counting) as running:
        for version in (1, 2, 3):
            await play(running, 1.0, 1.0)
            await running.version(version)
    rows = stored(counting, "SELECT version, state IS NOT NULL FROM versions ORDER BY version")
    assert [int(version) for version, has_state in rows if has_state] == [0, 2, 3]


@in_a_loop
async def test_a_model_that_clients_would_refuse_is_not_published(counting):
    said = io.StringIO()
    async with serving(counting, log=Log(said)) as running:
        await play(running, 3e38, 3e38)  # their sum is no 32-bit float
        await running.until(lambda view: view.rejected.get("count") == 1 and view.abandoned == 1)
        assert running.service.latest.model.version == 0
        await play(running, 1.0, 1.0)
        await running.version(1)
        assert np.isfinite(running.service.latest.model.vectors).all()
        status = (await running.client.get("/api/v1/status")).json()
        metrics = (await running.admin.get("/metrics")).text
    assert status["aggregates_rejected"] == 1
    assert "federank_aggregates_rejected 1.0" in metrics
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line["round"] for line in lines if line["event"] == "aggregate rejected"] == [0]
    assert stored(counting, "SELECT state FROM rounds WHERE number = 0") == [("abandoned",)]


def test_a_federation_does_not_begin_with_a_model_that_clients_would_refuse(store):
    def broken(settings, data, trained):
        return first_content(settings, data, trained)._replace(
            tables={"vectors": np.full((data.n_items, 1), np.nan, np.float32)}
        )

    database = Database(store)
    with database.connection() as connection:
        create_tables(connection)
        family, rounds = replace(COUNTING, first_content=broken), RoundSettings()
        with pytest.raises(ModelError):
            establish(connection, CountingSettings(), small_world(), rounds, family=family)
        assert read_config(connection) is None
    database.close()


@in_a_loop
async def test_an_upload_is_judged_by_its_own_family(counting):
    async with serving(counting) as running:
        device = await running.device()
        answer = await device.take_part(message(float("nan")))
        assert (answer.status_code, answer.json()["error"]) == (422, "malformed")
        assert "number of an Update hold values" in answer.json()["message"]
        assert "not finite" in answer.json()["message"]
    with pytest.raises(BadMessage):
        judge(b"", None)


def test_a_store_keeps_its_method_and_its_settings(counting):
    for given in ({}, {"method": "fpl"}, {"settings": {"step": 2}}):
        assert open_store(counting, Demand(data=small_world, source="small", names_data=False, **given)) is None
    database = Database(counting)
    with database.connection() as connection:
        config = read_config(connection)
    database.close()
    assert (config.family.method, config.settings.step) == ("counting", 0.5)


def test_a_method_that_this_version_does_not_know_is_told_in_a_sentence(counting, monkeypatch):
    monkeypatch.delitem(FAMILIES, "counting")
    database = Database(counting)
    with database.connection() as connection, pytest.raises(StoreError, match="method is counting, and this version"):
        read_config(connection)
    database.close()
