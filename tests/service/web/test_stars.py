"""A federation of ratings in browsers: stars, predictions, the ledger; and a server that dies in the median."""

import signal
import threading

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.rated_worlds import two_opinions
from tests.service.web.browsing import PATIENCE, Visitor, serving

from federank.methods.fedrec.method import FOLD_IN_REGULARIZATION, beside_of, solved_taste
from federank.methods.fedrec.wire import decode_rating_update
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.simulated_clients.rehearsal import Plan

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
    for film, star in stars.items():
        visitor.page.locator("#search-text").fill(f"Film number {film}")
        found = visitor.page.locator(f'#found li[data-item="{film}"]')
        found.get_by_role("button", name=f"{star} stars for").click()
        found.locator("button[aria-pressed=true]").wait_for()
    visitor.page.locator("#search-text").fill("")
    return visitor


def predicted(copies, history):
    """What Python makes of the model that a browser has: the best film that is not rated, and its stars."""
    [model] = [copy for copy in copies if "vectors" in copy]
    V = np.array(model["vectors"], np.float32).reshape(FILMS, FACTORS)
    stars = {int(owned["id"]): owned["rating"] for owned in history}
    items = np.array(sorted(stars))
    ratings = np.array([stars[item] for item in items.tolist()], np.float32)
    told = V @ solved_taste(V[items], ratings, beside_of(V[:0], FACTORS), FOLD_IN_REGULARIZATION)
    told[items] = -np.inf
    best = int(np.argmax(told))
    return best, float(np.clip(told[best], 1, 5))


def test_two_browsers_and_fifty_devices_play_ten_rounds_through_a_crash(browser, tmp_path):
    rounds = {"target": PEOPLE + 2, "over_selection": 1.0, "deadline": 600.0}
    with serving(tmp_path, method="pmf", opinions=FILMS, rounds=rounds, noun=NOUN) as server:
        one, other = (Visitor(browser, server.public).open() for _ in range(2))
        page = one.page
        expect(page.locator("#pick-title")).to_have_text("What do you know, and how did you find it?")
        rate(one, {0: 5, 2: 5, 4: 5, 1: 1, 3: 1})
        rate(other, {1: 5, 3: 5, 5: 4, 0: 1, 2: 2})
        expect(page.locator("#yours-title")).to_have_text("Your 5 films")
        expect(page.locator("#recommendations-lead")).to_contain_text("The model has learnt from no one yet")
        page.locator("#search-text").fill("Film number 20")
        expect(page.locator("#found")).to_contain_text("No one has told anything of it yet; 3.4 is your mean.")
        page.locator("#search-text").fill("")
        one.take_part()
        other.take_part()
        fleet = Fleet(server.public)
        one.wait_for_rounds(3)
        server.stop(signal.SIGKILL)
        server.start()
        assert fleet.wait().tally.rounds >= ROUNDS
        for visitor in (one, other):
            visitor.wait_for_rounds(ROUNDS)
            visitor.page.locator("#take-part:not(.main-button)").click()
        assert server.get("status").json()["rounds_folded"] >= ROUNDS
        assert server.rows("SELECT COUNT(*) FROM rounds WHERE state = 'abandoned'") == [(0,)], "nothing was lost"

        kept = one.stored()
        rated = {entry["id"] for entry in kept["ledger"] if entry["times_liked"]}
        sampled = {entry["id"] for entry in kept["ledger"] if entry["times_compared"]}
        assert rated == {"0", "1", "2", "3", "4"}
        assert len(sampled) == 5, "one for each, and the same in every round"
        last = bytes(kept["last"][0]["body"])
        assert decode_rating_update(last, FACTORS, FILMS, implicit=False).items.tolist() == sorted(
            map(int, rated | sampled)
        )
        expect(page.locator("#left-items summary")).to_have_text("Sent as rated: 5 films")
        expect(page.locator("#left-compared summary")).to_have_text("Sampled, with a virtual rating: 5 films")
        first = page.locator("#recommended li").first
        best, stars = predicted(one.stored()["model"], kept["history"])
        expect(first).to_have_attribute("data-item", str(best), timeout=PATIENCE)
        expect(first).to_contain_text(f"We think you would give it {stars:.1f}")
        reasons = " ".join(page.locator("#recommended .quiet").all_inner_texts())
        assert "goes with Film number" in reasons
        assert not any(reasons.count(f"goes with Film number {film} ") for film in (1, 3)), "they were given one star"
        assert ". ·" not in reasons
        first.get_by_role("button", name="4 stars for").click()
        expect(page.locator("#yours-title")).to_have_text("Your 6 films")
        page.get_by_text("Other ways to share").click()
        page.locator("#filling-none").check()
        one.wait_until(lambda kept: kept["facts"]["policy"]["rho"] == 0)
        assert one.complaints == [text for text in one.complaints if "Failed to load" in text], "but for the crash"
        one.close()
        other.close()


def test_a_history_file_is_loaded_with_its_stars_and_sent_nowhere(browser, tmp_path):
    lines = ("Name,Year,Rating", "Film number 3,,4", "Film number 4,,0.5", "Film number 5,,")
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    with serving(tmp_path, method="pmf", opinions=FILMS, noun=NOUN) as server:
        visitor = Visitor(browser, server.public).open()
        page = visitor.page
        page.get_by_text("Load a history file instead").click()
        expect(page.locator("#file-lead")).to_contain_text("with ratings")
        page.locator("#file").set_input_files(tmp_path / "ratings.csv")
        expect(page.locator("#file-result")).to_contain_text("2 of 2 lines matched. 1 without a rating is left out.")
        page.get_by_text("Look through what was matched").click()
        expect(page.locator("#file-result")).to_contain_text("Film number 4 ★ 1")
        page.get_by_role("button", name="Add 2 films").click()
        expect(page.locator("#yours-title")).to_have_text("Your 2 films")
        given = {owned["id"]: owned["rating"] for owned in visitor.stored()["history"]}
        assert given == {"3": 4, "4": 1}
        assert not [request for request in visitor.requests if request.method == "POST"]
        assert visitor.complaints == []
        visitor.close()
