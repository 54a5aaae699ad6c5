"""A browser that plays frugal: a handful of messages in its lifetime, and recommendations for all of it."""

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, serving
from tests.service.web.questions import CLOSE
from tests.service.web.test_faults import assert_told_once

from federank.methods.frugal.method import rows_of
from federank.methods.frugal.objective import Objective, gram_matrix, residuals, solve_user
from federank.methods.frugal.wire import decode_frugal_broadcast, decode_frugal_update

pytestmark = pytest.mark.slow

FACTORS, MESSAGES = 8, 3


@pytest.fixture
def frugal(tmp_path):
    """A federation of three messages a lifetime."""
    with serving(tmp_path, method="frugal") as server:
        yield server


def model_of(server, n_items):
    broadcast = decode_frugal_broadcast(server.get("model").content, FACTORS, n_items)
    return np.ascontiguousarray(rows_of(broadcast)), broadcast.weights, broadcast.regulariser


def solved(vectors, weights, regulariser, profile):
    gram = gram_matrix(vectors, weights)
    objective = Objective(np.float32(1), np.float32(1))
    return objective, solve_user(objective, regulariser, vectors, weights, gram, profile)


def numbers_of(server, ids):
    items = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    return items, np.array(sorted(items.index(one) for one in ids), dtype=np.int32)


def wait_until_spent(visitor):
    expect(visitor.page.locator("#progress")).to_contain_text("makes no more", timeout=PATIENCE)
    return visitor.wait_until(lambda kept: kept["pending"] == [])


def test_no_more_messages_leave_than_a_life_has_and_recommendations_go_on(frugal, visit):
    visitor = visit(frugal).open().pick(6).share(50)
    page = visitor.page
    expect(page.locator("#promise p").first).to_contain_text("At most 3 messages, ever; none sent.")
    wait_until_spent(visitor.take_part())
    expect(page.locator("#promise p").first).to_contain_text("At most 3 messages, ever; 3 sent.")
    assert_told_once(visitor, frugal)
    kept = visitor.stored()
    assert sorted(played["number"] for played in kept["rounds"]) == [1, 2, 3]
    visitor.open()
    expect(page.locator("#progress")).to_contain_text("made 3 messages, and makes no more")
    assert len(visitor.stored()["rounds"]) == MESSAGES
    other = wait_until_spent(visit(frugal).open().pick(4).take_part())  # no one is left to change the model
    version = frugal.get("status").json()["version"]
    assert version > MESSAGES, "someone else was heard after this device had fallen silent"
    other.close()
    page.wait_for_function("() => document.querySelector('#status').textContent.includes('Model version')")
    visitor.open()
    expect(page.locator("#recommended li")).to_have_count(10)
    items, history = numbers_of(frugal, [entry["id"] for entry in kept["history"]])
    vectors, *rest = model_of(frugal, len(items))
    _, home = solved(vectors, *rest, history)
    scores = vectors @ home
    scores[history] = -np.inf
    expected = [items[item] for item in np.argsort(-scores, kind="stable")[:10]]
    expect(page.locator("#recommended li").first).to_have_attribute("data-item", expected[0], timeout=PATIENCE)
    assert page.locator("#recommended li").evaluate_all("all => all.map((one) => one.dataset.item)") == expected


def test_a_message_is_the_one_that_python_would_send_and_holds_nothing_that_was_held_back(frugal, visit):
    told = frugal.get("federation").json()
    vectors, weights, regulariser = model_of(frugal, told["items"])
    visitor = visit(frugal).open().pick(6).share(50)
    page = visitor.page
    page.locator("#yours li").first.get_by_role("button", name="Never share").click()
    expect(page.locator("#yours li").first).to_contain_text("stays here")
    visitor.take_part().wait_for_rounds(1)
    kept = visitor.stored()
    never = kept["facts"]["policy"]["neverIds"]
    assert len(never) == 1
    [first] = [played for played in kept["rounds"] if played["number"] == 1]
    assert 0 < len(first["liked"]) <= 3, "half of the five that are not marked, rounded up"
    assert not set(first["liked"]) & set(never)
    _, profile = numbers_of(frugal, first["liked"])
    objective, vector = solved(vectors, weights, regulariser, profile)
    [(body,)] = frugal.rows("SELECT body FROM uploads WHERE round = ?", first["round"])
    update = decode_frugal_update(bytes(body), FACTORS, told["items"])
    np.testing.assert_allclose(update.vector, vector, **CLOSE)
    np.testing.assert_allclose(update.strengths, residuals(objective, vectors, vector, profile), **CLOSE)
    assert update.scale == pytest.approx(len(profile) ** -told["recipe"]["activity"])
    ledger = {entry["id"]: entry["times_liked"] for entry in kept["ledger"]}
    assert set(ledger) == {one for played in kept["rounds"] for one in played["liked"]}


def test_a_message_that_was_lost_is_spent_and_is_the_same_when_it_is_sent_again(visit, tmp_path):
    with serving(tmp_path, method="frugal", settings={"messages": 1}, rounds={"deadline": 60.0}) as server:
        visitor = visit(server).open().pick(5)
        visitor.context.route("**/update", lambda route: route.abort())
        visitor.take_part()
        visitor.wait_until(lambda kept: len(kept["pending"]) == 1)
        [pending] = visitor.stored()["pending"]
        visitor.context.unroute("**/update")
        wait_until_spent(visitor)
        assert [bytes(body) for (body,) in server.rows("SELECT body FROM uploads")] == [bytes(pending["body"])]
        assert_told_once(visitor, server)


def test_a_server_that_allows_more_later_is_not_believed(visit, tmp_path):
    with serving(tmp_path, method="frugal", settings={"messages": 1}) as server:
        visitor = visit(server).open().pick(5).take_part()
        wait_until_spent(visitor)
        told = server.get("federation").json()
        told["recipe"]["messages"] = 99
        visitor.context.route("**/api/v1/federation", lambda route: route.fulfill(json=told))
        visitor.open()
        expect(visitor.page.locator("#progress")).to_contain_text("made 1 message, and makes no more")
        expect(visitor.page.locator("#promise p").first).to_contain_text("At most 1 message, ever; 1 sent.")
        assert len(server.rows("SELECT body FROM uploads")) == 1


def test_only_the_kinds_of_sharing_that_a_message_can_follow_are_offered(frugal, visit):
    visitor = visit(frugal).open()
    visitor.page.get_by_text("Other ways to share").click()
    assert visitor.page.locator("#kinds input").evaluate_all("all => all.map((one) => one.value)") == [
        "fixed-subset",
        "randomized-response",
    ]


def test_where_no_server_may_read_a_message_none_is_sent_that_could_be_read(frugal, visit):
    visitor = visit(frugal)
    told = frugal.get("federation").json() | {"uploads": "of another kind"}
    visitor.context.route("**/api/v1/federation", lambda route: route.fulfill(json=told))
    visitor.open().pick(4).take_part()
    expect(visitor.page.locator("#progress")).to_contain_text("no single server can read")
    expect(visitor.page.locator("#recommended li")).to_have_count(10)
    assert {request.method for request in visitor.requests} == {"GET"}
