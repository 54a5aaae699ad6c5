"""Under much noise, what all rounds have told is read together."""

import math

import numpy as np
import pytest

from federank.methods.frugal.private_plan import PrivatePlan, planned
from federank.methods.frugal.private_server import RoundBuffer, received_also, received_from, sketch_of_received
from federank.privacy.accountant import mu_for

ITEMS, DIRECTIONS = 60, 4
NOTHING = RoundBuffer(np.zeros((ITEMS, 0)), np.zeros((ITEMS, 0)))
EVENLY = np.full(ITEMS, 1 / ITEMS)


def orthogonal(seed, columns=DIRECTIONS):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(ITEMS, columns)))[0]


def in_common():
    """What people's items have in common, and the four directions that it has."""
    true = orthogonal(1)
    return true @ np.diag([400.0, 300.0, 200.0, 100.0]) @ true.T, true


def error_of(sketch):
    common, _ = in_common()
    return np.linalg.norm(sketch @ sketch.T - common) / np.linalg.norm(common)


def test_one_round_with_little_noise_is_read_as_it_is():
    common, true = in_common()
    received = received_also(NOTHING, true, common @ true, noise=1e-3)
    assert error_of(sketch_of_received(received, EVENLY)) < 1e-3


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_three_noisy_rounds_tell_more_than_the_last_of_them(scale):
    """However long the vectors were that a round asked with: its messages are of length 1 all the same."""
    common, true = in_common()
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        together, last = NOTHING, NOTHING
        for _ in range(3):
            answered = common @ true + rng.normal(0, 8.0, (ITEMS, DIRECTIONS))
            together = received_also(together, scale * true, answered, noise=8.0)
            last = received_also(NOTHING, scale * true, answered, noise=8.0)
        errors.append([error_of(sketch_of_received(received, EVENLY)) for received in (together, last)])
    joined, alone = np.mean(errors, axis=0)
    assert joined < 0.8 * alone


def test_as_many_directions_are_kept_as_were_asked_for_last_and_storing_changes_nothing():
    common, _ = in_common()
    received = NOTHING
    for seed in (2, 3, 4):
        asked = orthogonal(seed)
        received = received_also(received, asked, common @ asked, noise=2.0)
    assert received.asked.shape == received.answered.shape == (ITEMS, DIRECTIONS)
    np.testing.assert_array_equal(received_from(received.stored()).asked, received.asked)
    assert received_from(np.zeros((ITEMS, 2 * DIRECTIONS))).asked.shape == (ITEMS, 0)


def test_a_clear_signal_asks_for_many_directions_and_reads_rounds_alone():
    noisy, clear = (planned(mu_for(epsilon, 1e-6), 5, 6040, 3706, None) for epsilon in (1.0, 4.0))
    assert noisy.joined
    assert noisy.factors == 15
    assert not clear.joined
    assert clear.factors == 64
    assert not PrivatePlan((0,) * 5, 15, 0.2).joined  # without noise there is nothing to weigh rounds by
    assert not planned(math.inf, 5, 6040, 3706, None).joined


def test_the_noisier_the_more_a_message_is_spent_on_what_many_have():
    powers = [planned(mu_for(1.0, 1e-6), 5, people, 1682, None).power for people in (300, 943, 2_000, 4_000)]
    assert powers == sorted(powers, reverse=True)
    assert powers[0] > powers[-1]
