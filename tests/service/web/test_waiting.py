"""What is added while taking part waits before it may leave, and every answer can be taken back."""

import re

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE

pytestmark = pytest.mark.slow

MOVED = """async ([id, seconds]) => {
  const request = indexedDB.open("federank");
  await new Promise((resolve) => (request.onsuccess = resolve));
  const history = request.result.transaction("history", "readwrite").objectStore("history");
  const found = await new Promise((resolve) => (history.get(id).onsuccess = ({ target }) => resolve(target.result)));
  await new Promise((resolve) => (history.put({ ...found, at: found.at + 1000 * seconds }, id).onsuccess = resolve));
  request.result.close();
}"""
AGREED_BEFORE = """async () => {
  const request = indexedDB.open("federank");
  await new Promise((resolve) => (request.onsuccess = resolve));
  const facts = request.result.transaction("facts", "readwrite").objectStore("facts");
  const read = new Promise((resolve) => (facts.get("agreed").onsuccess = ({ target }) => resolve(target.result)));
  const agreed = await read;
  await new Promise((resolve) => (facts.put(agreed - 60_000, "agreed").onsuccess = resolve));
  request.result.close();
}"""


def press(visitor, word):
    """Answer the first recommendation; its id."""
    first = visitor.page.locator("#recommended li").first
    item = first.get_attribute("data-item")
    first.get_by_role("button").filter(has_text=re.compile(f"^{word}$")).click()
    return item


def answer(visitor, word):
    """The same, once the answer shows."""
    item = press(visitor, word)
    expect(visitor.page.locator(f'#recommended li[data-item="{item}"]')).to_have_count(0, timeout=PATIENCE)
    return item


def move(visitor, item, seconds):
    """Let an item have been answered so much later, or earlier where it is below zero."""
    visitor.page.evaluate(MOVED, [item, seconds])


def sent(visitor):
    return {item for played in visitor.stored()["rounds"] for item in played["liked"]}


def test_a_yes_waits_before_it_may_leave_and_then_may(server, visit):
    visitor = visit(server).open().pick(3).share(100).take_part().wait_for_rounds(1)
    page = visitor.page
    expect(page.locator("#pick-lead")).to_contain_text("waits half a minute before it may leave")
    item = press(visitor, "I like it")
    visitor.wait_until(lambda kept: any(entry["id"] == item for entry in kept["history"]))
    move(visitor, item, 600)  # however long showing it and the rounds below take on a busy machine
    expect(page.locator("#answered")).to_contain_text("waits half a minute before it may leave")
    expect(page.locator("#yours li").first).to_contain_text("waits half a minute before it may leave")
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 3)
    assert item not in sent(visitor)
    move(visitor, item, -631)
    visitor.open()
    visitor.wait_until(lambda kept: any(item in played["liked"] for played in kept["rounds"]))


def test_what_nobody_was_shown_goes_on_waiting(server, visit):
    visitor = visit(server)
    visitor.context.add_init_script(
        "Object.defineProperty(document, 'visibilityState', { get: () => window.seen ?? 'visible' })"
    )
    visitor.open().pick(3).share(100).take_part().wait_for_rounds(1)
    page = visitor.page
    for chosen in visitor.stored()["history"]:
        move(visitor, chosen["id"], -31)
        move(visitor, chosen["id"], -31)
    page.evaluate(AGREED_BEFORE)
    page.evaluate("() => (window.seen = 'hidden')")
    item = answer(visitor, "I like it")
    move(visitor, item, -31)
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 3)
    assert item not in sent(visitor)
    page.evaluate("() => { window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange')); }")
    visitor.wait_until(lambda kept: any(item in played["liked"] for played in kept["rounds"]))


def test_an_answer_can_be_taken_back_before_anything_of_it_leaves(server, visit):
    visitor = visit(server).open().pick(3).share(100).take_part().wait_for_rounds(1)
    page = visitor.page
    item = answer(visitor, "I like it")
    page.locator("#answered").get_by_role("button", name="Undo").click()
    visitor.wait_until(lambda kept: all(entry["id"] != item for entry in kept["history"]))
    expect(page.locator("#answered")).to_be_empty()
    hidden = answer(visitor, "Not for me")
    visitor.wait_until(lambda kept: [entry["id"] for entry in kept["dismissed"]] == [hidden])
    page.locator("#answered").get_by_role("button", name="Undo").click()
    visitor.wait_until(lambda kept: kept["dismissed"] == [])
    known = answer(visitor, "Know it")
    visitor.wait_until(lambda kept: [entry["id"] for entry in kept["dismissed"]] == [known])
    kept_back = answer(visitor, "I like it")
    page.locator("#answered").get_by_role("button", name="never share").click()
    visitor.wait_until(lambda kept: kept["facts"]["policy"]["neverIds"] == [kept_back])
    move(visitor, kept_back, -31)
    visitor.open()
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 3)
    assert not {item, hidden, known, kept_back} & sent(visitor)


def test_a_button_that_is_pressed_while_a_round_ends_is_still_told(server, visit):
    visitor = visit(server).open().pick(3).share(100).take_part().wait_for_rounds(1)
    page = visitor.page
    item = answer(visitor, "I like it")
    page.locator("#answered").get_by_role("button", name="never share").hover()
    page.mouse.down()
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 2)  # each shows the list again
    page.mouse.up()
    visitor.wait_until(lambda kept: kept["facts"]["policy"]["neverIds"] == [item])
    expect(page.locator("#answered")).to_be_empty()


def test_what_may_leave_is_listed_before_anything_does_and_can_be_kept_back(town, visit):
    visitor = visit(town).open().pick(5).share(40)
    page = visitor.page
    page.get_by_text("Which? 2 items may be sent").click()
    listed = page.locator("#may-leave li .what").all_inner_texts()
    page.locator("#may-leave li").first.get_by_role("button").click()
    expect(page.locator("#yours [aria-pressed=true]")).to_have_count(1)
    expect(page.locator("#may-leave li .what").first).not_to_have_text(listed[0])
    assert page.locator("#may-leave li").count() == 2, "another took its place"
    assert town.get("status").json()["devices"] == 0


def test_of_a_model_that_knows_nobody_nothing_is_claimed(town, visit):
    visitor = visit(town).open()
    expect(visitor.page.locator("#found-count")).to_have_text("Some of 150 items:")
    visitor.pick(3)
    expect(visitor.page.locator("#recommendations-lead")).to_contain_text("this order is chance")
    assert "goes with" not in visitor.page.locator("#recommended").inner_text()


def test_the_page_links_what_was_measured(town, visit):
    visitor = visit(town).open()
    visitor.page.get_by_role("link", name="What leaves, and what it tells").click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("What leaves, and what it tells")
    visitor.page.get_by_role("link", name="Back to the page").click()
    visitor.page.wait_for_selector("html[data-ready]")
