"""A page goes on in a new season, while it takes part and while it only watches; ended items are gone."""

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE
from tests.service.web.test_begun_anew import assert_same_model, the_model
from tests.service.web.test_faults import rest

pytestmark = pytest.mark.slow


def new_season(server, *titles, ended=(), **wish):
    """Begin another season as the operator, with new items of these titles, without those that have these ids."""
    headers = {"Authorization": f"Bearer {server.token}"}
    known = server.get("catalogue").json()["items"]
    items = [item for item in known if item["id"] not in ended and not item.get("ended")]
    items += [{"id": 90_000 + len(known) + n, "title": title, "categories": ["New"]} for n, title in enumerate(titles)]
    answer = httpx.post(
        f"{server.admin}/admin/api/v1/seasons", json={"items": items} | wish, headers=headers, timeout=30
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def is_found(visitor, title):
    visitor.go("wall").page.locator("#search-text").fill(title)
    expect(visitor.page.locator(f'#grid .tile[aria-label="{title}"]')).to_be_visible(timeout=PATIENCE)


def test_who_takes_part_goes_on_with_the_new_items_and_keeps_what_was_chosen_for_life(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    joined = visitor.stored()["facts"]["joined"]
    items = server.get("federation").json()["items"]
    begun = new_season(server, "Zanzibar Hall")
    visitor.wait_until(lambda kept: any(played.get("season") == begun["number"] for played in kept["rounds"]))
    rest(visitor)  # its last round may still end, with another version
    visitor.wait_until(lambda kept: all(played.get("ended") for played in kept["rounds"] if "why" not in played))
    visitor.wait_until(lambda kept: the_model(kept)["version"] == server.get("status").json()["version"])
    kept, facts = visitor.stored(), server.get("federation").json()
    assert facts["items"] == items + 1
    assert_same_model(the_model(kept), server)
    assert kept["facts"]["joined"] == facts["catalogue"] != joined, "its answers for its lifetime go on"
    assert kept["facts"]["seasons"][-1]["number"] == begun["number"]
    is_found(visitor, "Zanzibar Hall")


def test_who_only_watches_sees_the_new_items_and_none_that_have_ended(server, visit):
    visitor = visit(server).open().pick(3)
    known = server.get("catalogue").json()["items"]
    mine = {item["id"] for item in visitor.stored()["history"]}
    gone = next(item for item in known if str(item["id"]) not in mine and not item.get("ended"))
    new_season(server, "Quokka House", ended=[gone["id"]])
    visitor.wait_until(lambda kept: any(len(found.get("items", ())) == len(known) + 1 for found in kept["model"]))
    is_found(visitor, "Quokka House")
    visitor.page.locator("#search-text").fill(gone["title"])
    expect(visitor.page.locator(f'#grid .tile[aria-label="{gone["title"]}"]')).to_have_count(0, timeout=PATIENCE)
    assert not visitor.complaints
