"""A person goes all the way, on a phone and at a desk, in light and dark, in every language.

Pick, see recommendations with a reason, read what would leave, take part, show it to a friend, install it, leave.
"""

import pytest
from playwright.sync_api import Locator, expect
from tests.service.web.browsing import PATIENCE, Server, Visitor
from tests.service.web.test_without_a_network import wait_until_kept

pytestmark = pytest.mark.slow

SCREENS = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 900}}
TOP = "(id) => document.getElementById(id).getBoundingClientRect().top + scrollY"
TOO_WIDE = "() => document.documentElement.scrollWidth > window.innerWidth"
TOO_SMALL = """() => [...document.querySelectorAll("button, nav a, input:not(.unseen), summary, select")]
  .filter((made) => made.offsetParent)
  .map((made) => [made.textContent || made.id, made.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24)
  .map(([words]) => words)"""
OWN_WORDS = """() => {
  const page = document.body.cloneNode(true);
  const names = "#found, #recommended, #yours, select";
  const unseen = ".unseen, details > :not(summary), [hidden], dialog, noscript, script";
  for (const part of page.querySelectorAll(`${names}, ${unseen}`)) part.remove();
  return page.innerText.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length;
}"""
"""How many words the page says itself, beside names of items, what can be chosen and what is folded."""
MOST_WORDS = {"first": 300, "part": 360}
"""Once they were 740, and no one read them."""


FORMS = [("phone", "light", "it"), ("phone", "dark", "de"), ("desk", "light", "de"), ("desk", "dark", "en")]
LOCALES = {"en": "en-GB", "it": "it-IT", "de": "de-DE"}


@pytest.fixture(scope="module")
def films(browser, tmp_path_factory):
    """A federation of few messages about films, which has learnt from someone already."""
    noun = {"one": "film", "many": "films"}
    told = {"method": "frugal", "noun": noun, "name": "Films", "joining": True}
    server = Server(tmp_path_factory.mktemp("films"), **told).start()
    try:
        first = Visitor(browser, server.public).open().pick(5).share(100).take_part().wait_for_rounds(3)
        first.close()
        yield server
    finally:
        server.stop()


def counted(words, count):
    return f"{count} {words['noun.film/films']['one' if count == 1 else 'other']}"


@pytest.mark.parametrize(("screen", "scheme", "language"), FORMS)
def test_a_person_can_go_all_the_way(films, browser, words, screen, scheme, language):
    told = words[language]
    look = {"viewport": SCREENS[screen], "color_scheme": scheme, "locale": LOCALES[language]}
    visitor = Visitor(browser, films.public, service_workers="allow", **look).open()
    page = visitor.page

    # Pick, and recommendations with a reason stand there at once, and are read out.
    expect(page.locator("#standing")).to_have_text(told["standing.away"])
    assert page.evaluate(OWN_WORDS) < MOST_WORDS["first"]
    visitor.pick(3)
    expect(page.locator("#recommended li")).to_have_count(10)
    first = page.locator("#recommended .title").first.inner_text()
    news = told["for-you.news"]["other"].format(count=10, first=first)
    expect(page.get_by_role("status").filter(has_text=news)).to_have_count(1)
    expect(page.locator("#recommended li").first.get_by_role("button").last).to_have_text(told["seen.seen-it"])
    reasons = " ".join(page.locator("#recommended .quiet").all_inner_texts())
    assert told["for-you.near"].split("{title}")[0] in reasons
    if screen == "phone":
        assert page.evaluate(TOP, "recommendations") < 1.3 * SCREENS[screen]["height"], "right after the picks"
        assert page.evaluate(TOP, "recommendations") < page.evaluate(TOP, "mine")

    # What would leave is named before anything does, and what leaves is what was named.
    visitor.share(60)
    page.locator("#may-leave summary").click()
    named = set(page.locator("#may-leave li .what").all_inner_texts())
    assert len(named) == 2
    visitor.take_part()
    sent = told["lifetime.sent"].format(messages=told["messages"]["other"].format(count=3), made=3)
    expect(page.locator("#promise p").first).to_contain_text(sent, timeout=PATIENCE)
    assert page.evaluate(OWN_WORDS) < MOST_WORDS["part"]
    visitor.wait_until(lambda kept: kept["pending"] == [])
    kept = visitor.stored()
    assert {entry["title"] for entry in kept["ledger"]} == named

    # Once all messages are made, nothing is said to leave any more, whatever is added.
    spent = told["hurdle.spent"].format(messages=told["messages"]["other"].format(count=3))
    expect(page.locator("#standing")).to_have_text(told["standing.spent"])
    expect(page.locator("#progress")).to_have_text(spent)
    page.locator("#recommended li").first.get_by_role("button").first.click()
    expect(page.locator("#yours-title")).to_contain_text(counted(told, 4))
    expect(page.locator("#share-sentence")).to_have_text(told["share.sealed"])
    assert told["where.may-leave"] not in page.locator("#yours .tag").all_inner_texts()
    expect(page.locator("#may-leave li")).to_have_count(0)
    page.locator("#answered button").first.click()
    expect(page.locator("#yours-title")).to_contain_text(counted(told, 3))
    left = page.locator("#yours li", has_text=told["where.left"]).first
    left.get_by_role("button").last.click()
    gone = told["left.removed"]["one"].format(gone=counted(told, 1))
    expect(page.locator("#left-sentence")).to_contain_text(gone)

    # Everything unfolded still fits, and can be pressed.
    for summary in filter(Locator.is_visible, page.locator("summary").all()):
        summary.click()
    assert not page.evaluate(TOO_WIDE)
    assert page.evaluate(TOO_SMALL) == []

    # A friend opens the address that the code holds.
    expect(page.locator("#friend svg")).to_have_accessible_name(told["admin.code"].format(address=films.public))
    friend = Visitor(browser, page.locator("#friend strong").inner_text()).open()
    expect(friend.page.locator("#name")).to_have_text("Films")
    friend.close()

    # Installed, it opens without a network.
    wait_until_kept(visitor)
    films.stop()
    page.reload()
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    expect(page.locator("#trouble")).to_have_text(told["notice.away"])
    expect(page.locator("#yours-title")).to_contain_text(counted(told, 2))
    expect(page.locator("#recommended li")).to_have_count(10)
    films.start()
    expect(page.locator("#trouble")).to_be_hidden(timeout=PATIENCE)

    # Who leaves leaves nothing behind.
    page.locator("#leave").click()
    page.get_by_role("button", name=told["sure.yes"], exact=True).click()
    expect(page.locator("#trouble")).to_have_text(told["gone.known"])
    expect(page.locator("#trouble")).to_be_in_viewport()
    assert visitor.stored()["history"] == []
    visitor.close()
