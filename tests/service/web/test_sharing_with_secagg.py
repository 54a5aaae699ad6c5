"""Browsers that take part where no single server can read a message: a real leader, a real helper, and what is said."""

import math
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.helper.helpers import helper_process
from tests.service.web.browsing import PATIENCE, Visitor, serving

from federank.privacy.accountant import epsilon_of_mu, mu_of_noise
from federank.secagg.proof.parameters import FULL
from federank.secagg.upload import CHECKED, upload_bytes
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow

MESSAGES, COHORT, FACTORS, SIGMA = 2, 2, 8, 2.0
NOTED = (("federation", "items"), ("sums/config", "noises"))
ROUNDS = {"target": COHORT, "minimum": COHORT, "over_selection": 3.0, "deadline": 60.0}


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
    expect(visitor.page.locator('#leaves [data-key="change"]')).to_have_count(0, timeout=PATIENCE)
    return visitor.wait_until(lambda kept: kept["pending"] == [] and Visitor.received(kept) == MESSAGES)


def test_two_browsers_are_added_up(leader, helper, visit):
    one, other = (visit(leader).open().pick(5) for _ in range(2))
    one.go("leaves").page.locator("#how summary").click()
    figure = epsilon_of_mu(mu_of_noise([SIGMA] * MESSAGES), 1e-6)
    expect(one.page.locator("#how dl")).to_contain_text(f"Epsilon {math.ceil(10 * figure) / 10:.1f}")
    assert not any(helper.address in request.url for request in one.requests), "no one was asked before it was needed"
    for visitor in (one, other):
        visitor.take_part()
    for visitor in (one, other):
        spent(visitor)
    expect(one.page.locator(".pips .sent")).to_have_count(2)
    for visitor in (one, other):
        assert [played["outcome"] for played in visitor.stored()["rounds"]] == ["aggregated"] * MESSAGES
    status = leader.get("status").json()
    assert (status["rounds_aggregated"], status["rounds_abandoned"]) == (MESSAGES, 0)
    items, noises = (leader.get(f"{place}").json()[name] for place, name in NOTED)
    rounds = sorted(one.stored()["rounds"], key=lambda played: played["number"])
    sizes = [upload_bytes(numbers, FULL) for numbers in (items, items * (FACTORS - 1))]
    assert [played["bytes"] for played in rounds] == sizes, "a proof comes with each"
    assert [played["noise"] for played in rounds] == noises, "what it told is counted"
    asked = [request for request in one.requests if helper.address in request.url]
    assert {(request.method, request.url) for request in asked} == {("GET", f"{helper.address}/identity")}
    verify(Servers(leader=leader.public, helper=helper.address))  # whatever does not fit is raised
    spent(one.open().go("leaves"))
    assert one.complaints == []


def test_pending_upload_is_split(leader, visit):
    visitor = visit(leader).open().pick(4)
    visitor.context.route("**/update", lambda route: route.abort())
    visitor.take_part().wait_until(lambda kept: len(kept["pending"]) == 1)
    kept = visitor.stored()
    body = bytes(kept["pending"][0]["body"])
    assert body[:8] == b"FRSUMS02"
    share = body[CHECKED.header_bytes : CHECKED.header_bytes + 1024]
    assert len(set(share)) > 0.5 * min(256, len(share)), "a half alone is random numbers"
    assert kept["rounds"][0]["number"] == 1, "it is in the ledger before it has left"
    assert kept["records"]["sums"]["helper_origin"] == leader.options["sums"]["helper"]
    visitor.pause()
    assert len(kept["last"][0]["before"]["values"]) == leader.get("federation").json()["items"], (
        "what it was before, for its owner"
    )
    visitor.page.locator("#curious summary").click()
    expect(visitor.page.locator("#raw code").first).to_be_visible()


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


def test_rejected_message_stays_spent(helper, visit, tmp_path):
    with leading(tmp_path, helper) as server:
        visitor = visit(server).open().pick(4)
        visitor.context.route("**/update", lambda route: route.abort())
        visitor.take_part().wait_until(lambda kept: len(kept["pending"]) == 1)
        visitor.page.evaluate(SPOIL)
        visitor.context.unroute("**/update")
        visitor.wait_until(lambda kept: any(played.get("ended") for played in kept["rounds"]))
        [played] = visitor.stored()["rounds"]
        assert (played["outcome"], played["why"]) == ("left out", ["detail.unopened"])
        visitor.pause()
        expect(visitor.page.locator(".pips .sent")).to_have_count(1)
        expect(visitor.page.locator(".timeline li")).to_have_attribute("data-outcome", "left out")


def test_page_names_both_servers(leader, helper, visit):
    page = visit(leader).open().pick(3).go("leaves").page
    expect(page.locator(".who")).to_have_attribute("data-readers", "together")
    expect(page.locator(".who .warned")).to_be_visible()
    page.locator("#how summary").click()
    fingerprint = httpx.get(f"{helper.address}/identity").json()["fingerprint"]
    for words in (leader.public, helper.address, fingerprint, "at least 2 messages"):
        expect(page.locator("#how dl")).to_contain_text(words)


def test_changed_offer_gets_no_message(leader, visit):
    visitor = visit(leader).open().pick(4)

    def another(route):
        answer = route.fetch()
        text = answer.text().replace('"model":"', '"model":"0', 1)
        route.fulfill(response=answer, body=text)

    visitor.context.route("**/sums/offer*", another)
    visitor.take_part()
    expect(visitor.page.locator("#doing")).to_contain_text("sums.round-config-untaken", timeout=PATIENCE)
    assert visitor.stored()["rounds"] == []


def test_another_helper_is_refused(leader, helper, visit):
    visitor = visit(leader).open().pick(4)
    told = httpx.get(f"{helper.address}/identity").json()
    other = httpx.get(f"{leader.public}/api/v1/sums/config").json()["leader_key"]
    all_users = {"Access-Control-Allow-Origin": "*"}
    visitor.context.route(
        f"{helper.address}/identity", lambda route: route.fulfill(json=told | {"key": other}, headers=all_users)
    )
    visitor.take_part()
    expect(visitor.page.locator("#doing")).to_contain_text("sums.helper-other", timeout=PATIENCE)
    assert not any(request.method == "POST" for request in visitor.requests), "no one was told of this device"


def test_another_list_of_items_is_refused(leader, visit):
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
    expect(visitor.page.locator("body")).to_contain_text("sums.another-list", timeout=PATIENCE)
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


def test_weaker_guarantee_is_refused(helper, visit, tmp_path):
    """Begun again at the same address: with as much as before nothing is left to send, with less nothing is sent."""
    for name in ("first", "second", "third", "plain"):
        (tmp_path / name).mkdir()
    with leading(tmp_path / "first", helper, SIGMA) as first:
        visitors = [visit(first).open().pick(4) for _ in range(2)]
        for visitor in visitors:
            invited_once(visitor)
            visitor.take_part()
        for visitor in visitors:
            visitor.wait_for_rounds(1).pause()
            visitor.context.unroute(WORK)
        port = first.options["port"]
    with leading(tmp_path / "second", helper, SIGMA / 2, port=port) as second:
        visitor = visitors[0].open()
        visitor.take_part()
        expect(visitor.page.locator("#doing")).to_contain_text("less-noise", timeout=PATIENCE)
        assert second.get("status").json()["clients"] == 0
        visitor.pause()
    with leading(tmp_path / "third", helper, SIGMA, settings={"messages": 2}, port=port):
        for visitor in visitors:
            visitor.open().take_part()
        spent(visitors[0])
        assert sorted(played["number"] for played in visitors[0].stored()["rounds"]) == [1, 2]
    with serving(tmp_path / "plain", method="frugal", port=port):
        visitor = visitors[1].open().go("leaves")
        assert visitor.page.locator('#leaves [data-key="go"], #leaves [data-key="pause"]').count() == 0


def test_absent_helper_costs_nothing(browser, words, tmp_path):
    """A new client cannot join, one that has joined waits: both go on when the helper is back."""
    told = words["en"]["fault.helper-away"]
    for name in ("helper", "leader"):
        (tmp_path / name).mkdir()
    with helper_process(tmp_path / "helper") as helper, leading(tmp_path / "leader", helper) as server:
        joined, new = (Visitor(browser, server.public).open().pick(4) for _ in range(2))
        joined.context.route(WORK, lambda route: route.fulfill(status=204))
        joined.take_part().wait_until(lambda kept: (kept["records"].get("identity") or {}).get("token"))
        helper.kill()
        expect(joined.page.locator("#doing")).to_contain_text(told, timeout=PATIENCE)
        new.take_part()
        expect(new.page.locator("#doing")).to_contain_text(told, timeout=PATIENCE)
        assert not any(request.method == "POST" for request in new.requests)
        for visitor in (joined, new):
            kept = visitor.stored()
            assert (len(kept["history"]), kept["rounds"], kept["pending"]) == (4, [], [])
        helper.start()
        joined.context.unroute(WORK)
        for visitor in (joined, new):
            visitor.wait_for_rounds(1).close()
