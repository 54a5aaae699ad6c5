"""A browser that plays frugal: a handful of messages in its lifetime, and recommendations for all of it."""

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, serving
from tests.service.web.questions import CLOSE
from tests.service.web.test_faults import assert_sent_once
from tests.squares_worlds import read_broadcast, read_update

from federank._numerics.topn import gram_matrix
from federank.methods.frugal.objective import Objective, residuals, solve_user

pytestmark = pytest.mark.slow

FACTORS, MESSAGES = 8, 3
ONE_MESSAGE = {"messages": 1, "min_support": 1}  # with more support, a first message only counts


@pytest.fixture
def frugal(tmp_path):
    """A federation of three messages a lifetime."""
    with serving(tmp_path, method="frugal") as server:
        yield server


def model_of(server, n_items):
    broadcast = read_broadcast(server.get("model").content, FACTORS, n_items)
    return np.ascontiguousarray(broadcast.vectors), broadcast.weights, broadcast.regulariser


def solved(vectors, weights, regulariser, profile):
    gram = gram_matrix(vectors, weights)
    objective = Objective(np.float32(1), np.float32(1))
    return objective, solve_user(objective, regulariser, vectors, weights, gram, profile)


def numbers_of(server, ids):
    items = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    return items, np.array(sorted(items.index(one) for one in ids), dtype=np.int32)


def wait_until_spent(visitor):
    expect(visitor.page.locator('#leaves [data-key="change"]')).to_have_count(0, timeout=PATIENCE)
    return visitor.wait_until(lambda kept: kept["pending"] == [])


def test_quota_bounds_messages(frugal, visit):
    visitor = visit(frugal).open().pick(6).share("half")
    wait_until_spent(visitor.take_part())
    assert_sent_once(visitor, frugal)
    kept = visitor.stored()
    assert sorted(played["number"] for played in kept["rounds"]) == [1, 2, 3]
    visitor.open()
    assert len(visitor.stored()["rounds"]) == MESSAGES
    other = wait_until_spent(visit(frugal).open().pick(4).take_part())  # no one is left to change the model
    assert frugal.get("status").json()["version"] > MESSAGES, "another client was counted after this one had finished"
    other.close()
    visitor.open()
    items, history = numbers_of(frugal, [entry["id"] for entry in kept["history"]])
    vectors, *rest = model_of(frugal, len(items))
    _, home = solved(vectors, *rest, history)
    scores = vectors @ home
    scores[history] = -np.inf
    assert visitor.recommended() == [items[item] for item in np.argsort(-scores, kind="stable")[:5]]


def test_message_is_pythons_without_withheld_items(frugal, visit):
    told = frugal.get("federation").json()
    vectors, weights, regulariser = model_of(frugal, told["items"])
    visitor = visit(frugal).open().pick(6).share("half")
    named = set(visitor.page.locator(".side.out .tile").evaluate_all("all => all.map((one) => one.dataset.item)"))
    visitor.take_part().wait_for_rounds(1)
    kept = visitor.stored()
    [first] = [played for played in kept["rounds"] if played["number"] == 1]
    assert set(first["liked"]) == named
    assert len(named) == 3
    _, profile = numbers_of(frugal, first["liked"])
    objective, vector = solved(vectors, weights, regulariser, profile)
    [(body,)] = frugal.rows("SELECT body FROM uploads WHERE round = ?", first["round"])
    update = read_update(bytes(body), FACTORS, told["items"])
    np.testing.assert_allclose(update.vector, vector, **CLOSE)
    np.testing.assert_allclose(update.strengths, residuals(objective, vectors, vector, profile), **CLOSE)
    assert update.scale == pytest.approx(len(profile) ** -told["recipe"]["activity"])
    ledger = {entry["id"]: entry["times_liked"] for entry in kept["ledger"]}
    assert set(ledger) == {one for played in kept["rounds"] for one in played["liked"]}


def test_lost_message_is_repeated(visit, tmp_path):
    with serving(tmp_path, method="frugal", settings=ONE_MESSAGE, rounds={"deadline": 60.0}) as server:
        visitor = visit(server).open().pick(5)
        visitor.context.route("**/update", lambda route: route.abort())
        visitor.take_part()
        visitor.wait_until(lambda kept: len(kept["pending"]) == 1)
        [pending] = visitor.stored()["pending"]
        visitor.context.unroute("**/update")
        wait_until_spent(visitor)
        assert [bytes(body) for (body,) in server.rows("SELECT body FROM uploads")] == [bytes(pending["body"])]
        assert_sent_once(visitor, server)


def test_more_messages_than_agreed_are_not_sent(visit, tmp_path):
    with serving(tmp_path, method="frugal", settings=ONE_MESSAGE) as server:
        visitor = visit(server).open().pick(5).take_part()
        wait_until_spent(visitor)
        told = server.get("federation").json()
        told["recipe"]["messages"] = 99
        visitor.context.route("**/api/v1/federation", lambda route: route.fulfill(json=told))
        wait_until_spent(visitor.open().go("leaves"))
        assert len(server.rows("SELECT body FROM uploads")) == 1


def test_no_plain_message_goes_to_a_federation_of_another_kind(frugal, visit):
    visitor = visit(frugal)
    told = frugal.get("federation").json() | {"uploads": "of another kind"}
    visitor.context.route("**/api/v1/federation", lambda route: route.fulfill(json=told))
    visitor.open().pick(4).go("leaves")
    expect(visitor.page.locator("#doing")).to_be_visible()
    assert visitor.page.locator('#leaves [data-key="go"], #leaves [data-key="pause"]').count() == 0
    assert len(visitor.recommended()) == 5
    assert {request.method for request in visitor.requests} == {"GET"}
