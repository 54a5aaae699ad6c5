"""How many pairs a round learns from is its owner's choice (FedeRank, 2021, section 3.1), as far as is allowed.

The page's device makes the message that Python's does. What is chosen holds for what the server gets, across reloads,
and in a federation that allows less; where no pairs are learnt from, nothing speaks of them.
"""

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import ARRIVED, PATIENCE, Visitor, serving
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing
from tests.service.web.questions import (
    CLOSE,
    HISTORY,
    ITEMS,
    POLICIES,
    SEED,
    USER,
    broadcasts,
    plain_broadcast,
    plain_outward,
    plain_policy,
    recipe_of,
)
from tests.service.web.test_faults import rest

from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import NO_BITS, Draw, Profile, draw_pair
from federank.methods.fpl.wire import decode_update
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, shared_profile
from federank.service.client.methods.method import Model, RoundVector, User
from federank.service.client.methods.pairs import PAIRS, settings_of

FACTORS = 3
FEW, USUAL, MOST = 1, 12, 20


@pytest.fixture(scope="module")
def device(node):
    """The page's device under node."""
    files = (PAGE / "device" / "methods" / "method.js", PAGE / "protocol" / "pairs" / "computation.js")
    with conversing(node, "pairs.mjs", *files) as ask:
        yield ask


@pytest.mark.parametrize(("spec", "most", "pairs"), [(None, None, 4), (1, None, 1), (9, None, 4), (9, 6, 6)])
@pytest.mark.parametrize("kind", ["all", "fixed-subset, shared", "randomized-response"])
def test_the_page_sends_and_writes_down_what_a_python_device_does(device, kind, spec, most, pairs):
    policy = replace(POLICIES[kind], triples=spec)
    recipe, _ = recipe_of(triples=4, factors=FACTORS, most_triples=most)
    [broadcast] = broadcasts(1, FACTORS)
    taken = shared_profile(policy, SEED, USER, HISTORY, ITEMS)
    nothing = RoundVector(np.zeros(FACTORS, np.float32), None, frozenset())
    person = User(SEED, USER, settings_of(recipe, ITEMS), ITEMS, policy, taken, nothing)
    ledger = Ledger()
    played = PAIRS.play(person, Model(3, broadcast.vectors, broadcast.biases), ledger, broadcast.round_number)
    expected = decode_update(played.body, FACTORS, ITEMS)

    told = plain_policy(policy) | {"triples": spec}
    owner = {"seed": SEED, "user": USER, **plain_outward(taken)}
    answer = device({"recipe": recipe, "policy": told, "person": owner, "broadcast": plain_broadcast(broadcast)})
    found = decode_update(bytes(answer["body"]), FACTORS, ITEMS)
    assert answer["pairs"] == pairs
    assert found.items.tolist() == expected.items.tolist()
    np.testing.assert_allclose(found.vectors, expected.vectors, **CLOSE)
    np.testing.assert_allclose(found.biases, expected.biases, **CLOSE)
    np.testing.assert_allclose(answer["vector"], played.vector.values, **CLOSE)
    assert answer["liked"] == expected.items[expected.biases > 0].tolist()
    assert answer["compared"] == int((expected.biases < 0).sum()) <= pairs
    rows = {row["item"]: row for row in ledger.to_rows()}
    assert {row["item"]: row for row in answer["changed"]} == rows


@pytest.mark.parametrize("spec", [1, 4, 7])
def test_every_number_that_the_federation_allows_can_be_chosen(device, spec):
    assert device({"recipe": recipe_of(triples=4, most_triples=7)[0], "wish": spec}) is None


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        (8, ["pairs.refused", {"wish": "8", "most": 7}]),
        (0, ["pairs.refused", {"wish": "0", "most": 7}]),
        (-1, ["pairs.refused", {"wish": "-1", "most": 7}]),
        (2.5, ["pairs.refused", {"wish": "2.5", "most": 7}]),
        (None, ["pairs.unread", {"most": 7}]),
    ],
)
def test_any_other_is_refused_with_a_sentence(device, spec, refused):
    assert device({"recipe": recipe_of(triples=4, most_triples=7)[0], "wish": spec}) == refused


def test_without_a_bound_of_its_own_the_federations_number_is_one(device):
    assert device({"recipe": recipe_of(triples=4)[0], "wish": 5}) == ["pairs.refused", {"wish": "5", "most": 4}]


@pytest.fixture
def allowing(tmp_path):
    """A federation that says 12 pairs and allows 20."""
    with serving(tmp_path, settings={"triples": USUAL, "most_triples": MOST}) as started:
        yield started


def open_the_box(visitor):
    visitor.page.locator("summary", has_text="How many pairs a round learns from").click()
    return visitor.page


def choose(visitor, pairs):
    """Choose a number of pairs, as a person does; what is typed is taken when the box is left."""
    page = visitor.page
    page.get_by_label("A number of your own").check()
    page.get_by_label("Pairs a round, from 1 to").fill(str(pairs))
    page.get_by_label("Pairs a round, from 1 to").press("Tab")
    return visitor


def chosen(visitor, pairs):
    """Once it is kept."""
    return choose(visitor, pairs).wait_until(lambda kept: kept["facts"]["policy"]["triples"] == pairs)


def named_by(stored, ids, number, pairs):
    """The items that a message of this round names, if it is made from this many pairs and everything may leave."""
    history = np.array(sorted(ids.index(entry["id"]) for entry in stored["history"]), dtype=np.int32)
    seed, user = (stored["facts"]["identity"][name] for name in ("seed", "user"))
    taken = shared_profile(Policy(sharing="fixed-subset", pi=1.0, basis="shared"), seed, user, history, len(ids))
    profile = Profile(taken.profile, 0, len(taken.profile), NO_BITS, len(ids))
    with words_wrap_around():
        drawn = [draw_pair(Draw(seed, user, number, counter), profile) for counter in range(pairs)]
    return {int(taken.profile[place]) for place, _, _ in drawn} | {int(negative) for _, negative, _ in drawn}


def assert_made_from(visitor, server, pairs, since=0):
    """Every message since is the one of this many pairs, and the page has written down what the server has got."""
    stored = visitor.stored()
    ids = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    received = [played for played in stored["rounds"] if played["outcome"] in ARRIVED]
    told = {played["round"]: played for played in sorted(received, key=lambda played: played["at"])}
    uploads = server.rows("SELECT round, body FROM uploads WHERE round >= ? ORDER BY round", since)
    assert uploads
    for number, body in uploads:
        update = decode_update(bytes(body), 8, len(ids))
        assert set(update.items.tolist()) == named_by(stored, ids, number, pairs)
        assert told[number]["bytes"] == len(body)
        assert sorted(told[number]["liked"]) == sorted(ids[item] for item in update.items[update.biases > 0])
        assert told[number]["compared"] == int((update.biases < 0).sum())


def next_round(server):
    return max((number for (number,) in server.rows("SELECT round FROM uploads")), default=-1) + 1


@pytest.mark.slow
def test_messages_are_made_from_as_many_pairs_as_were_chosen_and_a_reload_keeps_them(allowing, visit):
    visitor = visit(allowing).open().pick(6).share(100)
    page = open_the_box(visitor)
    expect(page.get_by_label("As many as the federation says: 12 now")).to_be_checked()
    expect(page.locator("#pairs-sentence")).to_have_text(
        "A new message is made from 12 pairs, and names at most 24 items."
    )
    expect(page.get_by_label("Pairs a round")).to_be_hidden()
    chosen(visitor, FEW)
    expect(page.locator("#pairs-sentence")).to_have_text(
        "A new message is made from 1 pair, and names at most 2 items."
    )
    visitor.take_part().wait_for_rounds(2)
    rest(visitor)
    visitor.open()
    open_the_box(visitor)
    expect(page.get_by_label("Pairs a round, from 1 to 20")).to_have_value("1")
    visitor.take_part().wait_for_rounds(3)
    rest(visitor)
    assert_made_from(visitor, allowing, FEW)

    since = next_round(allowing)
    chosen(visitor, MOST).take_part().wait_for_rounds(visitor.received(visitor.stored()) + 1)
    rest(visitor)
    assert_made_from(visitor, allowing, MOST, since)

    since = next_round(allowing)
    page.get_by_label("As many as the federation says").check()
    visitor.wait_until(lambda kept: kept["facts"]["policy"]["triples"] is None)
    visitor.take_part().wait_for_rounds(visitor.received(visitor.stored()) + 1)
    rest(visitor)
    assert_made_from(visitor, allowing, USUAL, since)
    assert visitor.complaints == []


@pytest.mark.slow
def test_another_kind_of_sharing_keeps_the_number_of_pairs(allowing, visit):
    visitor = visit(allowing).open().pick(6)
    page = open_the_box(visitor)
    chosen(visitor, 3)
    page.get_by_text("Other ways to share").click()
    page.get_by_label("With decoys").check()
    visitor.wait_until(lambda kept: kept["facts"]["policy"]["sharing"] == "randomized-response")
    assert visitor.stored()["facts"]["policy"]["triples"] == 3


@pytest.mark.slow
def test_a_number_that_is_not_allowed_changes_nothing_and_is_told_beside_the_box(allowing, visit):
    visitor = visit(allowing).open().pick(3)
    page = open_the_box(visitor)
    chosen(visitor, 5)
    box, alert = page.get_by_label("Pairs a round, from 1 to 20"), page.locator("#pairs-refused")
    rest_of_it = "this federation allows integers from 1 to 20. Nothing was changed: enter one of these, or leave"
    for typed, found in {
        "21": "You entered 21",
        "0": "You entered 0",
        "2.5": "You entered 2.5",
        "": "No number",
    }.items():
        choose(visitor, typed)
        expect(alert).to_contain_text(found)
        expect(alert).to_contain_text(rest_of_it)
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#pairs-sentence")).to_contain_text("made from 5 pairs")
    page.locator("#language").select_option("de")
    expect(alert).to_contain_text("Es wurde keine Zahl eingegeben")
    page.locator("#language").select_option("en")
    refused = page.evaluate(
        "async () => (await import('/show/ask.js')).ask('setPolicy', { change: { triples: 21 } })"
        ".catch(({ said }) => said)"
    )
    assert refused == ["pairs.refused", {"wish": "21", "most": 20}], "the device refuses it too"
    assert visitor.stored()["facts"]["policy"]["triples"] == 5
    chosen(visitor, 6)
    expect(alert).to_be_hidden()
    expect(box).to_have_attribute("aria-invalid", "false")


@pytest.mark.slow
def test_what_is_being_typed_stays_while_rounds_go_by(allowing, visit):
    visitor = visit(allowing).open().pick(6)
    page = open_the_box(visitor)
    chosen(visitor, 5).take_part().wait_for_rounds(1)
    page.get_by_label("Pairs a round").press("End")
    page.get_by_label("Pairs a round").press_sequentially("7")
    visitor.wait_for_rounds(visitor.received(visitor.stored()) + 2)
    expect(page.get_by_label("Pairs a round")).to_have_value("57")
    assert visitor.stored()["facts"]["policy"]["triples"] == 5


@pytest.mark.slow
def test_a_message_on_its_way_with_more_pairs_than_are_wanted_by_now_is_held_back(allowing, visit):
    visitor = visit(allowing).open().pick(6).share(100)
    open_the_box(visitor)
    visitor.context.route("**/update", lambda route: route.abort())
    visitor.take_part().wait_until(lambda kept: len(kept["pending"]) == 1)
    [pending] = visitor.stored()["pending"]
    chosen(visitor, FEW)
    visitor.context.unroute("**/update")
    visitor.wait_for_rounds(1)
    rest(visitor)
    [story] = [played for played in visitor.stored()["rounds"] if played["ticket"] == pending["ticket"]]
    assert story["outcome"] == "held back"
    assert_made_from(visitor, allowing, FEW)


@pytest.mark.slow
def test_where_less_is_allowed_later_the_device_keeps_to_it_and_the_page_says_so(allowing, visit, tmp_path_factory):
    visitor = visit(allowing).open().pick(6).share(100)
    open_the_box(visitor)
    chosen(visitor, MOST)
    rest(visitor.take_part().wait_for_rounds(1))
    allowing.stop()
    fewer = {"triples": 4, "most_triples": 5}
    with serving(tmp_path_factory.mktemp("anew"), port=allowing.options["port"], settings=fewer) as anew:
        visitor.open()
        expect(visitor.page.locator("#trouble")).to_contain_text("begun again", timeout=PATIENCE)
        page = open_the_box(visitor)
        expect(page.locator("#pairs-sentence")).to_have_text(
            "20 pairs are set; this federation allows at most 5. "
            "A new message is made from 5 pairs, and names at most 10 items."
        )
        visitor.take_part().wait_for_rounds(visitor.received(visitor.stored()) + 1)
        rest(visitor)
        assert visitor.stored()["facts"]["policy"]["triples"] == MOST, "it is the owner's own to change"
        assert_made_from(visitor, anew, 5)
    allowing.start()


@pytest.mark.slow
def test_a_number_that_a_federation_suggests_is_shown_as_what_is_set(browser, tmp_path):
    suggested = {"sharing": "fixed-subset", "pi": 0.5, "basis": "shared", "triples": 3}
    with serving(tmp_path, suggested_policy=suggested) as server:
        visitor = Visitor(browser, server.public).open().pick(3)
        page = open_the_box(visitor)
        expect(page.get_by_label("Pairs a round, from 1 to 12")).to_have_value("3")
        expect(page.locator("#pairs-sentence")).to_contain_text("made from 3 pairs")
        visitor.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "world", [{"method": "frugal"}, {"method": "pmf", "opinions": 40}], ids=lambda of: of["method"]
)
def test_where_no_pairs_are_learnt_from_nothing_speaks_of_them(browser, tmp_path, world):
    with serving(tmp_path, **world) as server:
        visitor = Visitor(browser, server.public).open()
        page = visitor.page
        page.evaluate("() => document.querySelectorAll('details').forEach((box) => (box.open = true))")
        expect(page.get_by_text("Other ways to share")).to_be_visible()
        expect(page.locator("#pairs-box")).to_be_hidden()
        assert "pair" not in page.locator("body").inner_text().lower()
        visitor.close()
