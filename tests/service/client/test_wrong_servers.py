"""What no server can make a client do: malformed answers, older models, restarted and restored federations."""

import json

import numpy as np
import pytest
from safetensors.numpy import save
from tests.service.client.worlds import FACTORS, ITEMS, in_json, packed, rows

from federank.errors import BadAnswer, Refused
from federank.service.client.federation import read_catalogue, read_info
from federank.service.client.store import ClientStore


def model_with(**changes):
    arrays = {
        "items": np.arange(ITEMS, dtype=np.int32),
        "vectors": np.zeros((ITEMS, FACTORS), np.float32),
        "biases": np.zeros(ITEMS, np.float32),
    } | changes
    return packed({name: array for name, array in arrays.items() if array is not None}, 0, 0)


HOSTILE_MODELS = {
    "not a number": model_with(vectors=np.full((ITEMS, FACTORS), np.nan, np.float32)),
    "infinite biases": model_with(biases=np.full(ITEMS, np.inf, np.float32)),
    "too many factors": model_with(vectors=np.zeros((ITEMS, FACTORS + 1), np.float32)),
    "doubles": model_with(vectors=np.zeros((ITEMS, FACTORS))),
    "items descend": model_with(items=np.arange(ITEMS, dtype=np.int32)[::-1].copy()),
    "foreign items": model_with(items=np.arange(ITEMS, dtype=np.int32) + 1),
    "negative items": model_with(items=np.arange(ITEMS, dtype=np.int32) - 1),
    "no biases": model_with(biases=None),
    "no safetensors": b"\xff" * 200,
    "nothing": b"",
    "another version": rows(range(ITEMS), 0, 5),
    "another round": rows(range(ITEMS), 5, 0),
    "no metadata": save({"items": np.arange(3, dtype=np.int32)}),
    "a giant": bytes(10 << 20),
}


@pytest.mark.parametrize("kind", HOSTILE_MODELS)
def test_malformed_model_is_refused(home, kind):
    before = home.everything()
    home.federation.fault("GET", "/tasks", (200, {}, HOSTILE_MODELS[kind]))
    with pytest.raises(BadAnswer):
        home.take_part(1)
    assert home.federation.uploads == []
    assert home.everything() == before


def test_older_model_is_refused(home):
    home.take_part(3)
    before = home.everything()
    home.federation.version = 1
    sent = len(home.federation.uploads)
    with pytest.raises(BadAnswer):
        home.take_part(1)
    assert len(home.federation.uploads) == sent
    assert home.everything() == before


def test_round_of_a_lagging_worker_is_skipped(home):
    home.take_part(3)
    older = in_json(home.federation.ticket() | {"ticket": "older", "round": 1, "version": 1})
    home.federation.fault("GET", "/work", *[older] * 3)
    assert home.take_part(1) == 1
    assert sum("older model" in note for note in home.notes) == 3
    assert all(ticket != "older" for ticket, _ in home.federation.uploads)


def begin_again(federation):
    """Another federation at the same address: it has no device, no version and no round of the old one."""
    federation.federation_id, federation.version, federation.uploads = "e" * 32, 0, []
    federation.fault("POST", "/clients", in_json({"client": "d2", "token": "t2"}, 201))


def assert_keeps(before, after):
    """The history, the seed and the ledger of a client."""
    assert after["profile"] == before["profile"]
    assert dict(after["kept"])["policy"] == dict(before["kept"])["policy"]
    assert {row[0] for row in before["ledger"]} <= {row[0] for row in after["ledger"]}


def test_restarted_federation_is_joined_again(home):
    home.take_part(3)
    before = home.everything()
    home.sql("INSERT INTO pending VALUES (1, 'on its way to the old one', 2, x'00')")
    begin_again(home.federation)
    asked = len(home.federation.asked)
    assert home.take_part(1) == 1
    assert any("begun again" in note for note in home.notes)
    assert_keeps(before, home.everything())
    assert home.read(ClientStore.identity).token == "t2"
    assert home.model().version == 0
    assert ("GET", "/api/v1/model") in home.federation.asked[asked:], "the full model, and nothing laid over the old"
    assert [ticket for ticket, _ in home.federation.uploads] == ["ticket4"]
    assert home.read(ClientStore.rounds) == 1


def test_client_unknown_to_a_restored_store_enrols_again(home):
    home.take_part(3)
    federation, before = home.federation, home.everything()
    unknown = in_json({"error": "unknown-client", "message": "Unknown."}, 401)
    federation.fault("GET", "/work", unknown)
    federation.fault("POST", "/clients", in_json({"client": "d3", "token": "t3"}, 201))
    asked = len(federation.asked)
    assert home.take_part(1) == 1
    assert any("enrols again" in note for note in home.notes)
    assert home.read(ClientStore.identity).token == "t3"
    assert_keeps(before, home.everything())
    assert home.read(ClientStore.rounds) == 4, "its vector goes on from where it was"
    assert ("GET", "/api/v1/model") not in federation.asked[asked:], "and so does its model"
    federation.fault("GET", "/work", unknown, unknown)
    with pytest.raises(Refused, match="Unknown"):
        home.take_part(1)


def test_failed_enrolment_changes_nothing(home):
    home.take_part(1)
    before = home.everything()
    begin_again(home.federation)
    home.federation.fault("GET", "/model", (200, {}, HOSTILE_MODELS["not a number"]))
    with pytest.raises(BadAnswer):
        home.take_part(1)
    assert home.everything() == before


def work(**changes):
    usual = {"ticket": "t", "round": 0, "version": 0, "deadline_seconds": 9, "most_rows": 9}
    return json.dumps(usual | changes).encode()


NO_WORK = [b"[]", b"{}", b"not json", b"[" * 100_000, work().decode().encode("utf-16")]
NO_WORK += [work(ticket=5), work(ticket="t\r\nHost: x"), work(round=-1), work(version=True), work(most_rows=None)]
NO_WORK += [work(deadline_seconds=wrong) for wrong in (10**400, -1, "x")]


@pytest.mark.parametrize("ticket", NO_WORK)
def test_malformed_work_is_refused(home, ticket):
    home.federation.fault("GET", "/work", (200, {}, ticket))
    with pytest.raises(BadAnswer):
        home.take_part(1)
    assert home.federation.uploads == []


def test_another_catalogue_is_refused(home):
    home.federation.fault("GET", "/federation", in_json(home.federation.info() | {"catalogue": "x"}))
    with pytest.raises(BadAnswer):
        home.take_part(1)


@pytest.mark.parametrize(
    "recipe",
    [{"factors": 0}, {"learning_rate": -1}, {"triples": 10**9}, {"order": "random"}, {}]
    + [{name: 10**400} for name in ("learning_rate", "user_regulariser", "initial_scale", "factors", "triples")],
)
def test_wrong_settings_are_refused(home, recipe):
    info = home.federation.info()
    info["recipe"] = info["recipe"] | recipe if recipe else None
    home.federation.fault("GET", "/federation", in_json(info))
    with pytest.raises(BadAnswer):
        home.take_part(1)


@pytest.mark.parametrize(
    ("name", "rate"),
    [("learning_rate", 1e38), ("learning_rate", 1e300), ("learning_rate", 10**300), ("positive_regulariser", 10**300)],
    ids=["large", "huge", "huge and whole", "a huge regulariser"],
)
def test_diverging_settings_send_nothing(home, name, rate):
    info = home.federation.info()
    info["recipe"][name] = rate
    home.federation.fault("GET", "/federation", in_json(info))
    before = home.read(ClientStore.vector, FACTORS)
    with pytest.raises(BadAnswer, match="out of range"):
        home.take_part(1)
    assert home.federation.uploads == []
    np.testing.assert_array_equal(home.read(ClientStore.vector, FACTORS), before)


def test_names_have_no_control_characters(home):
    info = home.read(ClientStore.identity).info
    catalogue = home.federation.catalogue()
    catalogue["items"][0] |= {"title": "\x1b[2Jgone", "categories": ["a\nb"]}
    read = read_catalogue(json.dumps(catalogue).encode(), info)
    assert (read.titles[0], read.categories[0]) == (" [2Jgone", ["a b"])
    assert read_info(json.dumps(home.federation.info() | {"name": "\x07x"}).encode()).name == " x"


@pytest.mark.parametrize(
    "change", [{"digest": "x"}, {"items": []}, {"items": [{"id": 1}] * ITEMS}, {"items": [5] * ITEMS}]
)
def test_wrong_catalogue_is_refused(home, change):
    info = home.read(ClientStore.identity).info
    with pytest.raises(BadAnswer):
        read_catalogue(json.dumps(home.federation.catalogue() | change).encode(), info)
