"""One recipe through every engine: the same factors, for every configuration of the papers and of ours.

The engines differ only in the order in which floating-point numbers are added, so their factors (of size about one)
agree to a few units in the last place of a float32: 2e-5 after dozens of rounds.
"""

import numpy as np
import pytest
from tests.worlds import federation, random_world

from federank.methods.fpl import kernels as pairs
from federank.methods.fpl.settings import PRESETS
from federank.methods.fpl.simulation import play_compiled, play_reference, shard_count
from federank.privacy.policy import Policy

TOLERANCE = 2e-5

KINDS = [
    Policy(sharing="all", pi=0.3, basis="history"),
    Policy(sharing="all", pi=0.3, basis="history", budget=4, never_items=frozenset({1, 2, 3, 4, 5, 6, 7})),
    Policy(sharing="fixed-subset", pi=0.5, basis="history", never_items=frozenset({1, 2, 3, 4, 5, 6, 7})),
    Policy(sharing="fixed-subset", pi=0.0, basis="shared"),
    Policy(sharing="randomized-response", pi=0.5, item_epsilon=2.0, basis="shared"),
    Policy(sharing="all", pi=1.0, basis="history", paused=True),
] * 2

CONFIGURATIONS = {
    **PRESETS,
    "pi": {"pi": 0.3},
    "pi of zero": {"pi": 0.0, "triples": 3},
    "pi of one's own": {"pi": np.linspace(0, 1, 12), "triples": 2},
    "per-row": {"pi": 0.3, "mask": "as-printed"},
    "per-row, many pairs": {"pi": 0.3, "mask": "as-printed", "triples": "mean", "clients_per_round": 4},
    "fixed-subset": {"pi": 0.3, "sharing": "fixed-subset"},
    "fixed-subset, from the history": {"pi": 0.3, "sharing": "fixed-subset", "basis": "history"},
    "fixed-subset, many pairs": {
        "pi": 0.3,
        "sharing": "fixed-subset",
        "basis": "history",
        "triples": "mean",
        "clients_per_round": "all",
    },
    "fixed-subset, shared": {"pi": 0.4, "sharing": "fixed-subset", "basis": "shared", "triples": 3},
    "budget": {"pi": 0.5, "budget": 3},
    "budget, shared, per-row": {"pi": 0.5, "budget": 3, "basis": "shared", "mask": "as-printed", "triples": 4},
    "randomized-response": {"pi": 0.5, "sharing": "randomized-response", "item_epsilon": 1.0},
    "randomized-response, many pairs": {
        "pi": 0.5,
        "sharing": "randomized-response",
        "item_epsilon": 1.0,
        "triples": "profile",
        "clients_per_round": "all",
    },
    "everyone's own choice": {"policies": KINDS, "triples": 3, "clients_per_round": 4},
    "summed": {"order": "as-printed", "triples": 5},
    "summed, all clients": {"order": "as-printed", "triples": "profile", "clients_per_round": "all"},
    "some clients": {"clients_per_round": 5, "triples": 2},
    "a share of clients": {"clients_per_round": 0.75, "triples": 2},
    "profile": {"triples": "profile"},
    "online": {"online": 0.5},
    "online, some clients": {"online": 0.5, "clients_per_round": 4},
    "trace": {"trace": np.random.default_rng(5).random((7, 12)) < 0.5, "clients_per_round": 3},
    "dropout": {"dropout": 0.4},
    "dropout, many pairs": {"dropout": 0.4, "triples": 4, "clients_per_round": "all"},
    "zero biases, other rates": {"initial_biases": "zero", "learning_rate": 0.5, "initial_scale": 0.5},
    "adam": {"server": "adam", "clients_per_round": "all", "triples": "3x profile", "weight_decay": 2.0},
    "adam, one client": {"server": "adam", "learning_rate": 0.01, "beta1": 0.5, "beta2": 0.9},
    "adam, hardly anyone there": {"server": "adam", "online": 0.2, "clients_per_round": 2},
    "adam, fixed-subset": {
        "server": "adam",
        "sharing": "fixed-subset",
        "pi": 0.4,
        "clients_per_round": "all",
        "triples": "mean",
    },
    "weight decay alone": {"weight_decay": 0.5, "clients_per_round": 4},
    "regularisers": {"user_regulariser": 1.0, "positive_regulariser": 2.0, "negative_regulariser": 0.5},
}


def tables(established):
    return established.item_vectors, established.item_biases, established.user_vectors


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_engines_learn_the_same_factors(name):
    data = random_world()
    one, other = (federation(data, **CONFIGURATIONS[name]) for _ in range(2))
    before = [table.copy() for table in tables(one)]
    rounds = min(40, 2 * one.recipe.rounds_per_epoch)
    play_compiled(one, rounds)
    play_reference(other, rounds)
    assert one.round_number == other.round_number == rounds
    for fast, plain in zip(one.tables().all.values(), other.tables().all.values(), strict=True):
        np.testing.assert_allclose(fast, plain, atol=TOLERANCE, rtol=TOLERANCE)
    assert not np.allclose(one.user_vectors, before[2])
    if "pi" not in CONFIGURATIONS[name] or np.max(CONFIGURATIONS[name]["pi"]) > 0:
        assert not np.allclose(one.item_vectors, before[0])


def large_round(**server):
    """A federation whose rounds are large enough to be divided into shards."""
    return federation(
        random_world(users=1500, items=60, interactions=30_000), clients_per_round="all", triples=6, pi=0.5, **server
    )


@pytest.mark.parametrize("server", [{}, {"server": "adam", "weight_decay": 3.0}], ids=["plain", "adam"])
def test_the_number_of_threads_changes_no_bit(server):
    one, two = large_round(**server), large_round(**server)
    assert shard_count(one.recipe, *one.item_vectors.shape) > 2
    play_compiled(one, 5, threads=1)
    play_compiled(two, 5, threads=2)
    for a, b in zip(tables(one), tables(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_sparse_round_is_folded_in_with_the_same_bits():
    # Few rows touched of a large catalogue: the other way of folding shards in.
    data = random_world(users=1500, items=40_000, interactions=30_000)
    one, two = (federation(data, clients_per_round="all", triples=2) for _ in range(2))
    play_compiled(one, 3, threads=1)
    play_compiled(two, 3, threads=2)
    for a, b in zip(tables(one), tables(two), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["sfpl", "sfpl+", "pfpl", "summed", "online, some clients", "dropout", "adam"])
def test_where_a_run_is_cut_changes_no_bit(name):
    data = random_world()
    whole, cut = (federation(data, **CONFIGURATIONS[name]) for _ in range(2))
    play_compiled(whole, 61)
    for part in (1, 7, 40, 13):
        play_compiled(cut, part)
    for a, b in zip(tables(whole), tables(cut), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["sfpl", "pfpl+"])
def test_a_population_too_large_for_bits_draws_the_same_pairs(name, monkeypatch):
    data = random_world()
    with_bits, without = (federation(data, **CONFIGURATIONS[name]) for _ in range(2))
    play_compiled(with_bits, 100)
    monkeypatch.setattr(pairs, "_MOST_BIT_BYTES", 0)
    assert len(without.histories.bits) == 0 < len(with_bits.histories.bits)
    play_compiled(without, 100)
    for a, b in zip(tables(with_bits), tables(without), strict=True):
        np.testing.assert_array_equal(a, b)


def test_blocks_of_draws_do_not_show():
    # More rounds than a block holds, in one piece and in pieces that straddle its border.
    data = random_world()
    whole, cut = federation(data), federation(data)
    play_compiled(whole, 1300)
    for part in (511, 1, 2, 786):
        play_compiled(cut, part)
    for a, b in zip(tables(whole), tables(cut), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_is_another_run():
    one, other = federation(random_world(), seed=1), federation(random_world(), seed=2)
    assert not np.allclose(one.item_vectors, other.item_vectors)
    other.item_vectors[:], other.item_biases[:], other.user_vectors[:] = tables(one)
    play_compiled(one, 100)
    play_compiled(other, 100)
    assert not np.allclose(one.item_vectors, other.item_vectors)


@pytest.mark.parametrize("server", ["plain", "adam"])
def test_padding_stays_zero(server):
    established = federation(random_world(), factors=5, triples=4, clients_per_round=3, server=server)
    play_compiled(established, 50)
    assert not established.item_vectors[:, 5:].any()
    assert not established.user_vectors[:, 5:].any()
