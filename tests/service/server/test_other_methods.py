"""A method of another package is served: its own messages, its own server step, and a state that survives a restart.

A client sends one number. The server's step adds the round's numbers to every item's vector, publishes how large the
last round was, and keeps how many uploads there have been, which clients never receive.
"""

import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.service.federations import ITEMS, PATIENT, establish_in, opened, serving, small_world, stored

import federank as fr
from federank import extensions
from federank.errors import BadMessage, StoreError
from federank.federation import wire
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.config import read_config
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.store import versions
from federank.service.server.store.versions import jump_ahead, model_with_state, newest_model


@dataclass(frozen=True)
class Sizes:
    vectors: np.ndarray = fr.array("items", 1)
    size: np.ndarray = fr.array(1, dtype="f8")


@dataclass(frozen=True)
class Memory(Sizes):
    heard: np.ndarray = fr.array(1, dtype="i8")


@dataclass(frozen=True)
class Number:
    number: np.ndarray = fr.array(1)


@dataclass(kw_only=True)
class Sum(fr.Aggregate):
    number: np.ndarray = fr.array(1, dtype="f8")


@dataclass(frozen=True, kw_only=True)
class Counting(fr.FederatedMethod):
    """Numbers are added up."""

    name = "counting"
    records = fr.Records(state=Memory, broadcast=Sizes, update=Number, aggregate=Sum, client=None)
    step: float = fr.setting(0.5, 0)

    def initial_state(self):
        return Memory(np.zeros((self.n_items, 1)), np.zeros(1), np.zeros(1, np.int64))

    def broadcast(self, state):
        return Sizes(state.vectors, state.size)

    def client_update(self, client, broadcast):  # noqa: ARG002
        return fr.ClientResult(Number(np.array([len(client.items)])))

    def add(self, aggregate, update):
        aggregate.number += update.number

    def server_update(self, state, aggregate):
        # How many clients there are shows, so that a test can tell.
        vectors = state.vectors + self.step * aggregate.number * aggregate.enrolled
        return Memory(vectors, np.array([float(aggregate.count)]), state.heard + aggregate.count)


def message(value):
    return wire.encode(Number(np.array([value], np.float32)))


@pytest.fixture
def counting(store, monkeypatch):
    """The address of a store with a federation of the method."""
    monkeypatch.setitem(extensions._registered["methods"], "counting", Counting)
    rounds = {"target": 2, "over_selection": 1.0} | PATIENT
    establish_in(store, Counting(), SERVER_METHODS["counting"], rounds)
    return store


async def play(running, *values):
    await running.upload(*map(message, values))


async def test_method_of_another_package_is_served_over_a_restart(counting):
    async with serving(counting) as running:
        told = await running.get("federation")
        assert (told["method"], told["recipe"]["step"]) == ("counting", 0.5)
        await play(running, 1.0, 3.0)
        await running.version(1)
    async with serving(counting) as running:
        await play(running, 0.25, 0.25)
        await running.version(2)
        content = (await running.client.get("/api/v1/model")).content
    message = wire.decode_rows(Sizes, Counting(n_items=ITEMS), content)
    assert message.version == 2
    assert message.part.vectors.tolist() == [[0.5 * 4.0 * 2 + 0.5 * 0.5 * 4]] * ITEMS, "two clients, then four"
    assert message.part.size.tolist() == [2.0]
    with opened(counting) as connection:
        assert model_with_state(connection).content.state["heard"].tolist() == [4]
        assert newest_model(connection).content.state == {}, "who does not fold does not read it"
        jump_ahead(connection)
        assert model_with_state(connection).content.state["heard"].tolist() == [4]


async def test_state_is_kept_with_newest_and_complete_versions(counting, monkeypatch):
    monkeypatch.setattr(versions, "KEPT_STATES", 2)
    async with serving(counting) as running:
        for version in (1, 2, 3):
            await play(running, 1.0, 1.0)
            await running.version(version)
    rows = stored(counting, "SELECT version, state IS NOT NULL FROM versions ORDER BY version")
    assert [int(version) for version, has_state in rows if has_state] == [0, 2, 3]


async def test_unreadable_model_is_not_published(counting):
    said = io.StringIO()
    async with serving(counting, log=Log(said), trust={"most_norm": 1e39}) as running:
        await play(running, 3e38, 3e38)  # their sum is no 32-bit float
        await running.until(lambda view: view.rejected.get("count") == 1 and view.abandoned == 1)
        assert running.service.latest.model.version == 0
        await play(running, 1.0, 1.0)
        await running.version(1)
        assert np.isfinite(running.service.latest.model.vectors).all()
        status = await running.get("status")
        metrics = await running.metrics()
    assert status["aggregates_rejected"] == 1
    assert "federank_aggregates_rejected 1.0" in metrics
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line["round"] for line in lines if line["event"] == "aggregate rejected"] == [0]
    assert stored(counting, "SELECT state FROM rounds WHERE number = 0") == [("abandoned",)]


def test_federation_does_not_begin_with_an_unreadable_model(store, monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Broken(Counting):
        def initial_state(self):
            return replace(super().initial_state(), vectors=np.full((self.n_items, 1), np.nan))

    monkeypatch.setitem(extensions._registered["methods"], "counting", Broken)
    with pytest.raises(BadMessage, match="finite"):
        establish_in(store, Broken(), SERVER_METHODS["counting"])
    with opened(store) as connection:
        assert read_config(connection) is None


def test_store_keeps_its_method_and_settings(counting):
    for given in ({}, {"method": "fpl"}, {"settings": {"step": 2}}):
        assert open_store(counting, FederationSpec(data=small_world, source="small", names_data=False, **given)) is None
    with opened(counting) as connection:
        config = read_config(connection)
    assert (config.served.name, config.settings.step) == ("counting", 0.5)


def test_unknown_method_is_refused(counting, monkeypatch):
    monkeypatch.delitem(extensions._registered["methods"], "counting")
    with opened(counting) as connection, pytest.raises(StoreError, match="counting"):
        read_config(connection)
