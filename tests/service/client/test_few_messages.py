"""A device of few messages: what it sends, what it counts for its lifetime, and what no server can make it do."""

import csv
import json
import random
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.client.worlds import FACTORS, ITEMS, packed, scripted_federation, squares_rows
from tests.squares_worlds import update_of, vector_of

from federank.cli import federank
from federank.errors import BadAnswer, SettingError
from federank.methods.frugal.protocol import rows_of
from federank.methods.frugal.settings import FrugalSettings, frugal_recipe
from federank.methods.frugal.wire import decode_frugal_broadcast, decode_frugal_update, encode_frugal_update
from federank.privacy.policy import Policy, shared_profile
from federank.service.client.client import take_part
from federank.service.client.enrolment import enrol
from federank.service.client.federation import read_info
from federank.service.client.http import Client
from federank.service.client.owner import recommend
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import DeviceStore

HISTORY = [1, 4, 6, 9]
MESSAGES = 3
ALL_OF_IT = Policy(sharing="fixed-subset", pi=1.0, basis="shared")
HALF = Policy(sharing="fixed-subset", pi=0.5, basis="shared")


@pytest.fixture
def federation():
    with scripted_federation(MESSAGES) as federation:
        yield federation


class Home:
    """A device at home: its file, its line, and what it told its owner."""

    def __init__(self, federation, folder, policy=ALL_OF_IT, history=HISTORY):
        self.federation, self.path, self.told = federation, folder / "device.sqlite", []
        profile = folder / "me.csv"
        profile.write_text("item\n" + "".join(f"{100 + item}\n" for item in history))
        with self.client() as client:
            chosen = ChosenPolicy(policy, "owner")
            enrol(client, self.path, profile, lambda *_: chosen, random_bits=random.Random(1).getrandbits)

    def client(self):
        return Client(self.federation.address, token="t1", note=self.told.append, sleep=lambda _: None)

    def take_part(self, rounds):
        with DeviceStore(self.path) as store, self.client() as client:
            return take_part(store, client, rounds, self.told.append)

    def read(self, reader, *more):
        with DeviceStore(self.path) as store:
            return reader(store, *more)

    def run(self, *words):
        result = CliRunner().invoke(federank, ["client", words[0], "--state", str(self.path), *words[1:]])
        assert result.exception is None, result.output + repr(result.exception)
        return result.stdout


@pytest.fixture
def home(federation, tmp_path):
    return Home(federation, tmp_path)


def recipe_of(federation):
    info = read_info(json.dumps(federation.info()).encode())
    return frugal_recipe(FrugalSettings(**info.settings.public_settings()), np.ones(1, dtype=np.int64), ITEMS)


def the_model(version=0):
    return decode_frugal_broadcast(squares_rows(range(ITEMS), version, version), FACTORS, ITEMS)


def expected(federation, profile):
    return update_of(recipe_of(federation), the_model(), profile)


def sent_by(federation):
    return [decode_frugal_update(body, FACTORS, ITEMS) for _, body in federation.uploads]


def same(one, other):
    return encode_frugal_update(one) == encode_frugal_update(other)


def test_a_client_sends_what_the_protocol_computes_from_its_history(home):
    assert home.take_part(1) == 1
    assert [same(update, expected(home.federation, HISTORY)) for update in sent_by(home.federation)] == [True]


def test_a_client_sends_its_messages_and_then_no_other_however_often_it_is_invited(home):
    assert home.take_part(9) == MESSAGES
    assert home.take_part(9) == 0
    assert len(home.federation.uploads) == MESSAGES
    assert home.told[-1].startswith("This client has sent 3 messages")
    assert [(sent.number, sent.allowed, sent.items) for sent in home.read(DeviceStore.ledger).messages] == [
        (1, 3, 4),
        (2, 3, 4),
        (3, 3, 4),
    ]


def test_a_client_that_has_sent_its_messages_still_gets_models_and_recommends_from_them(home):
    home.take_part(9)
    home.federation.version = 40
    home.take_part(1)
    assert home.read(DeviceStore.model_version) == 40
    assert len(home.federation.uploads) == MESSAGES
    assert len(home.read(recommend, 5)) == 5


def test_an_owner_may_allow_fewer_messages_and_never_more(federation, tmp_path):
    one = Home(federation, tmp_path, Policy(sharing="fixed-subset", pi=1.0, basis="shared", messages=1))
    assert one.take_part(9) == 1
    one.read(DeviceStore.write_policy, Policy(sharing="fixed-subset", pi=1.0, basis="shared", messages=99))
    assert one.take_part(9) == MESSAGES - 1


def test_a_server_that_asks_for_more_messages_than_it_promised_gets_nothing(home):
    home.take_part(2)
    home.federation.messages = 99
    with pytest.raises(BadAnswer, match=r"\b99\b.*\b3\b"):
        home.take_part(9)
    assert len(home.federation.uploads) == 2


def test_messages_count_for_a_lifetime_also_where_the_federation_is_started_again(home):
    home.take_part(2)
    home.federation.federation_id = "e" * 32
    assert home.take_part(9) == 1
    assert len(home.federation.uploads) == MESSAGES


def test_held_back_items_are_in_no_message(federation, tmp_path):
    """Another history of which the same items are shared makes the very same bytes."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = Home(federation, tmp_path / "one", HALF)
    identity = one.read(DeviceStore.identity)
    shared = shared_profile(HALF, identity.seed, identity.user, np.array(HISTORY, np.int32), ITEMS).profile.tolist()
    hidden = [item for item in HISTORY if item not in shared]
    others = [[*shared, *more] for more in ([0, 2], [0, 3], [2, 3], [3, 5], [7, 8], [10, 11])]
    twin = next(
        sorted(history)
        for history in others
        if shared_profile(
            HALF, identity.seed, identity.user, np.array(sorted(history), np.int32), ITEMS
        ).profile.tolist()
        == shared
    )
    assert set(hidden).isdisjoint(twin)
    two = Home(federation, tmp_path / "two", HALF, twin)
    assert (one.take_part(1), two.take_part(1)) == (1, 1)
    (_, first), (_, second) = federation.uploads
    assert first == second
    assert same(sent_by(federation)[0], expected(federation, shared))
    assert one.read(DeviceStore.ledger).really_liked().tolist() == shared


def test_never_lists_and_budgets_hold_before_anything_leaves(federation, tmp_path):
    policy = Policy(sharing="fixed-subset", pi=1.0, basis="shared", never_items=frozenset({4}), budget=2)
    home = Home(federation, tmp_path, policy)
    home.take_part(9)
    shared = home.read(DeviceStore.ledger).really_liked().tolist()
    assert len(shared) == 2
    assert 4 not in shared
    assert all(same(update, expected(federation, shared)) for update in sent_by(federation))


@pytest.mark.parametrize(
    "policy",
    [Policy(sharing="all", pi=0.5, basis="history"), Policy(sharing="fixed-subset", pi=0.5, basis="history")],
)
def test_a_policy_that_few_messages_cannot_keep_is_refused_before_enrolling(federation, tmp_path, policy):
    with pytest.raises(SettingError, match="fixed-subset or randomized-response"):
        Home(federation, tmp_path, policy)
    assert ("POST", "/api/v1/devices") not in federation.asked


def test_a_message_that_was_interrupted_is_sent_again_with_the_same_bytes_and_counts_once(home):
    home.federation.fault("POST", "/tasks", *["cut"] * 1)
    assert home.take_part(1) == 1
    with DeviceStore(home.path) as store:
        assert store.ledger().spent == 1
    # The file as it is when the device dies between writing and sending.
    sql = sqlite3.connect(home.path)
    sql.execute("INSERT INTO pending VALUES (1, 'ticket9', 1, ?)", (home.federation.uploads[0][1],))
    sql.commit()
    sql.close()
    assert home.take_part(0) == 1
    assert home.read(DeviceStore.ledger).spent == 1
    assert home.federation.stored["ticket9"] == home.federation.uploads[0][1]


def test_recommendations_come_from_the_complete_history_in_closed_form(federation, tmp_path):
    home = Home(federation, tmp_path, HALF)
    vector = vector_of(recipe_of(federation), the_model(), HISTORY)
    scores = rows_of(the_model()) @ vector
    best = [item for item in np.argsort(-scores, kind="stable") if item not in HISTORY][:3]
    listed = home.read(recommend, 3)
    assert [suggestion.item for suggestion in listed] == [str(100 + item) for item in best]
    assert [suggestion.score for suggestion in listed] == pytest.approx(scores[best])


def test_a_model_that_cannot_be_solved_with_is_an_error_and_nothing_is_sent(home):
    flat = {"regulariser": np.zeros(1), "vectors": np.zeros((ITEMS, FACTORS), np.float32)}
    home.federation.fault("GET", "/tasks", (200, {}, packed(flat, 0, 0)))
    with pytest.raises(BadAnswer, match=r"run out of range .*nothing was sent"):
        home.take_part(1)
    assert not home.federation.uploads
    assert home.read(DeviceStore.ledger).spent == 0


@pytest.mark.parametrize(
    "recipe",
    [
        {"messages": 0},
        {"messages": 10**9},
        {"messages": None},
        {"factors": ITEMS + 1},
        {"alpha": -1},
        {"activity": 2},
        {"clip": 0},
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(federation, recipe):
    info = federation.info()
    info["recipe"] |= recipe
    with pytest.raises(BadAnswer, match=next(iter(recipe))):
        read_info(json.dumps(info).encode())


def test_no_readable_message_goes_to_a_federation_that_promised_to_read_none(federation, tmp_path):
    kept = federation.info
    federation.info = lambda: kept() | {"uploads": "sums"}
    with pytest.raises(BadAnswer, match="only messages that no single server can read"):
        Home(federation, tmp_path)
    federation.info = kept
    home = Home(federation, tmp_path)
    federation.info = lambda: kept() | {"uploads": "sums"}
    with pytest.raises(BadAnswer, match="Nothing was sent"):
        home.take_part(1)
    assert not federation.uploads


@pytest.mark.parametrize("name", ["ledger.csv", "ledger.json"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_an_exported_ledger_has_every_item_and_message(home, tmp_path, name, rounds):
    home.take_part(rounds)
    path = tmp_path / name
    home.run("ledger", "--out", str(path))
    kept, ids = home.read(DeviceStore.ledger), home.read(DeviceStore.catalogue).ids
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        items, messages = (content["items"], content["messages"]) if rounds else (content, [])
    else:
        rows = list(csv.DictReader(path.read_text().splitlines()))
        items, messages = ([row for row in rows if bool(row["item"]) is named] for named in (True, False))
    assert len(messages) == len(kept.messages) == rounds
    counted = [(row["item"], int(row["times_liked"]), int(row["last_round"])) for row in items]
    assert counted == [(ids[one.item], one.times_liked, one.last_round) for one in kept.entries.values()]


def test_the_commands_say_how_many_messages_have_left(home):
    home.take_part(2)
    status = json.loads(home.run("status", "--json"))
    assert (status["messages_sent"], status["messages_left"]) == (2, 1)
    assert "100.0%" in home.run("ledger")
    assert json.loads(home.run("ledger", "--json"))["messages"][-1] == {
        "number": 2,
        "allowed": 3,
        "round": 1,
        "items": 4,
    }
    home.take_part(2)
    home.run("status")
    status = json.loads(home.run("status", "--json"))
    assert (status["method"], status["messages_sent"], status["messages_left"]) == ("frugal", 3, 0)
    assert len(json.loads(home.run("recommend", "-n", "2", "--json"))) == 2
