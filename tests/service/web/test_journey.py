"""The journey, against `make visit` as shipped: on a phone and a desk, light and dark, in every language.

Posters, three taps, shelves with reasons; a sheet that shows what would go out, half a minute to stop it, a report that
agrees with the server's record; another visit without a network; nothing left behind.
"""

import json
import re

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Visitor
from tests.service.web.test_neighbourhood import make_visit, running
from tests.service.web.test_without_a_network import wait_until_kept

pytestmark = pytest.mark.slow

FORMS = [
    ("phone", "light", "it"),
    ("phone", "dark", "de"),
    ("phone", "dark", "en"),
    ("desk", "light", "de"),
    ("desk", "dark", "it"),
    ("desk", "light", "en"),
]
SCREENS = {
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "desk": {"viewport": {"width": 1280, "height": 900}},
}
LOCALES = {"en": "en-GB", "it": "it-CH", "de": "de-AT"}
WIDE = "() => document.documentElement.scrollWidth > window.innerWidth"
OWN_WORDS = """() => document.body.innerText.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length"""
"""How many words a state has, everything that can be seen counted."""
MOST_WORDS = 250
ENDED = ("aggregated", "discarded")
SHIFTS = """() => {
  window.shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
}"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    with running(make_visit(), tmp_path_factory.mktemp("demo")) as started:
        yield started


@pytest.fixture(scope="module")
def company(demo):
    """The demo, once its simulated clients have had ten rounds aggregated."""
    demo.wait_until(lambda status: status["version"] >= 10)
    return demo


def test_no_film_is_hidden_after_ten_rounds(company):
    """What the first model recommends stays there: the bounds on malicious clients let the demo's rounds be."""
    [(page, token)] = re.findall(r"operator's page is (\S+), its token (\S+)", company.printed)
    overview = httpx.get(f"{page}/api/v1/overview", headers={"Authorization": f"Bearer {token}"}).json()
    assert overview["rounds_aggregated"] >= 10
    assert overview["hidden_items"] == []


@pytest.mark.parametrize(("screen", "scheme", "language"), FORMS)
def test_from_posters_to_what_would_go_out(company, browser, words, screen, scheme, language):
    look = {"color_scheme": scheme, "locale": LOCALES[language]} | SCREENS[screen]
    visitor = Visitor(browser, company.address, **look)
    page, own = visitor.page, words[language]
    page.add_init_script(f"({SHIFTS})()")
    visitor.open()
    assert page.evaluate("() => document.documentElement.lang") == language
    assert page.locator("#grid .tile").first.bounding_box()["y"] < 330
    assert page.evaluate(OWN_WORDS) <= MOST_WORDS
    assert page.evaluate("() => window.shift") < 0.1

    # Three taps and a press: recommendations, with reasons.
    for place in (0, 4, 8):
        visitor.tap(page.locator("#grid .tile").nth(place))
    page.locator("#go").click()
    expect(page.locator("#shelves .card[data-item]")).to_have_count(5)
    expect(page.locator("#shelves .why").first).to_be_visible()
    assert page.locator("#shelves .shelf").count() >= 2
    assert page.evaluate(OWN_WORDS) <= MOST_WORDS
    assert not page.evaluate(WIDE)

    # What would go out is shown before anything does; half a minute is left to stop it.
    page.locator("#tabs a[href='#leaves']").click()
    expect(page.locator(".who")).to_have_attribute("data-readers", "together")
    assert page.locator(".side .tile").count() == 3
    assert page.evaluate(OWN_WORDS) <= MOST_WORDS
    assert not page.evaluate(WIDE)
    page.locator('#leaves [data-key="go"]').click()
    expect(page.locator("#hold-words")).to_be_visible()
    assert page.evaluate(OWN_WORDS) <= MOST_WORDS
    page.locator('[data-key="stop"]').click()
    page.locator('#leaves [data-key="go"]').wait_for()
    assert visitor.stored()["rounds"] == []
    expect(page.locator("#lock")).to_contain_text(own["lock.nothing"].split("{")[0].strip())
    visitor.close()


def test_record_agrees_with_the_server(company, browser, words):
    visitor = Visitor(browser, company.address, service_workers="allow").open().pick(5)
    page = visitor.page
    named = set(visitor.share("few").page.locator(".side.out .tile").evaluate_all("a => a.map((b) => b.dataset.item)"))
    agreed = page.evaluate("() => Date.now()")
    # On a busy machine a message may come too late for its round: the server has none of it, and the next one waits.
    visitor.take_part().wait_until(lambda kept: any(one["outcome"] in ENDED for one in kept["rounds"])).pause()
    kept = visitor.stored()
    assert min(one["at"] for one in kept["rounds"]) - agreed >= 30_000, "half a minute to change one's mind"
    assert all(set(one["liked"]) == named for one in kept["rounds"])
    ledger = {one["round"]: (one["outcome"], one["bytes"]) for one in kept["rounds"] if one["outcome"] in ENDED}
    assert ledger == company.record_of(kept["records"]["identity"]["device"])
    expect(page.locator(".timeline li")).to_have_count(len(kept["rounds"]))
    assert page.evaluate(OWN_WORDS) <= MOST_WORDS
    page.locator("#curious summary").click()
    expect(page.locator("#raw pre")).to_be_visible()
    config = json.loads(page.request.get(f"{company.address}/api/v1/federation").json()["sums"]["config"])
    # Which round it gets depends on the others: a round of counts has one number for each film.
    assert kept["last"][0]["before"]["columns"] in (1, config["columns"]), "numbers for each film, before the split"
    assert kept["records"]["policy"]["messages"] == 5

    # Without a network it opens with the list and recommendations.
    wait_until_kept(visitor)
    before = visitor.recommended()
    visitor.context.set_offline(True)
    page.reload()
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    assert set(visitor.recommended()) & set(before)
    visitor.context.set_offline(False)
    visitor.leave()
    expect(page.locator("#trouble")).to_have_text(words["en"]["gone.known"])
    assert {store: kept for store, kept in visitor.stored().items() if kept} == {}
    visitor.close()
