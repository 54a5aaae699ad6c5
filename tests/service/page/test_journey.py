"""A person goes all the way, on a phone and at a desk, in light and dark: pick, look, take part, take back, leave."""

import pytest
from playwright.sync_api import expect
from tests.service.page.browsing import PATIENCE, Visitor, serving

pytestmark = pytest.mark.slow

SCREENS = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 900}}
TOP = "(id) => document.getElementById(id).getBoundingClientRect().top + scrollY"
TOO_WIDE = "() => document.documentElement.scrollWidth > window.innerWidth"
TOO_SMALL = """() => [...document.querySelectorAll("button, nav a, input:not(.unseen), summary, select")]
  .filter((made) => made.offsetParent)
  .map((made) => [made.textContent || made.id, made.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24)
  .map(([words]) => words)"""


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A federation of few messages about films."""
    noun = {"one": "film", "many": "films"}
    with serving(tmp_path_factory.mktemp("films"), method="frugal", noun=noun, name="Films") as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_a_person_can_go_all_the_way(films, browser, screen, scheme):
    visitor = Visitor(browser, films.public, viewport=SCREENS[screen], color_scheme=scheme).open()
    page = visitor.page
    expect(page.locator("#standing")).to_have_text("Not taking part: nothing is sent")
    visitor.pick(3)
    expect(page.locator("#recommended li")).to_have_count(10)
    expect(page.locator("#recommended li").first.get_by_role("button").last).to_have_text("Seen it")
    if screen == "phone":
        assert page.evaluate(TOP, "recommendations") < 1.3 * SCREENS[screen]["height"], "right after the picks"
        assert page.evaluate(TOP, "recommendations") < page.evaluate(TOP, "mine")
    visitor.share(60)
    page.get_by_text("Which? 2 films may be sent").click()
    named = set(page.locator("#may-leave li .what").all_inner_texts())
    visitor.take_part()
    expect(page.locator("#left-sentence")).to_contain_text("At most 3 messages, ever; 3 made.", timeout=PATIENCE)
    visitor.wait_until(lambda kept: kept["pending"] == [])
    kept = visitor.stored()
    assert {entry["title"] for entry in kept["ledger"]} == named, "what left is what was named before"
    expect(page.locator("#standing")).to_contain_text("nothing more leaves")
    page.locator("#recommended li").first.get_by_role("button", name="Yes").click()
    page.locator("#answered").get_by_role("button", name="Undo").click()
    expect(page.locator("#yours-title")).to_have_text("Your 3 films")
    for summary in page.locator("summary").all():
        summary.click()
    assert not page.evaluate(TOO_WIDE)
    assert page.evaluate(TOO_SMALL) == []
    page.get_by_role("button", name="Leave and erase everything").click()
    page.get_by_role("button", name="Leave and erase", exact=True).click()
    expect(page.locator("#trouble")).to_contain_text("You have left.")
    expect(page.locator("#trouble")).to_be_in_viewport()
    assert visitor.stored()["history"] == []
    assert visitor.complaints == []
    visitor.close()
