"""What the page says and does about messages whose rounds have not ended, were aggregated, or were discarded."""

import tempfile

import pytest
from playwright.sync_api import expect
from tests.service.helper.helpers import HelperProcess
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


@pytest.mark.parametrize(
    ("story", "seconds"),
    [
        ([], 0),
        (["aggregated"], 0),
        (["discarded"], 30),
        (["aggregated", "discarded", "discarded"], 60),
        (["discarded", "not used", "discarded", "not used"], 60),
        (["discarded", "discarded", "aggregated"], 0),
        (["discarded"] * 7, 1920),
        (["discarded"] * 60, 3600),
    ],
)
def test_the_page_waits_as_long_as_the_python_device(node, story, seconds):
    now = 50_000_000
    rounds = [{"at": place, "ended": 1000 * now, "outcome": word} for place, word in enumerate(story)]
    uploads = [Upload("ticket", place, None, WORDS[word], now) for place, word in enumerate(story)]
    with conversing(node, "outcomes.mjs", PAGE / "device" / "outcomes.js") as ask:
        for later in (-100, 0, 10, 4000):
            found = ask({"rounds": rounds[::-1], "now": 1000 * (now + later)})
            assert found["wait"] == 1000 * wait_after(uploads, now + later).left
            assert found["wait"] == 1000 * min(seconds, max(0, seconds - later))
            assert not found["isWaiting"]


def test_the_page_waits_for_the_last_round_alone(node):
    """Earlier pages left messages as received where the server reads them; they do not keep this one from going on."""
    with conversing(node, "outcomes.mjs", PAGE / "device" / "outcomes.js") as ask:
        rounds = [{"at": 1, "outcome": "received"}, {"at": 2, "outcome": "aggregated"}]
        assert not ask({"rounds": rounds, "now": 0})["isWaiting"]
        assert ask({"rounds": [*rounds, {"at": 3, "outcome": "received"}], "now": 0})["isWaiting"]


def outcomes(kept):
    return [played["outcome"] for played in sorted(kept["rounds"], key=lambda played: played["at"])]


def of_the_server(server):
    """The states of rounds that have taken a message, in order."""
    query = "SELECT r.state FROM uploads u JOIN rounds r ON r.number = u.round ORDER BY u.round"
    return [state for (state,) in server.rows(query)]


@pytest.mark.slow
def test_a_message_is_received_until_its_round_is_aggregated(visit, tmp_path):
    with serving(tmp_path, rounds=LONG) as server:
        one, other = (visit(server).open().pick(4) for _ in range(2))
        one.take_part().wait_for_rounds(1)
        one.page.wait_for_timeout(2500)  # it is asked about meanwhile
        assert (outcomes(one.stored()), of_the_server(server)) == (["received"], ["open"])
        assert any(request.url.endswith("/outcome") for request in one.requests)
        one.page.get_by_role("button", name="Pause").click()
        other.take_part().wait_for_rounds(1)
        one.wait_until(lambda kept: outcomes(kept) == ["aggregated"])  # also while it takes no part


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpl", "frugal"])
def test_a_discarded_message_that_the_server_has_read_is_not_called_received(visit, tmp_path, method):
    with serving(tmp_path, method=method, rounds=SHORT) as server:
        visitor = visit(server).open().pick(4).take_part()
        visitor.wait_until(lambda kept: outcomes(kept) == ["discarded"])
        [played] = visitor.stored()["rounds"]
        assert of_the_server(server) == ["abandoned"]
        why = ["discarded.uncounted"] if method == "fpl" else ["discarded.read"]
        assert (played["why"], played.get("number")) == (why, None if method == "fpl" else 1)
        expect(visitor.page.locator("#progress")).to_contain_text("1 minute", timeout=PATIENCE)
        visitor.page.wait_for_timeout(3000)  # longer than a round takes
        assert len(of_the_server(server)) == 1
        for seconds in (31, 61):
            before = len(visitor.stored()["rounds"])
            visitor.page.evaluate(EARLIER, seconds)
            visitor.open()  # a wait outlives the page, and ends by the clock
            visitor.wait_until(lambda kept, now=before + 1: outcomes(kept) == ["discarded"] * now)
        assert of_the_server(server) == ["abandoned"] * 3
        expect(visitor.page.locator("#progress")).to_contain_text(
            "2 minutes" if method == "fpl" else "makes no more", timeout=PATIENCE
        )


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    """A helper process for this file's federations."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
        started = HelperProcess(tmp_path_factory.mktemp("helper"), keys).start()
        yield started
        started.stop()


@pytest.mark.slow
@pytest.mark.parametrize("is_proven", [True, False], ids=["proven", "unproven"])
def test_a_discarded_message_counts_unless_the_helper_shows_that_no_sum_has_it(visit, tmp_path, helper, is_proven):
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
            (["discarded.released"], False, False) if is_proven else (["discarded.unproven"], True, True)
        )
        assert server.rows("SELECT invitations FROM devices") == [(0,)]
        guarantee = visitor.page.locator("#promise p").first
        said = "none sent. 1 more was discarded" if is_proven else "1 sent."
        expect(guarantee).to_contain_text(said, timeout=PATIENCE)
        expect(visitor.page.locator("#progress")).to_contain_text("1 minute", timeout=PATIENCE)
