"""Policies keep their guarantees, on both engines, for every person: what leaves is what was allowed to."""

import math

import numpy as np
import pytest
from tests.worlds import federation, play_with, random_world

from federank.federation import wire
from federank.methods.fpl.communication import replay
from federank.methods.fpl.kernels import BOTH
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.simulation import InMemoryClients
from federank.privacy.ledger import Entry, Ledger
from federank.privacy.policy import Policy

DATA = random_world(users=8, items=24, interactions=80)
SIZES = DATA.profiles.sizes
EVERYONE = {"clients_per_round": "all", "triples": 6}
ROUNDS = 20


class Observer:
    """A server that notes whose Update it received, and in which round."""

    def __init__(self, fleet):
        self.fleet, self.seen = fleet, []

    def choose(self, round_number):
        return self.fleet.choose(round_number)

    def train(self, clients, broadcast, round_number):
        for client in clients:
            for update in self.fleet.train([client], broadcast, round_number):
                self.seen.append((int(client), round_number, update))
                yield update


def observed(established, rounds=ROUNDS):
    """The reference engine's rounds, as a linking server sees them."""
    fleet = Observer(InMemoryClients(established))
    play_with(established, fleet, rounds)
    return fleet


def sent_by_reference(established):
    sent = [set() for _ in range(DATA.n_users)]
    for user, _, update in observed(established).seen:
        sent[user] |= set(update.items[update.biases > 0].tolist())
    return sent


def sent_by_compiled(established):
    """The compiled engine's own draws: which positives arrive, and whose."""
    sent = [set() for _ in range(DATA.n_users)]
    for pairs in replay(established.recipe, established.histories, DATA.n_items, range(ROUNDS)):
        for k in np.flatnonzero(pairs.arrives == BOTH):
            sent[pairs.users[k]].add(int(pairs.positives[k]))
    return sent


ENGINES = {"reference": sent_by_reference, "compiled": sent_by_compiled}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("basis", "pi"), [("history", 0.0), ("history", 0.34), ("history", 1.0), ("shared", 0.1), ("shared", 0.34)]
)
def test_at_most_the_share_of_pi_ever_leaves_with_fixed_subset_sharing(engine, basis, pi):
    sent = ENGINES[engine](federation(DATA, pi=pi, sharing="fixed-subset", basis=basis, **EVERYONE))
    most = [math.ceil(pi * size - 1e-9) for size in SIZES]
    assert all(len(items) <= limit for items, limit in zip(sent, most, strict=True))
    # In this many rounds nearly every pair that can be drawn is drawn, so the bound is met, too.
    assert sum(map(len, sent)) >= 0.95 * sum(most)
    for user, items in enumerate(sent):
        assert items <= set(DATA.profiles.of(user).tolist())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sharing", ["all", "fixed-subset"])
def test_no_more_than_the_budget_ever_leaves(engine, sharing):
    sent = ENGINES[engine](federation(DATA, pi=0.6, sharing=sharing, budget=3, **EVERYONE))
    assert max(map(len, sent)) == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sharing", ["all", "fixed-subset"])
@pytest.mark.parametrize("basis", ["history", "shared"])
def test_what_must_never_be_sent_never_is(engine, sharing, basis):
    never = frozenset(range(0, 24, 3))
    policies = [Policy(sharing=sharing, pi=1.0, basis=basis, never_items=never)] * DATA.n_users
    sent = ENGINES[engine](federation(DATA, policies=policies, **EVERYONE))
    assert not any(items & never for items in sent)
    assert sum(map(len, sent)) > 30


@pytest.mark.parametrize("engine", ENGINES)
def test_who_has_paused_sends_nothing(engine):
    paused = Policy(sharing="all", pi=1.0, basis="history", paused=True)
    policies = [paused, *[Policy(sharing="all", pi=1.0, basis="history")] * (DATA.n_users - 1)]
    sent = ENGINES[engine](federation(DATA, policies=policies, **EVERYONE))
    assert not sent[0]
    assert all(sent[1:])


@pytest.mark.parametrize("engine", ENGINES)
def test_both_engines_send_the_same_decoys(engine):
    established = federation(DATA, pi=0.5, sharing="randomized-response", item_epsilon=1.0, **EVERYONE)
    sent = ENGINES[engine](established)
    starts, items = established.recipe.shared_profile.starts, established.recipe.shared_profile.items
    for user in range(DATA.n_users):
        assert sent[user] <= set(items[starts[user] : starts[user + 1]].tolist())
    assert sum(map(len, sent)) >= 0.95 * len(items)
    assert sum(len(sent[user] - set(DATA.profiles.of(user).tolist())) for user in range(DATA.n_users)) > 10


POLICIES = {
    "all": {"pi": 0.3},
    "per-row": {"pi": 0.3, "mask": "as-printed"},
    "fixed-subset": {"pi": 0.3, "sharing": "fixed-subset"},
    "fixed-subset, history": {"pi": 0.3, "sharing": "fixed-subset", "basis": "history"},
    "randomized-response": {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 1.0},
    "dropout": {"pi": 0.5, "dropout": 0.5},
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_ledger_of_every_client_is_what_an_observer_of_its_updates_sees(name):
    established = federation(DATA, clients_per_round=3, triples=3, **POLICIES[name])
    fleet = observed(established, rounds=40)
    by_observer = [Ledger() for _ in range(DATA.n_users)]
    for user, round_number, update in fleet.seen:
        for item, bias in zip(update.items.tolist(), update.biases.tolist(), strict=True):
            entry = by_observer[user].entries.setdefault(item, Entry(item, round_number, round_number))
            entry.last_round = round_number
            entry.times_liked += bias > 0
            entry.times_compared += bias < 0
    for user, (own, seen) in enumerate(zip(fleet.fleet.ledgers, by_observer, strict=True)):
        history = set(DATA.profiles.of(user).tolist())
        assert [row | {"real": None} for row in own.to_rows()] == seen.to_rows()
        # Real or decoy: what the owner alone knows.
        liked = {entry.item: entry.real for entry in own.entries.values() if entry.times_liked}
        assert liked == {item: item in history for item in liked}
        disclosed = len(history & set(liked)) / len(history)
        assert own.disclosed(DATA.profiles.of(user)) == pytest.approx(disclosed)
    assert sum(len(ledger.entries) for ledger in by_observer) > 80


@pytest.mark.parametrize("triples", [3, "profile"])
def test_on_the_shared_basis_two_histories_with_one_shared_profile_cannot_be_distinguished(triples):
    # Whatever leaves is a function of the shared profile: another history behind it changes no bit of any Update.
    chosen = {"sharing": "fixed-subset", "pi": 0.5, "basis": "shared", "clients_per_round": 3, "triples": triples}
    established = federation(DATA, **chosen)
    recipe, profiles = established.recipe, established.profiles
    hidden = [np.setdiff1d(np.arange(DATA.n_items), profiles.of(user)) for user in range(DATA.n_users)]
    starts, items = recipe.shared_profile.starts, recipe.shared_profile.items
    others = [
        np.union1d(items[starts[user] : starts[user + 1]], hidden[user][:7]).astype(np.int32)
        for user in range(DATA.n_users)
    ]
    sizes = np.array([len(history) for history in others])
    assert not np.array_equal(sizes, SIZES)
    other = federation(DATA, **chosen)
    other.profiles = type(profiles)(np.concatenate(([0], np.cumsum(sizes))), np.concatenate(others))
    for (_, _, one), (_, _, same) in zip(observed(established).seen, observed(other).seen, strict=True):
        np.testing.assert_equal(wire.values(one), wire.values(same))


def test_an_update_holds_nothing_but_rows_of_the_shared_profile_and_of_what_lies_outside_it():
    established = federation(DATA, pi=0.5, sharing="randomized-response", item_epsilon=1.0, **EVERYONE)
    fleet = observed(established, rounds=10)
    for user, _, update in fleet.seen:
        assert isinstance(update, FPLUpdate)
        inside = np.isin(update.items, fleet.fleet.shared_profiles[user].profile)
        np.testing.assert_array_equal(inside, update.biases > 0)
