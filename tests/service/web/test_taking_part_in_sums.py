"""Browsers that take part where no single server can read a message: a real leader, a real helper, and what is said."""

import math
import tempfile
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.helper.helpers import HelperProcess
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.conftest import LANGUAGES

from federank.privacy.accountant import epsilon_of_mu, mu_of_noise
from federank.secagg.proof.parameters import FULL
from federank.secagg.proof.upload import HEADER_BYTES, checked_bytes
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow

MESSAGES, COHORT, FACTORS, SIGMA = 2, 2, 8, 2.0
NOTED = (("federation", "items"), ("sums/config", "noises"))
ROUNDS = {"target": COHORT, "minimum": COHORT, "over_selection": 3.0, "deadline": 60.0}


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    """A helper process for all of this file's federations."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
        started = HelperProcess(tmp_path_factory.mktemp("helper"), keys).start()
        yield started
        started.stop()


@contextmanager
def leading(folder, helper, sigma=0.0, least_cohort=COHORT, **options):
    """A leader that has agreed with the helper."""
    sums = {"helper": helper.address, "sigma": sigma, "least_cohort": least_cohort}
    settings = {"messages": MESSAGES, "clip": 4.0} | options.pop("settings", {})
    with serving(folder, method="frugal", settings=settings, rounds=ROUNDS, sums=sums, **options) as server:
        yield server


@pytest.fixture(scope="module")
def leader(tmp_path_factory, helper):
    """One that plays the plan of a guarantee; the others here play Frugal's own recipe, with a clip."""
    own = {"clip": None, "factors": FACTORS}
    with leading(tmp_path_factory.mktemp("leader"), helper, SIGMA, settings=own) as server:
        yield server


def spent(visitor):
    expect(visitor.page.locator("#progress")).to_contain_text("makes no more", timeout=PATIENCE)
    return visitor.wait_until(lambda kept: kept["pending"] == [] and Visitor.received(kept) == MESSAGES)


def test_two_browsers_are_added_up_and_fall_silent_after_their_messages(leader, helper, visit):
    one, other = (visit(leader).open().pick(5) for _ in range(2))
    guarantee = one.page.locator("#promise p").first
    expect(guarantee).to_contain_text("At most 2 counted messages, ever; none sent.")
    figure = epsilon_of_mu(mu_of_noise([SIGMA] * MESSAGES), 1e-6)
    expect(guarantee).to_contain_text(f"is bounded: epsilon {math.ceil(10 * figure) / 10:.1f}.")
    assert not any(helper.address in request.url for request in one.requests), "no one was asked before it was needed"
    for visitor in (one, other):
        visitor.take_part()
    for visitor in (one, other):
        spent(visitor)
    expect(guarantee).to_contain_text("At most 2 counted messages, ever; 2 sent.")
    for visitor in (one, other):
        assert [played["outcome"] for played in visitor.stored()["rounds"]] == ["aggregated"] * MESSAGES
    status = leader.get("status").json()
    assert (status["rounds_folded"], status["rounds_abandoned"]) == (MESSAGES, 0)
    items, noises = (leader.get(f"{place}").json()[name] for place, name in NOTED)
    rounds = sorted(one.stored()["rounds"], key=lambda played: played["number"])
    sizes = [checked_bytes(FULL, numbers) for numbers in (items, items * (FACTORS - 1))]
    assert [played["bytes"] for played in rounds] == sizes, "a proof comes with each"
    assert [played["noise"] for played in rounds] == noises, "what it told is counted"
    asked = [request for request in one.requests if helper.address in request.url]
    assert {(request.method, request.url) for request in asked} == {("GET", f"{helper.address}/identity")}
    verify(Servers(leader=leader.public, helper=helper.address))  # whatever does not fit is raised
    one.open()
    expect(one.page.locator("#progress")).to_contain_text("made 2 counted messages, and makes no more")
    assert one.complaints == []


def test_what_is_kept_until_it_is_sent_is_already_split(leader, visit):
    visitor = visit(leader).open().pick(4)
    visitor.context.route("**/update", lambda route: route.abort())
    visitor.take_part().wait_until(lambda kept: len(kept["pending"]) == 1)
    kept = visitor.stored()
    body = bytes(kept["pending"][0]["body"])
    assert body[:8] == b"FRSUMS02"
    share = body[HEADER_BYTES : HEADER_BYTES + 1024]
    assert len(set(share)) > 0.5 * min(256, len(share)), "a half alone is random numbers"
    assert kept["rounds"][0]["number"] == 1, "it is in the ledger before it has left"
    assert kept["facts"]["sums"]["helper_origin"] == leader.options["sums"]["helper"]
    visitor.page.get_by_role("button", name="Pause").click()


SPOIL = """async () => {
  const database = await new Promise((resolve) => {
    const request = indexedDB.open("federank");
    request.onsuccess = () => resolve(request.result);
  });
  const pending = database.transaction("pending", "readwrite").objectStore("pending");
  const [kept] = await new Promise((resolve) => {
    const request = pending.getAll();
    request.onsuccess = () => resolve(request.result);
  });
  kept.body[100] ^= 1;
  await new Promise((resolve) => (pending.put(kept, kept.ticket).onsuccess = resolve));
  database.close();
}"""
"""Flips a bit of the message that waits to be sent, as a broken disk would."""


def test_a_message_that_is_left_out_is_told_to_its_owner_and_stays_spent(helper, visit, tmp_path):
    with leading(tmp_path, helper) as server:
        visitor = visit(server).open().pick(4)
        visitor.context.route("**/update", lambda route: route.abort())
        visitor.take_part().wait_until(lambda kept: len(kept["pending"]) == 1)
        visitor.page.evaluate(SPOIL)
        visitor.context.unroute("**/update")
        visitor.wait_until(lambda kept: any(played.get("ended") for played in kept["rounds"]))
        [played] = visitor.stored()["rounds"]
        assert (played["outcome"], played["why"]) == ("left out", ["left-out.unopened"])
        visitor.page.get_by_role("button", name="Pause").click()
        expect(visitor.page.locator("#promise p").first).to_contain_text("At most 2 counted messages, ever; 1 sent.")
        expect(visitor.page.locator("#left-tables")).to_contain_text("the helper could not open it")


def test_the_page_says_who_the_two_servers_are_and_that_one_machine_runs_both(leader, helper, visit):
    page = visit(leader).open().page
    expect(page.locator("#promise p").first).to_contain_text("both servers run on this machine")
    page.get_by_text("What does this mean?").click()
    said = page.locator("#promise-in-full")
    fingerprint = httpx.get(f"{helper.address}/identity").json()["fingerprint"]
    for words in (leader.public, helper.address, fingerprint, "at least 2 messages", "Both servers together can read"):
        expect(said).to_contain_text(words)
    expect(page.locator("#talks-to")).to_contain_text(helper.address)


def test_without_noise_no_epsilon_is_claimed(helper, visit, tmp_path):
    with leading(tmp_path, helper) as server:
        page = visit(server).open().page
        expect(page.locator("#promise p").first).to_contain_text("not bounded: this federation adds no noise")
        page.get_by_text("What does this mean?").click()
        assert "epsilon 0" not in page.locator("main").inner_text().lower()
        assert "bounded: epsilon" not in page.locator("main").inner_text()


def test_a_federation_whose_server_reads_messages_is_warned_of(town, visit):
    page = visit(town).open().page
    warned = page.locator("#promise .warned")
    expect(warned).to_have_text("Anyone who runs this federation's server can read every message you send.")


def test_an_offer_that_was_changed_on_its_way_gets_no_message(leader, visit):
    visitor = visit(leader).open().pick(4)

    def another(route):
        answer = route.fetch()
        text = answer.text().replace('"model":"', '"model":"0', 1)
        route.fulfill(response=answer, body=text)

    visitor.context.route("**/sums/offer*", another)
    visitor.take_part()
    expect(visitor.page.locator("#progress")).to_contain_text("The round's offer cannot be taken", timeout=PATIENCE)
    assert visitor.stored()["rounds"] == []


def test_a_helper_that_is_not_who_the_charter_names_is_not_believed(leader, helper, visit):
    visitor = visit(leader).open().pick(4)
    told = httpx.get(f"{helper.address}/identity").json()
    other = httpx.get(f"{leader.public}/api/v1/sums/config").json()["leader_key"]
    all_users = {"Access-Control-Allow-Origin": "*"}
    visitor.context.route(
        f"{helper.address}/identity", lambda route: route.fulfill(json=told | {"key": other}, headers=all_users)
    )
    visitor.take_part()
    expect(visitor.page.locator("#progress")).to_contain_text("One of them is not who it says", timeout=PATIENCE)
    assert not any(request.method == "POST" for request in visitor.requests), "no one was told of this device"


def test_another_list_of_items_than_the_charters_is_not_believed(leader, visit):
    """A leader that swaps two titles for one person would make them say what they did not choose."""
    visitor = visit(leader)

    def swapped(route):
        answer = route.fetch()
        told = answer.json()
        first, second = told["items"][:2]
        first["title"], second["title"] = second["title"], first["title"]
        route.fulfill(response=answer, json=told)

    visitor.context.route("**/api/v1/catalogue*", swapped)
    visitor.page.goto(visitor.address)
    expect(visitor.page.locator("body")).to_contain_text(
        "not the one that the federation config of sums names", timeout=PATIENCE
    )
    assert not any(request.method == "POST" for request in visitor.requests)


WORK = "**/api/v1/work*"


def invited_once(visitor):
    """The first task comes through, and then none: a second message is not made before anyone can pause."""
    tasks = []

    def pass_on(route):
        if tasks:
            return route.fulfill(status=204)
        answer = route.fetch()
        if answer.status == 200:
            tasks.append(answer)
        return route.fulfill(response=answer)

    visitor.context.route(WORK, pass_on)


def test_a_weaker_promise_is_refused_and_messages_count_across_foundings(helper, visit, tmp_path):
    """Begun again at the same address: with as much as before nothing is left to send, with less nothing is sent."""
    for name in ("first", "second", "third", "plain"):
        (tmp_path / name).mkdir()
    with leading(tmp_path / "first", helper, SIGMA) as first:
        visitors = [visit(first).open().pick(4) for _ in range(2)]
        for visitor in visitors:
            invited_once(visitor)
            visitor.take_part()
        for visitor in visitors:
            visitor.wait_for_rounds(1).page.get_by_role("button", name="Pause").click()
            visitor.context.unroute(WORK)
        port = first.options["port"]
    with leading(tmp_path / "second", helper, SIGMA / 2, port=port) as second:
        visitor = visitors[0].open()
        visitor.take_part()
        expect(visitor.page.locator("#progress")).to_contain_text("less noise than it promised", timeout=PATIENCE)
        assert second.get("status").json()["devices"] == 0
        visitor.page.get_by_role("button", name="Pause").click()
    with leading(tmp_path / "third", helper, SIGMA, settings={"messages": 2}, port=port):
        for visitor in visitors:
            visitor.open().take_part()
        spent(visitors[0])
        assert sorted(played["number"] for played in visitors[0].stored()["rounds"]) == [1, 2]
    with serving(tmp_path / "plain", method="frugal", port=port):
        visitor = visitors[1].open()
        visitor.page.get_by_role("button", name="Take part").click()
        expect(visitor.page.locator("#progress")).to_contain_text("would read them", timeout=PATIENCE)


@contextmanager
def helper_of_its_own(folder):
    """A helper process that a test may stop."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
        helper = HelperProcess(folder, keys).start()
        yield helper
        helper.stop()


def says_that_nothing_can_be_sent(visitor, own):
    """Both places say so in plain words; neither has an address."""
    plain = own["sums.helper-unreachable"]
    page = visitor.page
    expect(page.locator("#progress")).to_have_text(own["doing.retrying"].format(reason=plain), timeout=PATIENCE)
    expect(page.locator("#standing")).to_contain_text(plain)
    expect(page.locator("#standing")).not_to_contain_class("on")
    shown = page.locator("#progress").inner_text() + page.locator("#standing").inner_text()
    assert "127.0.0.1" not in shown
    assert "://" not in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_absent_helper_is_explained_and_costs_nothing(browser, words, tmp_path, language):
    """A new client cannot join, one that has joined waits: both go on when the helper is back."""
    own = words[language]
    for name in ("helper", "leader"):
        (tmp_path / name).mkdir()
    with helper_of_its_own(tmp_path / "helper") as helper, leading(tmp_path / "leader", helper) as server:
        joined, new = (Visitor(browser, server.public, locale=language).open().pick(4) for _ in range(2))
        joined.context.route(WORK, lambda route: route.fulfill(status=204))
        joined.take_part().wait_until(lambda kept: kept["facts"]["identity"]["token"])
        helper.kill()
        says_that_nothing_can_be_sent(joined, own)
        new.take_part()
        says_that_nothing_can_be_sent(new, own)
        assert not any(request.method == "POST" for request in new.requests)
        for visitor in (joined, new):
            kept = visitor.stored()
            assert (len(kept["history"]), kept["rounds"], kept["pending"]) == (4, [], [])
            expect(visitor.page.locator("#recommended li")).to_have_count(10)
        helper.start()
        joined.context.unroute(WORK)
        for visitor in (joined, new):
            visitor.wait_for_rounds(1).close()
