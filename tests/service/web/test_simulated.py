"""The page of a demo says how its simulated clients are, and claims nothing of them where it does not know."""

import pytest
from playwright.sync_api import expect
from tests.service.federations import opened
from tests.service.web.browsing import PATIENCE

from federank.service.server.store.queries import put_value

pytestmark = pytest.mark.slow


def report(server, state):
    """What the demo's process writes when the state of the simulated clients has changed."""
    with opened(f"sqlite:///{server.folder / 'federation.db'}") as connection, connection.transaction():
        put_value(connection, "simulated", {"state": state, "clients": 123})


def taking_part(server, visit):
    """What the page says of a visitor who takes part."""
    visitor = visit(server).open().pick(4).take_part().wait_for_rounds(1)
    return visitor.page.locator("#doing")


def test_page_shows_the_state_of_simulated_clients(server, visit, words):
    away, doing = words["en"]["simulated.away"], taking_part(server, visit)
    expect(doing).to_be_visible()
    expect(doing).not_to_contain_text(away)
    for state in ("starting", "running", "stopped"):
        report(server, state)
        told = expect(doing).not_to_contain_text if state == "running" else expect(doing).to_contain_text
        told(away, timeout=PATIENCE)


def test_page_without_its_server_claims_nothing(server, visit, words):
    report(server, "starting")
    away, doing = words["en"]["simulated.away"], taking_part(server, visit)
    expect(doing).to_contain_text(away, timeout=PATIENCE)
    server.stop()
    expect(doing).not_to_contain_text(away, timeout=PATIENCE)
    server.start()
