"""Minimum support: the first message carries counts, later ones only the items that enough users have."""

from dataclasses import replace

import numpy as np
import pytest
from tests.squares_worlds import squares_federation, update_of
from tests.worlds import random_world

import federank as fr
from federank.errors import BadMessage, DataError, SettingError
from federank.federation import wire
from federank.methods.frugal import reference
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.communication import count_frugal_communication
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, check_frugal_update, supported_items
from federank.methods.frugal.records import FrugalModel
from federank.methods.frugal.reference import FrugalClients
from federank.methods.frugal.wire import encode_frugal_broadcast, encode_frugal_update

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
    compiled.play(fast, fast.recipe.rounds)
    reference.play(plain, plain.recipe.rounds)
    np.testing.assert_array_equal(fast.weights > 0, plain.weights > 0)
    scores = [compiled.home_vectors(played) @ played.item_vectors.T for played in (fast, plain)]
    np.testing.assert_allclose(*scores, atol=2e-2 if fast.recipe.as_codes else 1e-3)


@pytest.mark.parametrize("name", ["spectral", "cohorts", "noise"])
def test_rounds_may_be_cut_anywhere(name):
    one, two = federation(**SETTINGS[name]), federation(**SETTINGS[name])
    compiled.play(one, one.recipe.rounds, threads=2)
    for _ in range(two.recipe.rounds):
        compiled.play(two, 1)
    np.testing.assert_array_equal(one.item_vectors, two.item_vectors)


def test_items_of_fewer_users_have_no_vector():
    played = federation()
    compiled.play(played, 3)
    np.testing.assert_array_equal(played.weights > 0, ENOUGH)
    np.testing.assert_array_equal(played.item_vectors.any(axis=1), ENOUGH)


def test_what_only_few_have_changes_no_later_message():
    # Two users who differ in unsupported items alone send the same messages after the first.
    rare, common = np.flatnonzero(~ENOUGH), np.flatnonzero(ENOUGH)[:9]
    played = federation()
    compiled.play(played, 2)
    broadcast = played.shared.distribute(played.recipe)
    sent = []
    for extra in (rare[:1], rare[-4:]):
        profile = np.sort(np.concatenate((common, extra))).astype(np.int32)
        sent.append(wire.values(update_of(played.recipe, broadcast, profile)))
    np.testing.assert_equal(*sent)


def test_messages_name_counts_first_and_then_the_supported_items():
    played = federation()
    fleet, shared = FrugalClients(played), played.shared
    shapes = []
    for number in range(3):
        broadcast = shared.distribute(played.recipe)
        updates = list(fleet.train(fleet.choose(number), broadcast))
        shapes.append((len(broadcast.items), updates[0].strengths.shape, updates[0].vector.shape))
        shared.aggregate(played.recipe, updates)
    few = int(ENOUGH.sum())
    assert shapes == [(0, (ITEMS,), (0,)), (few, (few,), (5,)), (few, (few,), (5,))]


def test_bytes_are_those_of_the_messages():
    played = federation(dropout=0.3, min_support=6)
    recipe, shared = played.recipe, played.shared
    fleet, up, down = FrugalClients(played), 0, 0
    for number in range(recipe.rounds):
        clients, broadcast = fleet.choose(number), shared.distribute(recipe)
        answers = list(fleet.train(clients, broadcast))
        shared.aggregate(recipe, answers)
        up += sum(len(encode_frugal_update(update)) for update in answers)
        down += len(clients) * len(encode_frugal_broadcast(broadcast, ITEMS))
    down += PEOPLE.n_users * len(encode_frugal_broadcast(shared.distribute(recipe), ITEMS))
    supported = len(supported_items(recipe, shared.weights))
    counted = count_frugal_communication(recipe, PEOPLE.n_users, len(PEOPLE), recipe.rounds, supported)
    assert (counted["up"]["bytes"], counted["down_dense"]["bytes"]) == (up, down)


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
