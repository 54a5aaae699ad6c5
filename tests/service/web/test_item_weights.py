"""Item-item weights on the page: the same message and history give Python's scores, and Python's refusals."""

from dataclasses import replace

import numpy as np
import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing

import federank as fr
from federank.errors import BadMessage
from federank.federation.method import Client
from federank.federation.wire import encode
from federank.methods.frugal.item_weights import ItemWeights, no_weights
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.records import FrugalModel

DATA = fr.city(people=300, places=120, checkins=9000, seed=4)
FACTORS = 12
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(scope="module")
def trained():
    return fr.Frugal(item_weights="ridge", factors=FACTORS, min_support=5).fit(DATA)


@pytest.fixture(scope="module")
def page(node):
    with conversing(node, "item_weights.mjs", PAGE / "methods") as ask:
        yield ask


def settings():
    return Frugal(n_items=DATA.n_items, factors=FACTORS, messages=5, min_support=5, activity=0.0)


def low_rank_scores(trained, items):
    model = FrugalModel(trained.item_vectors, trained.item_weights, np.array([trained.regulariser]))
    return settings().scores(model, settings().fold_in(Client(1, 0, 5, items), model)[None])


def answer(page, trained, items, content):
    model = {"vectors": trained.item_vectors.ravel().tolist(), "weights": trained.item_weights.tolist()}
    model |= {"regulariser": trained.regulariser, "version": 5}
    weights = None if content is None else list(content)
    return page({"recipe": settings().public_settings(), "items": items.tolist(), "model": model, "weights": weights})


def scores_of(*asked):
    return np.array([-np.inf if score is None else score for score in answer(*asked)])


@pytest.mark.parametrize("user", [0, 7, 299])
def test_the_page_scores_as_python_does(page, trained, user):
    items = DATA.profiles.of(user)
    scores, low_rank = scores_of(page, trained, items, encode(trained.ridge)), low_rank_scores(trained, items)
    history = np.zeros((1, DATA.n_items), dtype=np.float32)
    history[0, items] = 1
    np.testing.assert_allclose(scores, trained.ridge.scores(history, low_rank)[0], **CLOSE)
    recommended = np.isfinite(scores)
    assert np.abs(scores - low_rank[0])[recommended].max() > 0.1 * np.abs(low_rank[0][recommended]).max()
    np.testing.assert_allclose(scores[recommended], trained._score_users(np.array([user]))[0][recommended], **CLOSE)


@pytest.mark.parametrize("content", [None, encode(no_weights(DATA.n_items))], ids=["none", "empty"])
def test_without_weights_scores_are_of_low_rank(page, trained, content):
    items = DATA.profiles.of(3)
    np.testing.assert_allclose(scores_of(page, trained, items, content), low_rank_scores(trained, items)[0], **CLOSE)


def test_a_broadcast_with_weights_is_read_as_python_reads_it(page):
    method, history = replace(settings(), item_weights="ridge"), DATA.profiles.of(7)
    state = method.initial_state()
    for number in range(7):
        clients = [Client(1, user, number, DATA.profiles.of(user), sent=number) for user in range(DATA.n_users)]
        broadcast = method.as_read(method.broadcast(state))
        sums = method.covering(broadcast, 0).empty()
        for client in clients:
            method.add(sums, method.client_update(client, broadcast).update)
        sums.count = sums.enrolled = DATA.n_users
        state = method.server_update(state, sums)
    every = np.arange(DATA.n_items, dtype=np.int32)
    content = method.write(method.broadcast(state), every, round_number=7, version=7)
    asked = {"recipe": method.public_settings(), "items": history.tolist(), "broadcast": list(content)}
    found = np.array([-np.inf if score is None else score for score in page(asked | {"catalogue": DATA.n_items})])
    model = method.read(content).part
    scores = method.scores(model, method.fold_in(Client(1, 7, 7, history), model)[None])[0]
    np.testing.assert_allclose(found, scores, **CLOSE)
    assert len(model.item_weights.items) > DATA.n_items


def changed(array, place, value):
    copy = array.copy()
    copy[place] = value
    return copy


WRONG = {
    "starts that begin later": lambda good: {"starts": changed(good.starts, 0, 1)},
    "starts that fall": lambda good: {"starts": changed(good.starts, 1, good.starts[-1] + 1)},
    "starts that end early": lambda good: {"starts": changed(good.starts, -1, good.starts[-1] - 1)},
    "starts of fewer targets": lambda good: {"starts": good.starts[:-1]},
    "an item twice": lambda good: {"items": changed(good.items, 1, good.items[0])},
    "an item beyond the catalogue": lambda good: {"items": changed(good.items, good.starts[1] - 1, DATA.n_items)},
    "a code of -128": lambda good: {"codes": changed(good.codes, 0, -128)},
    "fewer codes": lambda good: {"codes": good.codes[:-1]},
    "a negative scale": lambda good: {"scales": changed(good.scales, 0, -1)},
    "a scale that is not a number": lambda good: {"scales": changed(good.scales, 0, np.nan)},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_both_refuse_weights_that_do_not_fit(page, trained, wrong):
    content = encode(replace(trained.ridge, **wrong(trained.ridge)))
    assert answer(page, trained, DATA.profiles.of(3), content) == {"refused": True}
    with pytest.raises(BadMessage):
        ItemWeights.decode(content, DATA.n_items)
