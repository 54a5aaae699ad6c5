"""A federation of ratings in browsers: stars, predictions, the ledger; and a server that is killed."""

import signal
import threading

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.rated_worlds import two_opinions
from tests.service.web.browsing import Visitor, serving

from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.methods.fedrec.method import PMF
from federank.methods.fedrec.reference import folded_in
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse

pytestmark = pytest.mark.slow

FILMS, PEOPLE, ROUNDS, FACTORS = 24, 50, 10, 4
NOUN = {"one": "film", "many": "films"}


class Fleet:
    """Fifty people's devices, on a thread of their own, until this many rounds are over."""

    def __init__(self, address):
        self.played = None
        # A server that is killed takes some seconds to come back, and longer on a busy machine.
        plan = Plan(address=address, attempts=40)
        data = two_opinions(PEOPLE, FILMS, 10)
        rehearsal = Rehearsal(plan=plan, data=data, rounds=ROUNDS, seed=3, specs={})
        self._thread = threading.Thread(target=self._play, args=(rehearsal,))
        self._thread.start()

    def _play(self, rehearsal):
        self.played = rehearse(rehearsal)

    def wait(self):
        self._thread.join()
        return self.played


def rate(visitor, stars):
    """Give films stars, by their numbers."""
    visitor.go("wall")
    for film, star in stars.items():
        tile = visitor.page.locator(f'#grid .tile[data-key="{film}"]')
        tile.click()
        visitor.page.locator("#item").get_by_role("button", name=f"{star} stars for").click()
        expect(tile).to_have_attribute("data-stars", str(star))
    return visitor


def predicted(copies, history):
    """What Python makes of the model that a browser has: the best film that is not rated, and its stars."""
    [model] = [copy for copy in copies if "vectors" in copy]
    V = np.array(model["vectors"], np.float32).reshape(FILMS, FACTORS)
    stars = {int(owned["id"]): owned["rating"] for owned in history}
    items = np.array(sorted(stars))
    ratings = np.array([stars[item] for item in items.tolist()], np.float32)
    told = V @ folded_in(V[items], ratings, np.zeros(FACTORS, np.float32))
    told[items] = -np.inf
    best = int(np.argmax(told))
    return best, float(np.clip(told[best], 1, 5))


def test_rounds_of_ratings_through_a_crash(browser, tmp_path):
    rounds = {"target": PEOPLE + 2, "over_selection": 1.0, "deadline": 600.0}
    with serving(tmp_path, method="pmf", opinions=FILMS, rounds=rounds, noun=NOUN) as server:
        one, other = (Visitor(browser, server.public).open() for _ in range(2))
        page = one.page
        rate(one, {0: 5, 2: 5, 4: 5, 1: 1, 3: 1}).share("all")
        rate(other, {1: 5, 3: 5, 5: 4, 0: 1, 2: 2}).share("all")
        one.take_part()
        other.take_part()
        fleet = Fleet(server.public)
        one.wait_for_rounds(3)
        server.stop(signal.SIGKILL)
        server.start()
        assert fleet.wait().tally.rounds >= ROUNDS
        for visitor in (one, other):
            visitor.wait_for_rounds(ROUNDS)
            visitor.pause()
        assert server.get("status").json()["rounds_aggregated"] >= ROUNDS
        assert server.rows("SELECT COUNT(*) FROM rounds WHERE state = 'abandoned'") == [(0,)], "nothing was lost"

        kept = one.stored()
        rated = {entry["id"] for entry in kept["ledger"] if entry["times_liked"]}
        sampled = {entry["id"] for entry in kept["ledger"] if entry["times_compared"]}
        assert rated == {"0", "1", "2", "3", "4"}
        assert len(sampled) == 5, "one for each, and the same in every round"
        last = bytes(kept["last"][0]["body"])
        update = wire.decode(ItemGradients, PMF(n_items=FILMS, factors=FACTORS), last)
        assert update.items.tolist() == sorted(map(int, rated | sampled))
        best, stars = predicted(one.stored()["model"], kept["history"])
        assert one.recommended()[0] == str(best)
        first = page.locator("#shelves .card").first
        expect(first.locator(".predicted")).to_contain_text(f"{stars:.1f}")
        reasons = page.locator("#shelves .why b").all_inner_texts()
        assert reasons
        assert not {"Film number 1", "Film number 3"} & set(reasons), "they were given one star"
        first.get_by_role("button", name="4 stars for").click()
        one.wait_until(lambda kept: len(kept["history"]) == 6)
        assert one.complaints == [text for text in one.complaints if "Failed to load" in text], "but for the crash"
        one.close()
        other.close()


def test_history_file_with_stars_stays_local(browser, tmp_path):
    lines = ("Name,Year,Rating", "Film number 3,,4", "Film number 4,,0.5", "Film number 5,,")
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    with serving(tmp_path, method="pmf", opinions=FILMS, noun=NOUN) as server:
        visitor = Visitor(browser, server.public).open()
        page = visitor.page
        visitor.go("mine")
        page.locator("#file").set_input_files(tmp_path / "ratings.csv")
        page.locator('#file-result [data-how="love"]').click()
        visitor.wait_until(lambda kept: len(kept["history"]) == 2)
        given = {owned["id"]: owned["rating"] for owned in visitor.stored()["history"]}
        assert given == {"3": 4, "4": 1}
        assert not [request for request in visitor.requests if request.method == "POST"]
        assert visitor.complaints == []
        visitor.close()
