"""Minimum support: the first message carries counts, later ones only the items that enough users have."""

from dataclasses import replace

import numpy as np
import pytest
from tests.squares_worlds import played_bytes, squares_federation, update_of
from tests.worlds import random_world

import federank as fr
from federank.errors import BadMessage, DataError, SettingError
from federank.federation import wire
from federank.methods.frugal import engines
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.communication import count_communication
from federank.methods.frugal.engines import FrugalClients, added_up
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, check_frugal_update
from federank.methods.frugal.records import FrugalModel

ITEMS, SUPPORT = 90, 9
PEOPLE = random_world(users=80, items=ITEMS, interactions=1100, seed=4).compact()
COUNTS = np.bincount(PEOPLE.items, minlength=ITEMS)
ENOUGH = COUNTS >= SUPPORT
SETTINGS = {
    "spectral": {"messages": 3},
    "cohorts": {"messages": 3, "cohorts": 4},
    "solve": {"messages": 3, "alpha": 2.0, "damping": 0.5},
    "clipped": {"messages": 3, "clip": 0.7},
    "noise": {"messages": 3, "sigma": 0.05, "encoding": "float32", "min_support": 7},
    "own budgets": {"messages": 3, "allowed": np.arange(PEOPLE.n_users) % 4, "min_support": 6},
}


def federation(**settings):
    return squares_federation(PEOPLE, **{"min_support": SUPPORT, "messages": 3} | settings)


@pytest.mark.parametrize("name", SETTINGS)
def test_engines_agree(name):
    fast, plain = federation(**SETTINGS[name]), federation(**SETTINGS[name])
    compiled.play(fast, fast.schedule.rounds)
    engines.play_reference(plain, plain.schedule.rounds)
    np.testing.assert_array_equal(fast.state.weights > 0, plain.state.weights > 0)
    scores = [compiled.home_vectors(played) @ played.state.vectors.T for played in (fast, plain)]
    np.testing.assert_allclose(*scores, atol=2e-2 if fast.method.encoding == "int8" else 1e-3)


@pytest.mark.parametrize("name", ["spectral", "cohorts", "noise"])
def test_rounds_may_be_cut_anywhere(name):
    one, two = federation(**SETTINGS[name]), federation(**SETTINGS[name])
    compiled.play(one, one.schedule.rounds, threads=2)
    for _ in range(two.schedule.rounds):
        compiled.play(two, 1)
    np.testing.assert_array_equal(one.state.vectors, two.state.vectors)


def test_items_of_fewer_users_have_no_vector():
    played = federation()
    compiled.play(played, 3)
    np.testing.assert_array_equal(played.state.weights > 0, ENOUGH)
    np.testing.assert_array_equal(played.state.vectors.any(axis=1), ENOUGH)


def test_what_only_few_have_changes_no_later_message():
    # Two users who differ in unsupported items alone send the same messages after the first.
    rare, common = np.flatnonzero(~ENOUGH), np.flatnonzero(ENOUGH)[:9]
    played = federation()
    compiled.play(played, 2)
    broadcast = played.model
    sent = []
    for extra in (rare[:1], rare[-4:]):
        profile = np.sort(np.concatenate((common, extra))).astype(np.int32)
        sent.append(wire.values(update_of(played.method, broadcast, profile)))
    np.testing.assert_equal(*sent)


def test_messages_name_counts_first_and_then_the_supported_items():
    played, few = federation(), int(ENOUGH.sum())
    shapes = []
    for _ in range(3):
        asked, _ = played.invite()
        updates = dict(zip(asked.tolist(), FrugalClients(played).train(asked, played.model), strict=True))
        shapes.append((updates[0].strengths.shape, updates[0].vector.shape))
        played.finish(asked, added_up(played, updates))
    assert shapes == [((ITEMS,), (0,)), ((few,), (5,)), ((few,), (5,))]


def test_bytes_are_those_of_the_messages():
    played = federation(dropout=0.3, min_support=6)
    up, down = played_bytes(played)
    supported = int(np.count_nonzero(played.state.weights))
    counted = count_communication(federation(dropout=0.3, min_support=6), len(PEOPLE), 3, supported)
    assert (counted["up"]["bytes"], counted["down_dense"]["bytes"]) == (sum(up), sum(down))


def test_unsupported_items_are_recommended_to_no_one():
    model = fr.Frugal(factors=5, min_support=SUPPORT).fit(PEOPLE)
    assert (model.report["supported_items"], model.report["items"]) == (ENOUGH.sum(), ITEMS)
    table = model.recommend(n=ITEMS)
    listed = np.unique(table.items[table.items >= 0])
    assert ENOUGH[listed].all()


def test_too_few_supported_items_are_an_error():
    with pytest.raises(DataError, match="60"):
        fr.Frugal(min_support=60).fit(PEOPLE)


def test_one_message_cannot_count_and_teach():
    with pytest.raises(SettingError):
        fr.Frugal(messages=1)
    assert fr.Frugal(messages=1, min_support=1).settings.min_support == 1


@pytest.mark.parametrize("wrong", [{"strengths": [0.5] * ITEMS}, {"scale": 0.5}, {"strengths": [1.0]}])
def test_counts_are_checked(wrong):
    right = FrugalUpdate.of(np.ones(ITEMS, np.float32), np.zeros(0, np.float32), np.float32(1))
    check_frugal_update(right, 0, ITEMS)
    changed = {name: np.atleast_1d(np.float32(value)) for name, value in wrong.items()}
    with pytest.raises(BadMessage):
        check_frugal_update(replace(right, **changed), 0, ITEMS)


def test_a_private_client_knows_what_its_federation_publishes_before_any_item_is_supported():
    published = {"factors": 4, "messages": 2, "alpha": 0.0, "unobserved_weight": 1.0, "activity": 0.0, "min_support": 5}
    made = Frugal.announced(published, 90, secure=True)
    assert made.public_settings() == published | {"clip": None}
    nothing = FrugalModel(np.zeros((90, 4), np.float32), np.zeros(90, np.float32), np.ones(1))
    assert [made.covering(nothing, stage).n_items for stage in (0, 1)] == [90, 90]
