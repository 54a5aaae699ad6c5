"""When things go wrong: a lost network, a lost answer, wrong answers, a full storage.

Nothing is lost, and nothing is sent twice."""

import json
import signal

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import ARRIVED, PATIENCE, serving
from tests.worlds import rows_message

pytestmark = pytest.mark.slow


def assert_sent_once(visitor, server):
    """The server has exactly the messages that the page lists, each once."""
    kept = visitor.stored()
    assert kept["pending"] == []
    listed = [played["ticket"] for played in kept["rounds"] if played["outcome"] in ARRIVED]
    assert len(set(listed)) == len(listed)
    assert len(server.rows("SELECT ticket FROM uploads")) == len(listed)


def rest(visitor):
    """Pause, once nothing is on its way."""
    return visitor.pause().wait_until(lambda kept: kept["pending"] == [])


def test_absent_server_costs_nothing(server, visit, words):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    server.stop(signal.SIGKILL)
    reason = words["en"]["doing.retrying"].format(reason=words["en"]["fault.unreachable"])
    expect(visitor.page.locator("#doing")).to_have_text(reason, timeout=PATIENCE)
    before = visitor.received(visitor.stored())
    server.start()
    visitor.wait_for_rounds(before + 2)
    rest(visitor)
    assert_sent_once(visitor, server)
    assert server.get("status").json()["clients"] == 1


def test_upload_whose_answer_is_lost_is_repeated(server, visit):
    visitor = visit(server).open().pick(5)
    bodies, lost = [], []

    def lose_the_first_answer(route):
        bodies.append(route.request.post_data_buffer)
        if lost:
            return route.continue_()
        lost.append(route.fetch().status)  # it did arrive
        return route.abort()

    visitor.context.route("**/update", lose_the_first_answer)
    visitor.take_part().wait_for_rounds(1)
    assert lost == [201]
    assert bodies[0] == bodies[1]
    visitor.wait_for_rounds(2)
    rest(visitor)
    assert_sent_once(visitor, server)


def test_reload_during_an_upload_repeats_it(visit, tmp_path):
    with serving(tmp_path, rounds={"deadline": 60.0}) as server:
        visitor = visit(server).open().pick(5)
        visitor.context.route("**/update", lambda route: route.abort())
        visitor.take_part()
        visitor.wait_until(lambda kept: len(kept["pending"]) == 1)
        # Without a server nothing can arrive: a page that is being closed may try once more, unseen by any route.
        server.stop(signal.SIGKILL)
        [pending] = visitor.stored()["pending"]
        assert [played["outcome"] for played in visitor.stored()["rounds"]] == ["on its way"]
        assert visitor.stored()["ledger"], "what may leave is written down before it does"
        visitor.page.goto("about:blank")
        sent = []

        def note(route):
            sent.append((route.request.url.split("/")[-2], route.request.post_data_buffer))
            return route.continue_()

        visitor.context.unroute("**/update")
        visitor.context.route("**/update", note)
        server.start()
        visitor.open().wait_for_rounds(1)
        rest(visitor)
        assert sent[0] == (pending["ticket"], bytes(pending["body"]))
        assert [ticket for ticket, _ in sent].count(pending["ticket"]) == 1
        arrived = [bytes(body) for (body,) in server.rows("SELECT body FROM uploads")]
        assert arrived.count(bytes(pending["body"])) == 1
        assert_sent_once(visitor, server)


def test_forbidden_items_are_not_sent_again(server, visit):
    visitor = visit(server).open().pick(5)
    visitor.context.route("**/update", lambda route: route.abort())
    visitor.take_part()
    visitor.wait_until(lambda kept: len(kept["pending"]) == 1)
    [pending] = visitor.pause().stored()["pending"]
    for item in pending["liked"]:
        visitor.go("mine").page.locator(f'#own [data-key="{item}"]').click()
        visitor.page.locator("#item .danger").click()
        visitor.wait_until(lambda kept, item=item: all(owned["id"] != item for owned in kept["history"]))
    visitor.context.unroute("**/update")
    visitor.take_part()
    visitor.wait_until(lambda kept: kept["pending"] == [])
    [first] = [played for played in visitor.stored()["rounds"] if played["ticket"] == pending["ticket"]]
    assert first["outcome"] == "held back"
    assert set(first["liked"]) <= {entry["id"] for entry in visitor.stored()["ledger"] if entry["times_liked"]}


def test_suggestion_of_the_complete_history_is_not_followed(visit, tmp_path):
    suggested = {"sharing": "all", "pi": 0.3, "basis": "history"}
    with serving(tmp_path, suggested_policy=suggested) as server:
        visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
        kept = visitor.stored()
        assert (kept["records"]["policy"]["basis"], kept["records"]["policy"]["sharing"]) == ("shared", "fixed-subset")
        assert len(kept["records"]["vector"]["ids"]) == 2


def test_full_storage_stops_taking_part(server, visit, words):
    visitor = visit(server).open().pick(5)
    devtools = visitor.context.new_cdp_session(visitor.page)
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": server.public, "quotaSize": 1})
    visitor.open()
    visitor.go("leaves").page.locator('#leaves [data-key="go"]').click()
    # The browser looks at its quota now and then, so rounds may go on for a while.
    expect(visitor.page.locator("body")).to_contain_text(words["en"]["fault.storage-full"], timeout=PATIENCE)
    kept = visitor.stored()
    assert len(kept["history"]) == 5
    assert len(server.rows("SELECT ticket FROM uploads")) == len(kept["rounds"]), "all that was sent is recorded"
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": server.public})


ARRAYS = {
    "items": np.arange(150, dtype=np.int32),
    "vectors": np.zeros((150, 8), np.float32),
    "biases": np.zeros(150, np.float32),
}


def broadcast(**spoil):
    """A model of the town, with something wrong."""
    return rows_message(0, 0, **(ARRAYS | spoil))


NOT_A_NUMBER = np.zeros((150, 8), np.float32)
NOT_A_NUMBER[77, 3] = np.nan
WRONG = {
    "not a number": (200, broadcast(vectors=NOT_A_NUMBER), "wire.finite"),
    "too few factors": (200, broadcast(vectors=np.zeros((150, 7), np.float32)), "wire.shape"),
    "some rows only": (200, broadcast(**{name: part[:9] for name, part in ARRAYS.items()}), "detail.rows"),
    "a page of another site": (200, b"<!doctype html><p>Hello</p>", "wire."),
    "nothing": (200, b"", "wire.short"),
    "far too much": (200, bytes(200_000), "detail.too-much"),
    "a fault": (500, b"oops", "busy"),
    "a refusal": (403, b'{"error": "no", "message": "This federation is closed."}', "This federation is closed."),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_is_reported_and_tried_again(town, visit, name):
    status, body, told = WRONG[name]
    visitor = visit(town)
    headers = {"X-Model-Version": "0"}
    visitor.context.route("**/api/v1/model*", lambda route: route.fulfill(status=status, body=body, headers=headers))
    visitor.page.goto(town.public)
    expect(visitor.page.locator("#trouble")).to_contain_text(told, timeout=PATIENCE)
    visitor.context.unroute("**/api/v1/model*")
    visitor.page.get_by_role("button", name="Try again").click()
    visitor.page.wait_for_selector("html[data-ready]")
    assert visitor.page.locator("#trouble").is_hidden()


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("federation", '{"api": 2}', "does not fit the server"),
        ("federation", "not json", "detail.not-json"),
        ("catalogue", '{"digest": "x", "items": []}', "detail.unusable catalogue (150)"),
    ],
)
def test_other_wrong_answers_are_reported_too(town, visit, path, body, told):
    visitor = visit(town)
    visitor.context.route(f"**/api/v1/{path}", lambda route: route.fulfill(body=body))
    visitor.page.goto(town.public)
    expect(visitor.page.locator("#trouble")).to_contain_text(told, timeout=PATIENCE)


def test_round_of_a_lagging_worker_is_skipped(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    offered = []

    def lag(route):
        if len(offered) == 2:
            return route.continue_()
        offered.append("older")
        work = {"ticket": "older", "round": 0, "version": 0, "deadline_seconds": 5, "most_rows": 24}
        return route.fulfill(body=json.dumps(work))

    visitor.context.route("**/api/v1/work*", lag)
    before = visitor.received(visitor.stored())
    visitor.wait_for_rounds(before + 2)
    rest(visitor)
    assert offered == ["older"] * 2
    assert not any("/tasks/older" in request.url for request in visitor.requests)
    assert_sent_once(visitor, server)


def test_late_upload_is_reported_and_not_repeated(server, visit):
    visitor = visit(server).open().pick(5)
    refusal = '{"error": "late", "message": "The round has ended without this Update; wait for the next."}'
    visitor.context.route("**/update", lambda route: route.fulfill(status=410, body=refusal))
    visitor.take_part()
    visitor.wait_until(lambda kept: any("not used" in played["outcome"] for played in kept["rounds"]))
    assert visitor.stored()["rounds"][0]["why"][0] == "fault.refused"
    rest(visitor)
    assert server.rows("SELECT ticket FROM uploads") == []


def test_operators_token_stays_in_the_tab(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    page = visitor.tab()
    page.goto(f"{server.admin}/admin")
    page.get_by_label("Operator's token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#trouble")).to_contain_text("operator's token")
    page.get_by_label("Operator's token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#rounds")).to_contain_text("0: aggregated", timeout=PATIENCE)
    expect(page.locator("#charts svg").first).to_be_visible()
    expect(page.locator("#latency")).to_contain_text("/api/v1/tasks/{ticket}/update")
    page.get_by_role("button", name="Pause rounds").click()
    page.get_by_role("button", name="Go on with rounds").wait_for()
    stores = "() => [Object.values(localStorage), Object.values(sessionStorage), document.cookie]"
    assert page.evaluate(stores) == [[], [server.token], ""]
    page.get_by_role("button", name="Sign out").click()
    assert page.evaluate(stores) == [[], [], ""]


def test_cleared_storage_stops_taking_part(server, visit, words):
    visitor = visit(server).open().pick(4).share("all").take_part().wait_for_rounds(1)
    visitor.page.evaluate(
        "() => new Promise((resolve) => (indexedDB.deleteDatabase('federank').onsuccess = () => resolve()))"
    )
    gone = words["en"]["fault.storage-gone"]
    expect(visitor.page.locator("#trouble")).to_contain_text(gone, timeout=PATIENCE)
    before = len(visitor.requests)
    visitor.go("wall").page.locator("#grid .tile[aria-pressed=false]").first.click()
    expect(visitor.page.locator("#trouble")).to_contain_text(gone)
    assert not [request for request in visitor.requests[before:] if request.method == "POST"]
    visitor.open()
    expect(visitor.page.locator("#lock")).to_have_attribute("data-kind", "closed")
