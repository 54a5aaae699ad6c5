"""A page goes on in a new season, while it takes part and while it only watches; ended items are gone."""

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, serving
from tests.service.web.test_faults import rest
from tests.service.web.test_restarted import assert_same_model, the_model

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


def test_participant_follows_a_season(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    joined = visitor.stored()["records"]["joined"]
    items = server.get("federation").json()["items"]
    begun = new_season(server, "Zanzibar Hall")
    visitor.wait_until(lambda kept: any(played.get("season") == begun["number"] for played in kept["rounds"]))
    rest(visitor)  # its last round may still end, with another version
    visitor.wait_until(lambda kept: all(played.get("ended") for played in kept["rounds"] if "why" not in played))
    visitor.wait_until(lambda kept: the_model(kept)["version"] == server.get("status").json()["version"])
    kept, info = visitor.stored(), server.get("federation").json()
    assert info["items"] == items + 1
    assert_same_model(the_model(kept), server)
    assert kept["records"]["joined"] == info["catalogue"] != joined, "its answers for its lifetime go on"
    assert kept["records"]["seasons"][-1]["number"] == begun["number"]
    is_found(visitor, "Zanzibar Hall")


def test_visitor_sees_the_items_of_a_season(server, visit):
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


@pytest.fixture
def frugal(tmp_path):
    with serving(tmp_path, method="frugal", settings={"messages": 1, "min_support": 1}) as started:
        yield started


def test_season_with_more_uploads_needs_consent(frugal, visit, words):
    visitor = visit(frugal).open().pick(5).take_part().wait_for_rounds(1)
    visitor.wait_until(lambda kept: all(played.get("ended") for played in kept["rounds"]))
    begun = new_season(frugal, "Zanzibar Hall", uploads=2)
    visitor.wait_until(lambda kept: kept["records"]["taking"] is False)
    notice = words["en"]["notice.season-weaker"].replace("{number}", "2").replace("{code}", "more-messages")
    expect(visitor.page.locator("#trouble")).to_contain_text(notice, timeout=PATIENCE)
    assert len(visitor.stored()["rounds"]) == 1, "nothing was sent"
    visitor.take_part().wait_for_rounds(2)
    kept = visitor.wait_until(lambda kept: len(kept["rounds"]) == 3).stored()
    played = sorted((one.get("season"), one.get("number")) for one in kept["rounds"])
    assert played == [(1, 1), (begun["number"], 1), (begun["number"], 2)]
    assert [(one["number"], one["uploads"]) for one in kept["records"]["seasons"]] == [(1, 1), (2, 2)]


def test_equally_private_season_needs_no_consent(frugal, visit):
    visitor = visit(frugal).open().pick(5).take_part().wait_for_rounds(1)
    visitor.wait_until(lambda kept: all(played.get("ended") for played in kept["rounds"]))
    new_season(frugal)
    kept = visitor.wait_until(lambda kept: len(kept["rounds"]) == 2).stored()
    assert kept["records"]["taking"] is True
    assert sorted(one.get("season") for one in kept["rounds"]) == [1, 2]
