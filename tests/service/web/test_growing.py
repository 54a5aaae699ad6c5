"""A page follows a catalogue that grows, while it takes part and while it only watches."""

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE
from tests.service.web.test_begun_anew import assert_same_model, the_model
from tests.service.web.test_faults import rest

pytestmark = pytest.mark.slow


def add_items(server, *titles):
    """Add items as the operator; the server tells of them with its next version."""
    headers = {"Authorization": f"Bearer {server.token}"}
    items = [{"id": 90_000 + n, "title": title, "categories": ["New"]} for n, title in enumerate(titles)]
    answer = httpx.post(f"{server.admin}/admin/api/v1/items", json={"items": items}, headers=headers, timeout=30)
    assert answer.status_code == 202, answer.text


def is_found(visitor, title):
    visitor.go("wall").page.locator("#search-text").fill(title)
    expect(visitor.page.locator(f'#grid .tile[aria-label="{title}"]')).to_be_visible(timeout=PATIENCE)


def test_who_takes_part_goes_on_with_the_new_items_and_keeps_what_was_chosen_for_life(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    joined = visitor.stored()["facts"]["joined"]
    items = server.get("federation").json()["items"]
    add_items(server, "Zanzibar Hall")
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 3)
    rest(visitor)  # its last round may still end, with another version
    visitor.wait_until(lambda kept: all(played.get("ended") for played in kept["rounds"]))
    visitor.wait_until(lambda kept: the_model(kept)["version"] == server.get("status").json()["version"])
    kept, facts = visitor.stored(), server.get("federation").json()
    assert facts["items"] == items + 1
    assert_same_model(the_model(kept), server)
    assert kept["facts"]["joined"] == facts["catalogue"] != joined, "its answers for its lifetime go on"
    is_found(visitor, "Zanzibar Hall")


def test_who_only_watches_sees_the_new_items(server, visit):
    visitor = visit(server).open().pick(3)
    items = server.get("federation").json()["items"]
    add_items(server, "Quokka House")
    visitor.wait_until(lambda kept: any(len(known.get("items", ())) == items + 1 for known in kept["model"]))
    is_found(visitor, "Quokka House")
    assert not visitor.complaints
