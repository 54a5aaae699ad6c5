"""One recipe of FedRec through both engines: the same factors, in every style, filling and reading.

The reference engine moves every W by itself; the compiled engine keeps one scale and one shift for them all. Beyond
that they differ only in the order in which floating-point numbers are added, so factors (of size about one) agree
to 2e-5 after dozens of rounds.
"""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.methods.fedrec.simulation import play_compiled, play_reference

TOLERANCE = 2e-5

HYBRID = {"filling": "hybrid", "rho": 1.5, "t_predict": 2, "t_local": 3}
SETTINGS = {
    "rho 0": {},
    "average": {"filling": "average", "rho": 1},
    "more virtual ratings than there are items": {"filling": "average", "rho": 50},
    "hybrid": HYBRID,
    "average, fixed sample": {"filling": "average", "rho": 1, "sampling": "fixed"},
    "hybrid, fixed sample": HYBRID | {"sampling": "fixed"},
    "hybrid, early": HYBRID | {"filling_start": "early"},
    "hybrid, own vectors": HYBRID | {"local_training": "own"},
    "hybrid, local passes over all": HYBRID | {"local_ratings": "all"},
    "hybrid, no local passes": HYBRID | {"t_local": 0},
    "item gradients after": {"item_gradients": "after", "filling": "average", "rho": 1},
    "rate by iteration": {"client_rate": "iteration", "filling": "average", "rho": 0.5},
    "strong regulariser": {"regulariser": 3.0, "filling": "average", "rho": 1},
    "unfederated": {"federated": False},
}
METHODS = {
    "stochastic PMF": {"method": "pmf", "style": "stochastic", "learning_rate": 0.05},
    "batch PMF": {"method": "pmf", "style": "batch", "learning_rate": 0.4},
    "SVD++": {"method": "svdpp", "learning_rate": 0.05},
}


def tables(established):
    return established.item_vectors, established.implicit_vectors, established.user_vectors, established.participations


def pair(method, settings, data=None):
    data = rated_world() if data is None else data
    return tuple(rating_federation(data, **METHODS[method], **SETTINGS[settings]) for _ in range(2))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_engines_learn_the_same_factors(method, settings):
    one, other = pair(method, settings)
    before = [table.copy() for table in tables(one)]
    rounds = 3 * one.rounds_per_epoch
    play_compiled(one, rounds)
    play_reference(other, rounds)
    assert one.round_number == other.round_number == rounds
    for fast, plain in zip(tables(one), tables(other), strict=True):
        np.testing.assert_allclose(fast, plain, atol=TOLERANCE, rtol=TOLERANCE)
    for learnt, first in zip(tables(one)[:3], before[:3], strict=True):
        assert not len(first) or not np.allclose(learnt, first)


@pytest.mark.parametrize("settings", ["hybrid", "rate by iteration", "unfederated"])
@pytest.mark.parametrize("method", METHODS)
def test_where_a_run_is_cut_changes_no_bit(method, settings):
    whole, cut = pair(method, settings)
    play_compiled(whole, 40)
    for part in (1, 17, 3, 19):
        play_compiled(cut, part)
    for a, b in zip(tables(whole), tables(cut), strict=True):
        np.testing.assert_array_equal(a, b)


def heavy_user():
    """One who has rated nearly everything, among others."""
    return rated_world(users=6, items=120, ratings=900, seed=3)


@pytest.mark.parametrize("settings", ["rho 0", "average", "strong regulariser", "item gradients after"])
def test_the_short_cut_of_svdpp_equals_the_plain_loops_for_those_who_rate_much(settings):
    # With a regulariser of 3 the common scale falls below its limit within a pass, and rows are written out.
    one, other = pair("SVD++", settings, heavy_user())
    play_compiled(one, 12)
    play_reference(other, 12)
    for fast, plain in zip(tables(one), tables(other), strict=True):
        np.testing.assert_allclose(fast, plain, atol=TOLERANCE, rtol=TOLERANCE)


def test_another_seed_is_another_run():
    one, other = (rating_federation(rated_world(), seed=seed) for seed in (1, 2))
    assert not np.allclose(one.item_vectors, other.item_vectors)
    for mine, theirs in zip(tables(other), tables(one), strict=True):
        mine[:] = theirs
    play_compiled(one, 100)
    play_compiled(other, 100)
    assert not np.allclose(one.item_vectors, other.item_vectors)


@pytest.mark.parametrize("method", METHODS)
def test_padding_stays_zero(method):
    established = rating_federation(rated_world(), **METHODS[method], factors=5, filling="average", rho=1)
    play_compiled(established, 20)
    for table in tables(established)[:3]:
        assert not table[:, 5:].any()
