"""The page of a demo says how its simulated clients are, and claims nothing of them where it does not know."""

import json

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE

from federank.service.server.store.database import Database
from federank.service.server.store.queries import put_fact

pytestmark = pytest.mark.slow


def report(server, state):
    """What the demo's process writes when the state of the simulated clients has changed."""
    database = Database(f"sqlite:///{server.folder / 'federation.db'}")
    with database.connection() as connection, connection.transaction():
        put_fact(connection, "simulated", {"state": state, "clients": 123})
    database.release()


def test_the_page_follows_the_state_of_the_simulated_clients(server, visit):
    page = visit(server).open().page
    place = page.locator("#simulated")
    expect(page.locator("#status dd").first).to_be_visible()
    expect(place).to_be_empty()
    texts = []
    for state in ("starting", "running", "stopped"):
        report(server, state)
        expect(place).to_have_attribute("data-state", state, timeout=PATIENCE)
        texts.append(place.inner_text())
        assert ("123" in texts[-1]) == (state == "running")
    assert len(set(texts)) == 3


def test_a_page_whose_server_is_gone_claims_nothing_of_simulated_clients(server, visit):
    report(server, "running")
    page = visit(server).open().page
    expect(page.locator("#simulated")).to_contain_text("123", timeout=PATIENCE)
    server.stop()
    expect(page.locator("#simulated")).to_be_empty(timeout=PATIENCE)
    server.start()


def test_words_that_are_no_state_are_not_shown(server, visit):
    report(server, json.dumps({"toString": 1}))
    page = visit(server).open().page
    expect(page.locator("#status dd").first).to_be_visible()
    expect(page.locator("#simulated")).to_be_empty()
