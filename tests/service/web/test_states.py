"""The state table: in every state the counts on the page are those of the client's ledger and of the server's record.

nothing     picked, nothing agreed          paused      agreed and stopped again
waiting     arrived, its round is open      counted     aggregated, with how many others
discarded   its round had too few           spent       all messages are sent
"""

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, serving
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing

from federank.service.client.outcomes import wait_after
from federank.service.client.state import Upload

FEW = {"target": 2, "minimum": 2, "over_selection": 1.0}
SHORT, LONG = FEW | {"deadline": 1.0}, FEW | {"deadline": 600.0}
WORDS = {"aggregated": "counted", "discarded": "abandoned", "received": None, "not used": "refused"}

EARLIER = """async (seconds) => {
  const request = indexedDB.open("federank");
  await new Promise((resolve) => (request.onsuccess = resolve));
  const rounds = request.result.transaction("rounds", "readwrite").objectStore("rounds");
  const kept = await new Promise((resolve) => (rounds.getAll().onsuccess = ({ target }) => resolve(target.result)));
  for (const round of kept)
    await new Promise((resolve) => {
      const ended = round.ended && round.ended - 1000 * seconds;
      rounds.put({ ...round, ended }, round.ticket).onsuccess = resolve;
    });
  request.result.close();
}"""
"""Lets all rounds have ended this many seconds earlier."""


@pytest.mark.parametrize("period", [0, 60, 86_400])
@pytest.mark.parametrize(
    "story",
    [
        [],
        ["aggregated"],
        ["discarded"],
        ["aggregated", "discarded", "discarded"],
        ["discarded", "not used", "discarded", "not used"],
        ["discarded", "discarded", "aggregated"],
        ["discarded"] * 7,
        ["discarded"] * 60,
    ],
    ids=lambda story: f"{len(story)} {'-'.join(story)[:30]}",
)
def test_the_page_waits_as_long_as_the_python_client(node, story, period):
    now = 50_000_000
    rounds = [{"at": 1000 * (now - 5), "ended": 1000 * now, "outcome": word} for word in story]
    rounds = [played | {"at": played["at"] + place} for place, played in enumerate(rounds)]
    uploads = [Upload("ticket", place, None, WORDS[word], now, now - 5) for place, word in enumerate(story)]
    with conversing(node, "outcomes.mjs", PAGE / "client" / "outcomes.js") as ask:
        for later in (-100, 0, 10, 4000, 100_000):
            found = ask({"rounds": rounds[::-1], "now": 1000 * (now + later), "period": period})
            assert found["wait"] == pytest.approx(1000 * wait_after(uploads, now + later, period).left, abs=100)
            assert not found["isWaiting"]


def test_the_page_waits_for_the_last_round_alone(node):
    """Earlier pages left messages as received where the server reads them; they do not keep this one from going on."""
    with conversing(node, "outcomes.mjs", PAGE / "client" / "outcomes.js") as ask:
        rounds = [{"at": 1, "outcome": "received"}, {"at": 2, "outcome": "aggregated"}]
        assert not ask({"rounds": rounds, "now": 0})["isWaiting"]
        assert ask({"rounds": [*rounds, {"at": 3, "outcome": "received"}], "now": 0})["isWaiting"]


def outcomes(kept):
    return [played["outcome"] for played in sorted(kept["rounds"], key=lambda played: played["at"])]


def of_the_server(server):
    """The states of rounds that have taken a message, in order."""
    query = "SELECT r.state FROM uploads u JOIN rounds r ON r.number = u.round ORDER BY u.round"
    return [state for (state,) in server.rows(query)]


def assert_counts(visitor, server, states, *, alone=True):
    """Page, ledger and server agree: on messages, on what became of them, and on how many items have left."""
    page = visitor.go("leaves").page
    expect(page.locator(".timeline li")).to_have_count(len(states), timeout=PATIENCE)
    kept = visitor.stored()
    shown = page.locator(".timeline li").evaluate_all(
        "all => all.map((one) => [one.dataset.ticket, one.dataset.outcome]).reverse()"
    )
    played = sorted(kept["rounds"], key=lambda played: played["at"])
    assert shown == [[entry["ticket"], entry["outcome"]] for entry in played]
    assert [entry["outcome"] for entry in played] == states
    words = {"received": "open", "aggregated": "aggregated", "discarded": "abandoned"}
    if alone:
        assert of_the_server(server) == [words[state] for state in states]
    left = {entry["id"] for entry in kept["ledger"] if entry["real"]}
    assert page.locator("#lock").inner_text().strip().startswith(str(len(left)) if left else "Nothing")
    if states:
        assert f"{len(left)} of your {len(kept['history'])} " in page.locator("#leaves-lead").inner_text()
        ids = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
        assert left <= set(ids)


@pytest.mark.slow
def test_message_waits_for_its_round(visit, tmp_path):
    with serving(tmp_path, rounds=LONG) as server:
        one, other = (visit(server).open().pick(4) for _ in range(2))
        assert_counts(one, server, [])
        one.take_part().wait_for_rounds(1)
        one.page.wait_for_timeout(2500)  # it is asked about meanwhile
        assert any(request.url.endswith("/outcome") for request in one.requests)
        assert_counts(one, server, ["received"])
        one.pause()
        other.take_part().wait_for_rounds(1)
        one.wait_until(lambda kept: outcomes(kept) == ["aggregated"])  # also while it takes no part
        assert_counts(one, server, ["aggregated"], alone=False)
        assert [played["uploads"] for played in one.stored()["rounds"]] == [2]
        expect(one.page.locator(".timeline .good")).to_contain_text("1")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpl", "frugal"])
def test_discarded_plain_message_stays_charged(visit, tmp_path, method):
    with serving(tmp_path, method=method, rounds=SHORT) as server:
        visitor = visit(server).open().pick(4).take_part()
        visitor.wait_until(lambda kept: outcomes(kept) == ["discarded"])
        [played] = visitor.stored()["rounds"]
        why = ["detail.uncounted"] if method == "fpl" else ["detail.read"]
        assert (played["why"], played.get("number")) == (why, None if method == "fpl" else 1)
        visitor.page.wait_for_timeout(3000)  # longer than a round takes
        assert_counts(visitor, server, ["discarded"])
        for place, seconds in enumerate((31, 61), start=2):
            visitor.page.evaluate(EARLIER, seconds)
            visitor.open()  # a wait outlives the page, and ends by the clock
            visitor.wait_until(lambda kept, count=place: outcomes(kept) == ["discarded"] * count)
            assert_counts(visitor, server, ["discarded"] * place)
        if method == "frugal":
            expect(visitor.page.locator(".pips .sent")).to_have_count(3)
            assert visitor.page.locator('#leaves [data-key="pause"]').count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_proven", [True, False], ids=["proven", "unproven"])
def test_discarded_message_counts_without_the_helpers_record(visit, tmp_path, helper, is_proven):
    sums = {"helper": helper.address, "sigma": 2.0, "least_cohort": 2}
    settings = {"messages": 2, "factors": 8}
    with serving(tmp_path, method="frugal", settings=settings, rounds=SHORT, sums=sums) as server:
        visitor = visit(server).open().pick(4)

        def without_record(route):
            answer = route.fetch()
            told = answer.json()
            told.pop("record", None)
            route.fulfill(response=answer, json=told)

        if not is_proven:
            visitor.context.route("**/outcome", without_record)
        visitor.take_part().wait_until(lambda kept: outcomes(kept) == ["discarded"])
        [played] = visitor.stored()["rounds"]
        assert (played["why"], "number" in played, "noise" in played) == (
            (["detail.released"], False, False) if is_proven else (["detail.unproven"], True, True)
        )
        assert server.rows("SELECT invitations FROM clients") == [(0,)]
        assert_counts(visitor, server, ["discarded"])
        expect(visitor.page.locator(".pips .sent")).to_have_count(0 if is_proven else 1)


@pytest.mark.slow
def test_nothing_is_sent_after_the_last_day(visit, town, words):
    visitor, until = visit(town), "2020-01-31"

    def ended(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"season": {"number": 1, "until": until}})

    visitor.context.route("**/api/v1/federation", ended)
    over = words["en"]["blocked.season-over"].format(until=until)
    page = visitor.open().pick(3).go("leaves").page
    expect(page.locator("#leaves .warned").last).to_have_text(over)
    visitor.take_part()
    expect(page.locator("#doing")).to_have_text(over)
    assert visitor.stored()["rounds"] == []
