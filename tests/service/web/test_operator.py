"""The operator's page over time: axes with units, clock time, devices that came and went, limits; its tables fold."""

import json
import re

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.conftest import LANGUAGES

pytestmark = pytest.mark.slow

REPORTS = "Uploads per round"
HOUR = 3600
NOON = 1_790_000_000 // (24 * HOUR) * 24 * HOUR + 12 * HOUR


@pytest.fixture
def operator(browser):
    """Someone with the operator's token, on a narrow or wide screen whose clock is that of Greenwich."""
    visitors = []

    def sign_in(server, width=1280, overview=None, **options):
        visitor = Visitor(browser, server.admin, viewport={"width": width, "height": 900}, timezone_id="UTC", **options)
        visitors.append(visitor)
        if overview is not None:
            visitor.context.route("**/overview", lambda route: route.fulfill(body=json.dumps(overview)))
        visitor.page.goto(f"{server.admin}/admin")
        visitor.page.locator("#token").fill(server.token)
        button = visitor.page.locator("#sign-in button", has_text=re.compile("."))
        button.click()  # once its words and its script are there
        visitor.page.locator("#charts figure").first.wait_for()
        return visitor.page

    yield sign_in
    for visitor in visitors:
        visitor.close()


def a_round(number, **told):
    usual = {"version": number, "state": "aggregated", "granted": 12, "reports": 10, "dropouts": 2, "rejected": {}}
    measured = {"bytes": 5000, "clipped": 0, "drift": 0.01, "seconds": 20.0}
    ended = {"ended": NOON + number * 600, "clients": 30 + number, "departures": number}
    return {"number": number} | usual | measured | ended | told


def overview(*rounds, **told):
    """What a server tells its operator."""
    now = {"version": 9, "round": 9, "open": True, "paused": False, "reports": 0, "clients": 40, "left": 3}
    counts = {"waiting": 0, "rounds_aggregated": 9, "rounds_abandoned": 1, "evaluation": [], "trend": []}
    limits = {"limits": {"minimum": 5, "enough": 10, "deadline": 60}}
    return now | counts | limits | {"rounds": list(rounds)[::-1]} | told


def figure(page, title):
    return page.locator("#charts figure, #accuracy figure").filter(has=page.get_by_text(title, exact=True))


def texts(page, title):
    return figure(page, title).locator("text").all_text_contents()


def test_axis_has_its_unit_and_clock_times(operator, town):
    page = operator(town, overview=overview(*(a_round(number) for number in range(7))))
    assert texts(page, "Uploads per round")[:1] == ["clients"]
    assert texts(page, "Duration of aggregated rounds")[:1] == ["seconds"]
    told = texts(page, "Clients in the federation")
    assert [text for text in told if ":" in text] == ["12:00", "12:30", "13:00"]
    assert [text for text in told if re.fullmatch(r"\d+", text)][:3] == ["0", "20", "40"], "round numbers"
    assert told[-2:] == ["13:00", "6"], "the last round, and when it ended"


def test_axis_has_days_or_seconds(operator, town):
    days = [a_round(number, ended=NOON + number * 30 * HOUR) for number in range(3)]
    assert any(re.search(r"\w{3} \d+", text) for text in texts(operator(town, overview=overview(*days)), REPORTS))
    seconds = [a_round(number, ended=NOON + number) for number in range(3)]
    assert "12:00:02" in texts(operator(town, overview=overview(*seconds)), REPORTS)


def test_limits_are_drawn_and_named(operator, town):
    page = operator(town, overview=overview(a_round(0), a_round(1, reports=4, dropouts=8, state="abandoned")))
    named = figure(page, REPORTS).locator("li")
    expect(named).to_have_text(
        ["received", "given a task, no upload", "10 end a round", "below 5 it is discarded"], use_inner_text=True
    )
    assert figure(page, REPORTS).locator("svg[role=img] .chart-limit").count() == 2
    expect(figure(page, "Duration of aggregated rounds")).to_contain_text("its time is up: 60 s")
    words = figure(page, "How far a round moved the model").locator("svg[role=img]").get_attribute("aria-label")
    assert "1 point," in words, "an abandoned round moved nothing, and has no drift"


def test_accuracy_is_drawn_over_versions_with_its_interval(operator, town):
    trend = [
        {"version": 2, "answers": 60, "share": 0.5, "low": 0.3, "high": 1.2},
        {"version": 1, "answers": 55, "share": -0.1, "low": -0.4, "high": 0.2},
    ]
    rounds = [a_round(number) for number in range(3)]
    page = operator(town, overview=overview(*rounds, trend=trend, evaluation=trend))
    told = texts(page, "Held-back items found")
    assert told[0] == "share"
    assert told[-4:] == ["12:00", "version 1", "12:10", "2"], "version 1 came with round 0"
    assert "1.5" not in told, "a share is at most 1"
    page.locator("#judged summary").click()
    expect(page.locator("#judged")).to_contain_text("0.00 to 0.20")
    stars = [entry | {"mae": 0.8, "mae_low": 0.6, "mae_high": 1.0} for entry in trend]
    rated = operator(town, overview=overview(*rounds, trend=stars, evaluation=stars))
    assert texts(rated, "Error of predictions (mean, absolute)")[0] == "stars"
    assert "found" not in rated.locator("#judged").inner_text()


def test_many_rounds_are_folded_away(operator, town):
    rounds = [a_round(number) for number in range(200)]
    judged = [{"version": number, "answers": 9, "share": 0.5, "low": 0.1, "high": 0.9} for number in range(20)]
    page = operator(town, 320, overview(*rounds, evaluation=judged))
    assert page.evaluate("() => document.documentElement.scrollHeight") < 5000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    page.get_by_text("The latest 200 rounds, one by one").click()
    expect(page.locator("#rounds tbody tr")).to_have_count(200)
    with page.expect_response("**/overview", timeout=PATIENCE):
        pass
    expect(page.locator("#rounds-table")).to_have_attribute("open", "")


def test_joining_and_leaving_clients_are_drawn(operator, server, visit):
    def enrol():
        return httpx.post(f"{server.public}/api/v1/clients", json={}).json()["token"]

    gone, *_ = [enrol() for _ in range(3)]
    leave = {"Authorization": f"Bearer {gone}"}
    assert httpx.delete(f"{server.public}/api/v1/clients/me", headers=leave).status_code == 204
    visit(server).open().pick(5).take_part().wait_for_rounds(2)
    page = operator(server)
    label = figure(page, "Clients that joined and left").locator("svg[role=img]").get_attribute("aria-label")
    assert "highest 4 clients" in label
    assert "left, or banned: 1 in all" in label
    page.locator("#rounds summary").click()
    row = page.locator("#rounds tbody tr", has_text="0: aggregated")
    assert re.search(r"\d\d:\d\d", row.locator("td").nth(1).inner_text())


def test_visitors_do_not_get_the_operators_scripts(town):
    for name in ("admin.js", "admin.html", "operator/charts.js", "operator/over_time.js"):
        assert httpx.get(f"{town.public}/{name}").status_code == 404
        assert httpx.get(f"{town.admin}/{name}").status_code == 200
    assert "operator" not in httpx.get(f"{town.public}/files.json").text


def light(page):
    """The state of the line at the top, and how many reasons there are: one in the line, the others below."""
    expect(page.locator("#standing")).to_have_attribute("data-health", re.compile("."))
    shown = page.locator("#health li").count()
    assert page.locator("#health").is_visible() == bool(shown)
    state = page.locator("#standing").get_attribute("data-health")
    return state, shown + (state != "ok")


FAULTS = ("away", "certificate", "full", "identity", "not-allowed", "refuses")
FAILING = ("no-round-aggregated", "model-not-finite", "model-out-of-scale", "leader-behind", "store-away")
ATTENTION = ("rounds-discarded", "aggregates-refused", "no-recent-round", "uploads-refused", "disk-low")
REASONS = dict.fromkeys(ATTENTION, "attention")
REASONS |= dict.fromkeys((*FAILING, *(f"helper-{fault}" for fault in FAULTS)), "failing")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_light_follows_the_servers_state(operator, town, words, language):
    reasons = [{"code": code, "state": state, "count": 3, "of": 5} for code, state in REASONS.items()]
    for state in ("failing", "attention"):
        listed = [reason for reason in reasons if reason["state"] == state]
        page = operator(town, overview=overview(health={"state": state, "reasons": listed}), locale=language)
        assert light(page) == (state, len(listed))
        expect(page.locator("#standing")).to_contain_text(words[language]["health.attention"].removesuffix("{why}"))
        for place in ("#standing", "#health"):
            assert not re.search(r"\{\w*\}|" + "|".join(REASONS), page.locator(place).inner_text())
    well = {"state": "ok", "reasons": []}
    assert light(operator(town, overview=overview(health=well))) == ("ok", 0)
    paused = operator(town, overview=overview(health=well, paused=True))
    expect(paused.locator("#standing")).to_have_attribute("data-health", "")


def test_discarded_rounds_are_failing(operator, tmp_path):
    rounds = {"target": 2, "minimum": 2, "deadline": 0.05, "over_selection": 1.0}
    with serving(tmp_path, rounds=rounds) as server:
        token = httpx.post(f"{server.public}/api/v1/clients", json={}).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        while server.get("status").json()["rounds_abandoned"] < 5:
            httpx.get(f"{server.public}/api/v1/work?wait=5", headers=headers, timeout=60)
        page = operator(server)
        expect(page.locator("#standing")).to_have_attribute("data-health", "failing", timeout=PATIENCE)
        assert light(page) == ("failing", 1)
