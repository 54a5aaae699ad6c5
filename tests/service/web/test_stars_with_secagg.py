"""Browsers in a federation of stars whose messages no single server reads: the guarantee, what leaves, what follows."""

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.test_stars import FACTORS, FILMS, NOUN, rate

from federank.secagg.proof.parameters import FULL
from federank.secagg.upload import upload_bytes
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow

MESSAGES = 2


def test_two_browsers_give_stars_that_no_single_server_reads(browser, tmp_path, helper):
    rounds = {"target": 2, "minimum": 2, "over_selection": 1.0, "deadline": 600.0}
    sums = {"helper": helper.address, "sigma": 0.0, "least_cohort": 2}
    options = {"settings": {"uploads_per_client": MESSAGES}, "rounds": rounds, "noun": NOUN, "sums": sums}
    with serving(tmp_path, method="pmf", opinions=FILMS, **options) as server:
        one, other = (Visitor(browser, server.public).open() for _ in range(2))
        rate(one, {0: 5, 2: 5, 4: 5, 1: 1, 3: 1})
        rate(other, {1: 5, 3: 5, 5: 4, 0: 1, 2: 2})
        for visitor in (one, other):
            visitor.share("all").take_part()
        for visitor in (one, other):
            expect(visitor.page.locator('#leaves [data-key="change"]')).to_have_count(0, timeout=PATIENCE)
        one.wait_until(lambda kept: kept["pending"] == [] and Visitor.received(kept) == MESSAGES)
        kept = one.stored()
        assert server.get("status").json()["rounds_aggregated"] == MESSAGES
        size = upload_bytes(FILMS * (FACTORS + 1), FULL)
        assert [played["bytes"] for played in kept["rounds"]] == [size] * MESSAGES, "one length for all, with a proof"
        rated = {entry["id"] for entry in kept["ledger"] if entry["times_liked"]}
        assert rated == {"0", "1", "2", "3", "4"}
        assert not [entry for entry in kept["ledger"] if entry["times_compared"]], "nothing is virtual"
        found = verify(Servers(leader=server.public, helper=helper.address))
        assert (found.versions, found.messages) == (MESSAGES, 2 * MESSAGES)
        assert one.complaints == []
        one.close()
        other.close()
