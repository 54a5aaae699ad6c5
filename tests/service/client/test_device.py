"""A client in rounds: what it sends, what it keeps, and how it repeats what was interrupted."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.service.client.homes import ALL_OF_IT, HISTORY, Home
from tests.service.client.worlds import FACTORS, ITEMS, in_json, rows
from tests.worlds import decode_update

from federank.errors import BadState, NoAnswer, Refused, SettingError
from federank.federation import method as interface
from federank.federation import wire
from federank.federation.client import History
from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import NO_BITS, Draw, FPLModel, Profile, draw_pair
from federank.privacy.policy import Policy, shared_profile
from federank.service.client import client as device_module
from federank.service.client.enrolment import enrol, leave
from federank.service.client.owner import exported, recommend
from federank.service.client.state import ChosenPolicy, suggested_policy
from federank.service.client.store import ClientStore


def home_of(federation, folder, policy=ALL_OF_IT, **more):
    return Home(federation, folder, policy=policy, **more)


def liked_in(uploads):
    """Whether an upload raises any item's bias, as liked items do."""
    return any((decode_update(body, FACTORS, ITEMS).biases >= 0).any() for _, body in uploads)


def test_enrolling_sends_nothing_about_the_user(home):
    posts = [asked for asked in home.federation.asked if asked[0] == "POST"]
    assert posts == [("POST", "/api/v1/clients")]
    assert home.read(ClientStore.profile).tolist() == HISTORY
    assert home.read(ClientStore.identity).token == "t1"


def test_clients_have_seeds_of_their_own(federation, tmp_path):
    usual = enrol.__kwdefaults__["random_bits"]
    homes = [home_of(federation, tmp_path, name=name, random_bits=usual) for name in ("one", "two")]
    one, two = (home.read(ClientStore.identity) for home in homes)
    assert (one.seed, one.user) != (two.seed, two.user)


def test_client_sends_the_methods_update(home):
    identity, model = home.read(ClientStore.identity), home.model()
    assert home.take_part(1) == 1
    expected = method_update(identity, ALL_OF_IT, HISTORY, model, 0)
    (_, body), *others = home.federation.uploads
    assert not others
    np.testing.assert_equal(wire.values(decode_update(body, FACTORS, ITEMS)), wire.values(expected.update))
    np.testing.assert_array_equal(home.read(ClientStore.vector, FACTORS), expected.state.vector)


@pytest.mark.parametrize(("spec", "most", "pairs"), [(1, None, 1), (9, None, 5), (9, 7, 7), (None, 7, 5)])
def test_pairs_are_bounded_by_owner_and_federation(federation, tmp_path, monkeypatch, spec, most, pairs):
    recipe = federation.recipe() | ({} if most is None else {"most_triples": most})
    monkeypatch.setattr(federation, "recipe", lambda: recipe)
    home = home_of(federation, tmp_path, policy=replace(ALL_OF_IT, triples=spec))
    assert home.take_part(1) == 1
    [(_, body)] = federation.uploads
    update = decode_update(body, FACTORS, ITEMS)
    identity = home.read(ClientStore.identity)
    taken = shared_profile(ALL_OF_IT, identity.seed, identity.user, np.array(HISTORY, np.int32), ITEMS)
    profile = Profile(taken.profile, 0, len(taken.profile), NO_BITS, ITEMS)
    with words_wrap_around():
        drawn = [draw_pair(Draw(identity.seed, identity.user, 0, counter), profile) for counter in range(pairs)]
    named = {int(taken.profile[place]) for place, _, _ in drawn} | {int(negative) for _, negative, _ in drawn}
    assert set(update.items.tolist()) == named


def test_ledger_is_what_an_observer_sees(home):
    assert home.take_part(6) == 6
    liked, compared = {}, {}
    for _, body in home.federation.uploads:
        update = decode_update(body, FACTORS, ITEMS)
        for item, bias in zip(update.items.tolist(), update.biases.tolist(), strict=True):
            counted = liked if bias > 0 else compared
            counted[item] = counted.get(item, 0) + 1
    entries = home.read(ClientStore.ledger).entries
    assert {item: entry.times_liked for item, entry in entries.items() if entry.times_liked} == liked
    assert {item: entry.times_compared for item, entry in entries.items() if entry.times_compared} == compared
    assert set(liked) <= set(HISTORY)
    assert liked


def test_client_asks_for_changed_rows(home):
    home.federation.fault("GET", "/tasks", (200, {}, rows(range(ITEMS), 0, 0)), (200, {}, rows([3, 5], 1, 1, seed=9)))
    home.take_part(2)
    fetched = [path for method, path in home.federation.asked if path.startswith("/api/v1/tasks") and "have" in path]
    assert [path.partition("?")[2] for path in fetched] == ["have=0", "have=0"]
    model = home.model()
    before = np.random.default_rng(0).normal(size=(ITEMS, FACTORS)).astype(np.float32)
    after = np.random.default_rng(9).normal(size=(2, FACTORS)).astype(np.float32)
    assert model.version == 1
    np.testing.assert_array_equal(model.vectors[[3, 5]], after)
    np.testing.assert_array_equal(np.delete(model.vectors, [3, 5], 0), np.delete(before, [3, 5], 0))


@pytest.mark.parametrize(
    "policy",
    [
        Policy(sharing="fixed-subset", pi=0.0, basis="history"),
        Policy(sharing="all", pi=1.0, basis="history", never_items=frozenset(HISTORY)),
        Policy(sharing="all", pi=1.0, basis="history", budget=0),
    ],
)
def test_no_liked_item_is_sent_against_the_policy(federation, tmp_path, policy):
    home = home_of(federation, tmp_path, policy)
    assert home.take_part(3) == 3
    assert not liked_in(federation.uploads)
    assert home.read(ClientStore.ledger).disclosed(HISTORY) == 0


@pytest.mark.slow
@pytest.mark.parametrize("taking_back", ["forbidden", "removed"])
def test_budget_counts_for_a_lifetime(federation, tmp_path, taking_back):
    budgeted = Policy(sharing="all", pi=1.0, basis="history", budget=2)
    home = home_of(federation, tmp_path, budgeted)
    home.take_part(8)
    sent = set(home.read(ClientStore.ledger).really_liked().tolist())
    if taking_back == "forbidden":
        home.read(ClientStore.write_policy, replace(budgeted, never_items=frozenset(sent)))
    else:
        home.read(ClientStore.write_history, History(np.array(sorted(set(HISTORY) - sent), dtype=np.int32)))
    before = len(federation.uploads)
    home.take_part(8)
    assert len(federation.uploads) == before + 8
    assert not liked_in(federation.uploads[before:])
    assert len(sent) == 2


@pytest.mark.parametrize("policy", [Policy(sharing="fixed-subset", pi=0.0, basis="shared"), ALL_OF_IT])
def test_client_without_shared_items_or_paused_asks_for_no_work(federation, tmp_path, policy):
    home = home_of(federation, tmp_path, policy)
    if policy == ALL_OF_IT:
        home.read(ClientStore.write_policy, Policy(sharing="all", pi=1.0, basis="history", paused=True))
    assert home.take_part(1) == 0
    assert not any("/work" in path for _, path in federation.asked)
    assert home.read(recommend, 3)


def test_server_cannot_change_a_policy(home):
    home.federation.suggested_policy = {"sharing": "all", "pi": 1.0, "basis": "history"}
    home.read(ClientStore.write_policy, Policy(sharing="fixed-subset", pi=0.0, basis="history"))
    home.take_part(2)
    assert not liked_in(home.federation.uploads)
    assert home.read(ClientStore.policy) == (Policy(sharing="fixed-subset", pi=0.0, basis="history"), "owner")


def test_suggested_policy_must_be_valid(home):
    info = home.read(ClientStore.identity).info
    with pytest.raises(SettingError, match="--pi"):
        suggested_policy(info)
    home.federation.suggested_policy = {"sharing": "fixed-subset", "pi": 0.3, "basis": "history", "item_epsilon": None}
    home.take_part(1)
    suggested = ChosenPolicy(Policy(sharing="fixed-subset", pi=0.3, basis="history"), "suggested")
    assert suggested_policy(home.read(ClientStore.identity).info) == suggested
    for wrong in (
        {"sharing": "everything", "pi": 7, "send": "history"},
        {"sharing": "fixed-subset", "pi": 1, "budget": 10**400},
    ):
        home.federation.suggested_policy = wrong
        home.take_part(1)
        with pytest.raises(SettingError, match="follow"):
            suggested_policy(home.read(ClientStore.identity).info)


@pytest.mark.parametrize("fault", ["cut", (500, {}, b""), (503, {"Retry-After": "1"}, b"{}")])
def test_upload_whose_answer_is_lost_is_repeated(home, fault):
    # The server has stored the first one, and its answer got lost.
    take = home.federation.take
    lost = [fault, fault]
    home.federation.take = lambda ticket, body: (take(ticket, body), lost.pop(0))[1] if lost else take(ticket, body)
    assert home.take_part(1) == 1
    bodies = [body for _, body in home.federation.uploads]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
    assert home.read(ClientStore.rounds) == 1


@pytest.mark.slow
def test_full_disk_sends_nothing(home):
    # A process that may not write files beyond a size meets the same fault as one on a full disk.
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from federank.service.client.http import Client\n"
        "from federank.service.client.client import take_part\n"
        "from federank.errors import BadState\n"
        "from federank.service.client.store import ClientStore\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = ClientStore(Path(sys.argv[1]))\n"
        "client = Client(sys.argv[2], token='t1')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n"
        "try:\n"
        "    take_part(store, client, 1, print)\n"
        "except BadState as mistake:\n"
        "    print('BadState:', mistake)\n"
    )
    before = home.everything()
    command = [sys.executable, "-c", program, str(home.path), home.federation.address]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert "BadState: " in done.stdout
    assert home.federation.uploads == []
    assert home.everything() == before


@pytest.mark.parametrize("name", ["vector", "model"])
@pytest.mark.parametrize("content", [b"", bytes(7), np.full(FACTORS, np.nan, np.float32).tobytes()])
def test_damaged_numbers_are_an_error(home, name, content):
    home.sql("UPDATE kept SET value = ? WHERE name = ?", content, name)
    with pytest.raises(BadState, match="damaged"):
        home.take_part(1)
    assert home.federation.uploads == []


@pytest.mark.slow
def test_killed_client_repeats_its_upload(home):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from federank.service.client.http import Client\n"
        "from federank.service.client.client import take_part\n"
        "from federank.service.client.store import ClientStore\n"
        "client = Client(sys.argv[2], token='t1', sleep=lambda _: os.kill(os.getpid(), signal.SIGKILL))\n"
        "take_part(ClientStore(Path(sys.argv[1])), client, 1, print)\n"
    )
    home.federation.fault("POST", "/tasks", (500, {}, b""))
    ended = subprocess.run([sys.executable, "-c", program, str(home.path), home.federation.address], check=False)
    assert ended.returncode == -9
    pending, ledger = home.read(ClientStore.pending), home.read(ClientStore.ledger)
    vector = home.read(ClientStore.vector, FACTORS)
    assert pending is not None
    assert ledger.entries  # what may have left counts as left
    assert home.take_part(0) == 1
    assert home.federation.uploads == [(pending.ticket, pending.body)]
    assert home.read(ClientStore.pending) is None
    assert home.read(ClientStore.ledger) == ledger
    np.testing.assert_array_equal(home.read(ClientStore.vector, FACTORS), vector)


@pytest.mark.parametrize(
    ("writer", "change"),
    [
        (ClientStore.write_policy, Policy(sharing="fixed-subset", pi=0.0, basis="history")),
        (ClientStore.write_history, History(np.array(HISTORY[1:], dtype=np.int32))),
    ],
    ids=["policy", "history"],
)
def test_pending_upload_is_dropped_when_its_owner_takes_something_back(home, writer, change):
    home.federation.fault("POST", "/tasks", (401, {}, b"{}"))
    with pytest.raises(Refused):
        home.take_part(1)
    home.read(ClientStore.write_history, History(np.array([*HISTORY, 11], dtype=np.int32)))
    assert home.read(ClientStore.pending) is not None, "nothing was taken back"
    home.read(writer, change)
    ledger = home.read(ClientStore.ledger)
    assert home.take_part(0) == 0
    assert home.federation.uploads == []
    assert home.read(ClientStore.ledger) == ledger
    assert ledger.entries


def expected_update(home, policy, history, vector):
    """What the protocol makes of the next round with this vector."""
    identity, model = home.read(ClientStore.identity), home.model()
    sent = home.read(ClientStore.ledger).really_liked()
    return method_update(identity, policy, history, model, home.federation.version, vector, sent)


def method_update(identity, policy, history, model, number, vector=None, sent=None):
    """What the method makes of a round."""
    taken = shared_profile(policy, identity.seed, identity.user, np.array(history, np.int32), ITEMS, sent)
    state, withheld = None if vector is None else interface.UserVector(vector), taken.profile[~taken.allowed]
    client = interface.Client(identity.seed, identity.user, number, taken.profile, state=state, withheld=withheld)
    method = identity.info.settings.chosen(policy, 1.0 if taken.lifelong else policy.pi)
    return method.client_update(client, FPLModel(model.vectors, model.tables["biases"]))


def assert_sends(home, expected):
    home.take_part(1)
    sent = decode_update(home.federation.uploads[-1][1], FACTORS, ITEMS)
    np.testing.assert_equal(wire.values(sent), wire.values(expected.update))


STICKY = Policy(sharing="fixed-subset", pi=1.0, basis="shared")


@pytest.mark.parametrize(
    ("before", "after", "history"),
    [
        (ALL_OF_IT, replace(STICKY, pi=0.5), HISTORY),
        (ALL_OF_IT, Policy(sharing="randomized-response", pi=0.9, item_epsilon=0.2, basis="shared"), HISTORY),
        (STICKY, replace(STICKY, never_items=frozenset({4})), HISTORY),
        (STICKY, STICKY, HISTORY[1:]),
        (ALL_OF_IT, ALL_OF_IT, HISTORY[1:]),
    ],
    ids=["another basis", "decoys", "never-listed", "a smaller history", "a smaller history on its basis"],
)
def test_what_is_taken_back_is_forgotten(federation, tmp_path, before, after, history):
    home = home_of(federation, tmp_path, before)
    home.take_part(6)
    if after != before:
        home.read(ClientStore.write_policy, after)
    if history != HISTORY:
        home.read(ClientStore.write_history, History(np.array(history, dtype=np.int32)))
    assert_sends(home, expected_update(home, after, history, None))


def test_what_is_not_taken_back_is_kept(federation, tmp_path):
    home = home_of(federation, tmp_path, STICKY)
    home.take_part(3)
    home.read(ClientStore.write_policy, replace(STICKY, paused=True))
    home.read(ClientStore.write_policy, STICKY)
    home.read(ClientStore.write_history, History(np.array([*HISTORY, 11], dtype=np.int32)))
    learnt = home.read(ClientStore.vector, FACTORS)
    assert_sends(home, expected_update(home, STICKY, [*HISTORY, 11], learnt))


@pytest.mark.parametrize("change", [{"paused": True}, {"pi": 0.5}])
def test_retries_end_when_the_policy_changes(home, change):
    home.federation.fault("POST", "/tasks", *[(503, {}, b"{}")] * 3)
    pauses = []

    def pause(_):
        pauses.append(1)
        if len(pauses) == 2:  # the owner, from another terminal
            home.read(ClientStore.write_policy, replace(ALL_OF_IT, **change))

    assert home.take_part(1, sleep=pause) == 0
    sent = [path for method, path in home.federation.asked if method == "POST" and "/update" in path]
    assert sent == ["/api/v1/tasks/ticket1/update"] * 2
    assert home.federation.uploads == []
    assert any("held back" in note for note in home.notes)
    assert home.read(ClientStore.ledger).entries  # it may have left before


def test_ticket_has_one_update(home):
    home.federation.fault("POST", "/tasks", (410, {}, b"{}"))
    assert home.take_part(1) == 0
    vector, ledger = home.read(ClientStore.vector, FACTORS), home.read(ClientStore.ledger)
    again = in_json(home.federation.ticket())  # the very same one, as if nothing had happened
    nothing = (401, {}, b"{}")
    home.federation.fault("GET", "/work", again, again, nothing)
    with pytest.raises(Refused):
        home.take_part(1)
    assert home.federation.uploads == []
    assert home.read(ClientStore.ledger) == ledger
    np.testing.assert_array_equal(home.read(ClientStore.vector, FACTORS), vector)


@pytest.mark.parametrize(("status", "slug"), [(409, "repeated"), (410, "late"), (404, "foreign"), (422, "malformed")])
def test_refusal_ends_an_upload(home, status, slug):
    told = json.dumps({"error": slug, "message": "Whole sentence."}).encode()
    home.federation.fault("POST", "/tasks", (status, {}, told))
    assert home.take_part(1) == 0
    assert home.read(ClientStore.pending) is None
    assert home.read(ClientStore.ledger).entries
    assert any("not counted" in note for note in home.notes)


def test_upload_ends_at_the_deadline(home):
    home.federation.fault("POST", "/tasks", *[(503, {"Retry-After": "100"}, b"")] * 50)  # a ticket has 60 seconds
    assert home.take_part(1) == 0
    assert len([path for method, path in home.federation.asked if method == "POST" and "tasks" in path]) == 1
    assert home.read(ClientStore.pending) is None


def test_ended_round_is_skipped(home):
    before = home.everything()
    gone = in_json({"error": "late", "message": "Over."}, 410)
    home.federation.fault("GET", "/tasks", gone)

    def prepared(store, client):
        identity = device_module.settle(store, client, home.notes.append)
        ticket = device_module.wait_for_work(client)
        return device_module.prepare(store, client, identity, ticket, time.monotonic() + 9, home.notes.append)

    assert home.act(prepared) is None
    assert home.everything() == before


def test_failed_first_enrolment_leaves_no_file(federation, tmp_path):
    federation.fault("POST", "/clients", *[(503, {}, b"")] * 9)
    with pytest.raises(NoAnswer):
        home_of(federation, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["me-device.csv"]


def test_recommendations_are_local(home):
    home.take_part(2)
    asked = len(home.federation.asked)
    listed = home.read(recommend, 100)
    assert len(home.federation.asked) == asked
    assert {suggestion.item for suggestion in listed} == {str(100 + i) for i in range(ITEMS) if i not in HISTORY}
    model, vector = home.model(), home.read(ClientStore.vector, FACTORS)
    scores = [suggestion.score for suggestion in listed]
    assert scores == sorted(scores, reverse=True)
    expected = model.vectors @ vector + model.tables["biases"]
    assert scores[0] == pytest.approx(np.delete(expected, HISTORY).max(), abs=1e-5)


def test_recommendations_use_the_home_vector(federation, tmp_path):
    home = home_of(federation, tmp_path, Policy(sharing="fixed-subset", pi=0.5, basis="shared"))
    home.take_part(1)
    home.read(recommend, 3)
    kept = home.read(ClientStore.home_vector, home.model().version)
    assert kept is not None
    assert not np.array_equal(kept, home.read(ClientStore.vector, FACTORS))


def test_leaving_keeps_the_ledger(home):
    home.take_part(2)
    ledger = home.read(ClientStore.ledger)
    leave(home.path, home.notes.append)
    assert ("DELETE", "/api/v1/clients/me") in home.federation.asked
    assert home.read(ClientStore.ledger) == ledger
    with pytest.raises(BadState, match="has left"):
        home.take_part(1)
    leave(home.path, home.notes.append)  # a second time is no mistake


def test_export_has_no_token(home):
    home.take_part(1)
    told = home.read(exported)
    assert [entry["item"] for entry in told["history"]] == [str(100 + item) for item in HISTORY]
    assert len(told["ledger"]) == len(home.read(ClientStore.ledger).entries)
    assert "t1" not in json.dumps(told).replace("ticket1", "")
