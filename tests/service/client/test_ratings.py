"""A client of ratings: stars at home, what leaves, the ledger, and wrong ratings."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.service.client.owner import complaint, told
from tests.service.client.worlds import FACTORS, ITEMS, rating_rows, scripted_federation

from federank.federation import wire
from federank.federation.method import Client, ItemGradients
from federank.methods.fedrec.method import PMF, RatingModel
from federank.privacy.accountant import answered
from federank.service.client.client import near, send_evaluation
from federank.service.client.federation import Ticket
from federank.service.client.store import ClientStore
from federank.service.server.store.evaluation import Judged, report_of

STARS = {1: 5, 4: 2, 6: 4}
SUGGESTED = {"sharing": "fixed-subset", "pi": 1.0, "basis": "shared"}
SUGGESTED |= {"filling": "average", "rho": 1.0, "sampling": "fixed"}


@pytest.fixture
def federation():
    with scripted_federation(ratings=True) as federation:
        federation.suggested_policy = SUGGESTED
        yield federation


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("item,rating\n101,3\nPlace 4,2\n106,4\n101,5\nNowhere,1\n")
    return path


@pytest.fixture
def enrolled(federation, state, history):
    def enrol(*words, rounds=0):
        place = ("--server", federation.address, "--profile", history, "--state", state)
        return told(*place, *words, "--rounds", rounds)

    return enrol


def sent(federation):
    return [wire.decode(ItemGradients, PMF(n_items=ITEMS, factors=FACTORS), body) for _, body in federation.uploads]


def test_last_rating_of_an_item_counts(enrolled, state):
    words = enrolled().stderr
    assert "Matched 4 of 5" in words
    with ClientStore(state) as store:
        kept = store.history()
    assert dict(zip(kept.items.tolist(), kept.ratings.tolist(), strict=True)) == STARS, "the later line counts"


def test_client_sends_the_methods_update(federation, enrolled, state):
    enrolled(rounds=2)
    with ClientStore(state) as store:
        identity, policy = store.identity(), store.policy().policy
    method, items = identity.info.settings.chosen(policy, 1.0), np.array(sorted(STARS), np.int32)
    ratings = np.array([STARS[item] for item in items.tolist()], np.float32)
    client = Client(identity.seed, identity.user, 0, items, ratings)
    for number, (_, body) in enumerate(federation.uploads):
        broadcast = wire.decode_rows(RatingModel, method, rating_rows(number, number)).part
        result = method.client_update(replace(client, round=number), broadcast)
        client = replace(client, state=result.state)
        assert body == wire.encode(result.update)
        assert len(result.update.items) == 6, "three were rated, three sampled"


def test_ledger_separates_rated_and_sampled_items(federation, enrolled, state, tmp_path):
    enrolled(rounds=3)
    names = [set(update.items.tolist()) for update in sent(federation)]
    assert names[0] == names[1] == names[2], "samples are for its lifetime"
    words = told("ledger", "--state", state).stdout
    assert "100.0%" in words
    assert words.count("rated ") >= 3
    assert words.count("sampled ") >= 3
    rows = json.loads(told("ledger", "--state", state, "--json").stdout)["entries"]
    assert {row["item"] for row in rows if row["times_rated"]} == {str(100 + item) for item in STARS}
    assert {row["item"] for row in rows if row["times_sampled"]} == {str(100 + item) for item in names[0] - set(STARS)}
    out = tmp_path / "ledger.csv"
    told("ledger", "--state", state, "--out", out)
    exported = {row["item"]: row["times_sampled"] for row in csv.DictReader(out.read_text().splitlines())}
    assert exported == {row["item"]: str(row["times_sampled"]) for row in rows}


def test_never_list_and_budget_bound_ratings(federation, enrolled, state):
    enrolled("--never-items", "Place 4", "--budget", 1, "--filling", "none", rounds=3)
    names = {item for update in sent(federation) for item in update.items.tolist()}
    assert len(names) == 1
    assert 4 not in names


def test_predictions_and_their_fallback(enrolled, state):
    enrolled()
    found = json.loads(told("predict", "Place 2", "--state", state, "--json").stdout)
    assert 1 <= found["rating"] <= 5
    assert (found["fallback"], found["own"]) == (False, None)
    told("rate", "Place 2", 5, "--state", state)
    after = json.loads(told("predict", "Place 2", "--state", state, "--json").stdout)
    assert after["own"] == 5
    assert abs(after["rating"] - 5) < abs(found["rating"] - 5), "a rating that is known draws the prediction near"
    silent = told("predict", f"Place {ITEMS - 1}", "--state", state)
    assert float(silent.stdout) == 4, "the mean of 5, 2, 4 and 5"
    assert "Place 11" in silent.stderr
    listed = json.loads(told("recommend", "--state", state, "--json").stdout)
    assert str(100 + ITEMS - 1) not in [row["item"] for row in listed]
    assert all(1 <= row["score"] <= 5 for row in listed)


def test_rating_changes_and_is_removed(federation, enrolled, state):
    enrolled(rounds=1)
    assert "5; it was 2." in told("rate", "Place 4", 5, "--state", state).stdout
    assert "Place 4" in told("rate", "Place 4", "none", "--state", state).stdout
    told("--state", state, "--rounds", 1)
    with ClientStore(state) as store:
        assert store.history().items.tolist() == [1, 6]
        assert store.ledger().entries[4].last_round == 0 or store.ledger().entries[4].times_compared
        history = {row["item"]: row["rating"] for row in json.loads(told("export", "--state", state).stdout)["history"]}
    assert history == {"101": 5, "106": 4}


def test_wrong_ratings_are_refused(enrolled, state):
    enrolled()
    for stars in ("4.5", "9", "nan", "good"):
        assert stars in complaint("rate", "Place 2", stars, "--state", state)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("item\n101\n104\n", "`rating`"),
        ("101\n104\n", "ratings"),
        ("item,rating\n101,good\n", "row 2"),
        ("item,rating\n101,4\n104,\n", "row 3"),
        ("item,rating\n101,0\n", "row 2"),
        ("item,stars\n101,2.5\n", "2.5"),
        ("item,rating\n" + "".join(f"{100 + n},3\n" for n in range(ITEMS)), "hide"),
    ],
)
def test_wrong_histories_are_refused(federation, state, tmp_path, text, named):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert named in complaint("--server", federation.address, "--profile", path, "--state", state, "--rounds", 0)
    assert not state.exists()


def test_only_rating_cannot_be_removed(federation, state, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("item,rating\n101,4\n")
    told("--server", federation.address, "--profile", path, "--state", state, "--rounds", 1)
    assert len(sent(federation)[0].items) == 2
    assert "only rating" in complaint("rate", "101", "none", "--state", state)


def test_complete_catalogue_cannot_be_rated(enrolled, state):
    enrolled()
    for item in range(ITEMS - 1):
        told("rate", 100 + item, 3, "--state", state)
    complaint("rate", 100 + ITEMS - 1, 3, "--state", state)


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        (("--sharing", "randomized-response", "--item-epsilon", 1, "--pi", 0.5), "--sharing fixed-subset"),
        (("--rho", 2, "--filling", "none"), "rho"),
        (("--triples", 3), "--triples"),
    ],
)
def test_choices_of_likes_are_refused(federation, state, history, choices, named):
    words = complaint("--server", federation.address, "--profile", history, "--state", state, "--rounds", 0, *choices)
    assert named in words
    assert not state.exists()


def test_federation_of_likes_has_no_stars(state, tmp_path):
    path = tmp_path / "likes.csv"
    path.write_text("item\n101\n104\n")
    with scripted_federation() as likes:
        place = ("--server", likes.address, "--profile", path, "--state", state, "--rounds", 0)
        assert "--rho" in complaint(*place, "--pi", 1, "--rho", 2)
        told(*place, "--pi", 1)
    complaint("rate", "101", 4, "--state", state)
    complaint("predict", "101", "--state", state)


def test_evaluation_compares_a_withheld_rating(federation, enrolled, state):
    enrolled("--evaluate")
    with ClientStore(state) as store:
        identity, held_back = store.identity(), store.held_back()
        assert held_back not in store.training_history().items
        model = store.model(identity.info)
        history = store.training_history()
        taste = identity.info.rules.home_vector(0, 0, history, model)
        off = abs(np.clip(model.vectors[held_back] @ taste, 1, 5) - STARS[held_back]) / 4
        assert near(store, identity, model, held_back, off + 0.01)
        assert not near(store, identity, model, held_back, off - 0.01) or off < 0.01
        assert near(store, identity, model, held_back, off**2 + 0.01, is_squared=True)
        assert not near(store, identity, model, held_back, off**2 - 0.01, is_squared=True) or off < 0.1


def test_coin_chooses_error_or_squared_error(enrolled, state):
    enrolled("--evaluate")
    sent = []
    line = SimpleNamespace(request=lambda method, path, body, **_: sent.append((method, path, json.loads(body))))
    for version, coin in ((5, 0.6), (6, 0.4)):
        draws = [0.0, 1.0, coin]  # popped from the end: the coin, a hit however far off, and the true answer
        with ClientStore(state) as store:
            store.write_model(store.model(store.identity().info)._replace(version=version))
            ticket = Ticket(f"ticket-{version}", 1, version, 60.0, 10)
            assert send_evaluation(store, line, store.identity(), ticket, lambda _: None, draws.pop)
        assert draws == []
    assert sent == [
        ("POST", "/hits", {"ticket": "ticket-5", "hit": True}),
        ("POST", "/hits", {"ticket": "ticket-6", "hit": True, "measure": "squared"}),
    ]


def test_many_randomised_answers_give_both_errors():
    rng = np.random.default_rng(5)
    errors = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], 400_000, p=[0.2, 0.3, 0.3, 0.15, 0.05])
    counts = {False: [0, 0], True: [0, 0]}
    drawn = (rng.random(len(errors)) for _ in range(3))
    for off, squared, chance, flip in zip(*(one.tolist() for one in (errors / 4, *drawn)), strict=True):
        is_squared = squared < 0.5
        hit = answered(chance >= (off * off if is_squared else off), flip)
        counts[is_squared][0] += 1
        counts[is_squared][1] += hit
    answers = report_of(Judged(3, *counts[False], *counts[True]), 4.0)
    assert answers["mae"] == pytest.approx(errors.mean(), abs=0.03)
    assert answers["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), abs=0.04)
