"""A device of few messages: what it sends, what it counts for its lifetime, and what no server can make it do."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.service.client.homes import EVERYTHING, HISTORY, Home
from tests.service.client.worlds import FACTORS, ITEMS, packed, scripted_federation, squares_rows
from tests.squares_worlds import encode_update, lone_method, read_broadcast, read_update, update_of, vector_of

from federank.errors import BadAnswer, SettingError
from federank.privacy.policy import Policy, shared_profile
from federank.service.client.federation import read_info
from federank.service.client.owner import recommend
from federank.service.client.store import ClientStore

MESSAGES = 3
HALF = Policy(sharing="fixed-subset", pi=0.5, basis="shared")


@pytest.fixture
def federation():
    with scripted_federation(MESSAGES) as federation:
        yield federation


@pytest.fixture
def home(federation, tmp_path):
    return Home(federation, tmp_path)


def recipe_of(federation):
    info = read_info(json.dumps(federation.info()).encode())
    return lone_method(ITEMS, **info.settings.public_settings())


def the_model(version=0):
    return read_broadcast(squares_rows(range(ITEMS), version, version), FACTORS, ITEMS)


def expected(federation, profile):
    return update_of(recipe_of(federation), the_model(), profile)


def sent_by(federation):
    return [read_update(body, FACTORS, ITEMS) for _, body in federation.uploads]


def same(one, other):
    return encode_update(one) == encode_update(other)


def test_client_sends_the_methods_update(home):
    assert home.take_part(1) == 1
    assert [same(update, expected(home.federation, HISTORY)) for update in sent_by(home.federation)] == [True]


def test_quota_bounds_messages(home):
    assert home.take_part(9) == MESSAGES
    assert home.take_part(9) == 0
    assert len(home.federation.uploads) == MESSAGES
    assert "3" in home.notes[-1]
    messages = home.read(ClientStore.ledger).messages
    assert [(sent.number, sent.allowed, sent.items) for sent in messages] == [(1, 3, 4), (2, 3, 4), (3, 3, 4)]


def test_client_without_messages_left_gets_models(home):
    home.take_part(9)
    home.federation.version = 40
    home.take_part(1)
    assert home.read(ClientStore.model_version) == 40
    assert len(home.federation.uploads) == MESSAGES
    assert len(home.read(recommend, 5)) == 5


def test_owner_may_allow_fewer_messages(federation, tmp_path):
    one = Home(federation, tmp_path, policy=replace(EVERYTHING, messages=1))
    assert one.take_part(9) == 1
    one.read(ClientStore.write_policy, replace(EVERYTHING, messages=99))
    assert one.take_part(9) == MESSAGES - 1


def test_more_messages_than_agreed_are_refused(home):
    home.take_part(2)
    home.federation.messages = 99
    with pytest.raises(BadAnswer, match=r"\b99\b.*\b3\b"):
        home.take_part(9)
    assert len(home.federation.uploads) == 2


def test_messages_count_across_restarted_federations(home):
    home.take_part(2)
    home.federation.federation_id = "e" * 32
    assert home.take_part(9) == 1
    assert len(home.federation.uploads) == MESSAGES


def test_withheld_items_are_in_no_message(federation, tmp_path):
    """Another history of which the same items are shared makes the very same bytes."""
    one = Home(federation, tmp_path, policy=HALF)
    identity = one.read(ClientStore.identity)

    def shared_of(history):
        return shared_profile(HALF, identity.seed, identity.user, np.array(history, np.int32), ITEMS).profile.tolist()

    shared = shared_of(HISTORY)
    others = [sorted([*shared, *more]) for more in ([0, 2], [0, 3], [2, 3], [3, 5], [7, 8], [10, 11])]
    twin = next(history for history in others if shared_of(history) == shared)
    assert (set(HISTORY) - set(shared)).isdisjoint(twin)
    two = Home(federation, tmp_path, twin, HALF, name="twin")
    assert (one.take_part(1), two.take_part(1)) == (1, 1)
    (_, first), (_, second) = federation.uploads
    assert first == second
    assert same(sent_by(federation)[0], expected(federation, shared))
    assert one.read(ClientStore.ledger).really_liked().tolist() == shared


def test_never_lists_and_budgets_bound_messages(federation, tmp_path):
    home = Home(federation, tmp_path, policy=replace(EVERYTHING, never_items=frozenset({4}), budget=2))
    home.take_part(9)
    shared = home.read(ClientStore.ledger).really_liked().tolist()
    assert len(shared) == 2
    assert 4 not in shared
    assert all(same(update, expected(federation, shared)) for update in sent_by(federation))


@pytest.mark.parametrize("sharing", ["all", "fixed-subset"])
def test_policies_of_many_uploads_are_refused_before_enrolling(federation, tmp_path, sharing):
    with pytest.raises(SettingError):
        Home(federation, tmp_path, policy=Policy(sharing=sharing, pi=0.5, basis="history"))
    assert ("POST", "/api/v1/clients") not in federation.asked


def test_interrupted_message_is_repeated_and_counts_once(home):
    home.federation.fault("POST", "/tasks", "cut")
    assert home.take_part(1) == 1
    assert home.read(ClientStore.ledger).spent == 1
    # The file as it is when the device dies between writing and sending.
    home.sql("INSERT INTO pending VALUES (1, 'ticket9', 1, ?)", home.federation.uploads[0][1])
    assert home.take_part(0) == 1
    assert home.read(ClientStore.ledger).spent == 1
    assert home.federation.stored["ticket9"] == home.federation.uploads[0][1]


def test_recommendations_use_the_complete_history(federation, tmp_path):
    home = Home(federation, tmp_path, policy=HALF)
    vector = vector_of(recipe_of(federation), the_model(), HISTORY)
    scores = the_model().vectors @ vector
    best = [item for item in np.argsort(-scores, kind="stable") if item not in HISTORY][:3]
    listed = home.read(recommend, 3)
    assert [suggestion.item for suggestion in listed] == [str(100 + item) for item in best]
    assert [suggestion.score for suggestion in listed] == pytest.approx(scores[best])


def test_singular_model_sends_nothing(home):
    flat = {"regulariser": np.zeros(1), "vectors": np.zeros((ITEMS, FACTORS), np.float32)}
    home.federation.fault("GET", "/tasks", (200, {}, packed(flat, 0, 0)))
    with pytest.raises(BadAnswer, match="out of range"):
        home.take_part(1)
    assert not home.federation.uploads
    assert home.read(ClientStore.ledger).spent == 0


@pytest.mark.parametrize(
    "recipe",
    [
        *({"messages": wrong} for wrong in (0, 10**9, None)),
        *({"factors": ITEMS + 1}, {"alpha": -1}, {"activity": 2}, {"clip": 0}),
    ],
)
def test_wrong_settings_are_refused(federation, recipe):
    info = federation.info()
    info["recipe"] |= recipe
    with pytest.raises(BadAnswer, match=next(iter(recipe))):
        read_info(json.dumps(info).encode())


def test_no_plain_message_goes_to_a_federation_of_secure_aggregation(federation, tmp_path):
    kept = federation.info
    federation.info = lambda: kept() | {"uploads": "sums"}
    with pytest.raises(BadAnswer):
        Home(federation, tmp_path)
    federation.info = kept
    home = Home(federation, tmp_path)
    federation.info = lambda: kept() | {"uploads": "sums"}
    with pytest.raises(BadAnswer):
        home.take_part(1)
    assert not federation.uploads


@pytest.mark.parametrize("name", ["ledger.csv", "ledger.json"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_exported_ledger_has_every_item_and_message(home, tmp_path, name, rounds):
    home.take_part(rounds)
    path = tmp_path / name
    home.run("ledger", "--out", str(path))
    kept, ids = home.read(ClientStore.ledger), home.read(ClientStore.catalogue).ids
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        items, messages = (content["items"], content["messages"]) if rounds else (content, [])
    else:
        rows = list(csv.DictReader(path.read_text().splitlines()))
        items, messages = ([row for row in rows if bool(row["item"]) is named] for named in (True, False))
    assert len(messages) == len(kept.messages) == rounds
    counted = [(row["item"], int(row["times_liked"]), int(row["last_round"])) for row in items]
    assert counted == [(ids[one.item], one.times_liked, one.last_round) for one in kept.entries.values()]


def test_commands_count_messages(home):
    home.take_part(2)
    status = json.loads(home.run("status", "--json"))
    assert (status["messages_sent"], status["messages_left"]) == (2, 1)
    assert "100.0%" in home.run("ledger")
    last = json.loads(home.run("ledger", "--json"))["messages"][-1]
    assert last == {"number": 2, "allowed": 3, "round": 1, "items": 4}
    home.take_part(2)
    home.run("status")
    status = json.loads(home.run("status", "--json"))
    assert (status["method"], status["messages_sent"], status["messages_left"]) == ("frugal", 3, 0)
    assert len(json.loads(home.run("recommend", "-n", "2", "--json"))) == 2
