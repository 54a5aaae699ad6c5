"""How loud a message may be that passes: the figures that docs/norm-proof.md states, by argument and by search."""

import hashlib

import numpy as np
import pytest
from tests.secagg.proof.uploads import accepted, liars_upload
from tests.secagg.worlds import offer

from federank.errors import SettingError
from federank.secagg.proof.circuit import project
from federank.secagg.proof.parameters import FULL, LIGHT, PASSING_NORMS, RANGE_BITS, passing_norm
from federank.secagg.proof.proof import wires_of
from federank.secagg.ring import C_INT, in_ring

SIZES = [LIGHT, FULL]
LENGTH, SEEDS = 256, 600


@pytest.mark.parametrize("parameters", SIZES)
def test_honest_messages_are_outside_with_less_than_one_in_2_to_the_40(parameters):
    """The squares' sum is dominated by that of normal numbers of half the variance: Chernoff's bound of it."""
    tau, half = parameters.limit / C_INT**2, parameters.projections / 2
    too_long = -(tau - half) + half * np.log(tau / half)
    out_of_range = np.log(2 * parameters.projections) - (2 ** (RANGE_BITS - 1) / C_INT) ** 2
    assert np.logaddexp(too_long, out_of_range) < -40 * np.log(2)


@pytest.mark.parametrize("parameters", SIZES)
def test_no_message_of_the_stated_norm_passes_more_often_than_stated(parameters):
    """Chernoff's bound, with the worst of all messages: by Hölder's inequality one of n equal numbers, n >= 1."""
    g = np.linspace(0, 10, 1501)
    weights = np.exp(-g * g / 2)
    weights[0] /= 2
    weights /= weights.sum()
    n = np.concatenate([np.linspace(1, 6, 26), np.geomspace(6.5, 1e4, 15)])[:, None]
    strengths = np.geomspace(0.5, 20, 60)  # s times the squared norm
    worst = [
        max(
            np.log(np.abs(np.cos(np.sqrt(a / 2 / n) * g)) ** (2 * n) @ weights).max(),
            -0.5 * np.log(1 + a),  # n without end
        )
        for a in strengths
    ]
    for bits, norm in PASSING_NORMS[parameters.projections].items():
        bound = strengths * parameters.limit / C_INT**2 / norm**2 + parameters.projections * np.array(worst)
        assert bound.min() < -bits * np.log(2), norm


def directions():
    """Unit messages of many shapes."""
    rng = np.random.default_rng(3)
    found = [np.eye(1, LENGTH, 5)[0]]
    for count in (2, 3, 4, 16, LENGTH):
        equal = np.zeros(LENGTH)
        equal[:count] = 1
        found.append(equal)
    found += [np.array([1.0, 0.5] + [0.1] * 254), 0.8 ** np.arange(LENGTH), rng.normal(size=LENGTH)]
    found.append(np.where(rng.uniform(size=LENGTH) < 0.5, -1.0, 1.0))
    return [direction / np.linalg.norm(direction) for direction in found]


@pytest.mark.parametrize("parameters", SIZES)
def test_a_search_over_shapes_and_draws_finds_nothing_longer_than_stated(parameters):
    """For each draw of projections, the loudest scaling of each shape that would still have passed."""
    unit = 2.0**16  # fine enough that rounding is no matter; projections are linear
    vectors = [in_ring(np.round(direction * unit).astype(np.int64)) for direction in directions()]
    loudest = 0.0
    for seed in range(SEEDS):
        key = hashlib.sha256(seed.to_bytes(8, "big")).digest()
        projected = project(key, bytes(32), parameters.projections, *vectors).view(np.int32) / unit
        squares = (projected**2).sum(axis=1)
        within = np.sqrt(parameters.limit / squares) / C_INT
        in_range = 2 ** (RANGE_BITS - 1) / C_INT / np.abs(projected).max(axis=1)
        loudest = max(loudest, np.minimum(within, in_range).max())
    assert 1.3 < loudest < passing_norm(parameters.projections)


def wrapped():
    """Messages that a sum of squares in the ring would not see, and others that wrap."""
    rng = np.random.default_rng(4)
    for count in (1, 2, 7, LENGTH):
        for value in (2**31, 2**30, 2**16, 3 * 2**30, 2**31 - 1):
            message = np.zeros(LENGTH, dtype=np.int64)
            message[:count] = value
            yield message
    yield rng.integers(0, 2**32, LENGTH)
    yield rng.choice([0, 2**31], LENGTH)
    yield rng.choice([-(2**16) + 1, 2**16 - 1], LENGTH)


@pytest.mark.parametrize("parameters", SIZES)
def test_messages_that_wrap_the_ring_do_not_pass(parameters):
    vectors = [in_ring(message) for message in wrapped()]
    for seed in range(100):
        key = hashlib.sha256(b"w" + seed.to_bytes(8, "big")).digest()
        for projected in project(key, bytes(32), parameters.projections, *vectors):
            assert wires_of(parameters, projected, np.zeros_like(projected)) is None


def test_a_message_made_for_one_reports_projections_fails_with_its_own():
    """Projections follow from the shares: what vanishes under those of one report meets others in the next."""
    terms, key = offer(length=LENGTH)
    seen = {}

    def note(parameters, leader, helper):
        seen["wires"] = wires_of(parameters, leader, helper)
        return seen["wires"] if seen["wires"] is not None else np.zeros(parameters.wires)

    coefficients = project(bytes(32), bytes(32), 64, *np.eye(LENGTH, dtype=np.uint32)).view(np.int32).T
    _, _, rows = np.linalg.svd(coefficients.astype(float))
    hidden = np.round(rows[-1] * 50 * C_INT).astype(np.int64)
    assert np.abs(coefficients @ hidden).max() < C_INT / 10
    for seed in range(10):
        upload = liars_upload(LIGHT, terms, hidden, note, seed)
        assert seen["wires"] is None
        assert not accepted(LIGHT, terms, key, upload)


def test_the_passing_norm_is_reported_for_what_was_proved_only():
    assert (passing_norm(), passing_norm(64), passing_norm(128, 60)) == (2.2, 3.0, 3.1)
    with pytest.raises(SettingError, match="20, 40, 60 bits; found 30"):
        passing_norm(128, 30)
    with pytest.raises(SettingError, match="64 or 128 projections"):
        passing_norm(32)
