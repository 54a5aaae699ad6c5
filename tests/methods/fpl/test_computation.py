"""Computation on one device: pairs drawn from its own history, gradients by hand, a vector that moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import federation, random_world

from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import compute
from federank.methods.fpl.wire import Broadcast, Private

RATE = 0.1
P, LIKED, OTHER = np.float32([1, 2]), np.float32([0.5, -1]), np.float32([0.25, 0.5])


def recipe(**settings):
    wanted = {"factors": 2, "learning_rate": RATE, "user_regulariser": 0.5} | settings
    return federation(random_world(), **wanted).recipe


def device(profile, triples, vector=P):
    """Someone's device, with everything allowed."""
    items = np.array(profile, dtype=np.int32)
    return Private(0, vector.copy(), items, 1.0, np.ones(len(items), dtype=np.bool_), triples)


def model(vectors, biases, round_number=3):
    everything = np.arange(len(biases), dtype=np.int32)
    return Broadcast(round_number, 0, everything, np.array(vectors, np.float32), np.array(biases, np.float32))


def computed(private, broadcast, **settings):
    with words_wrap_around():
        return compute(recipe(**settings), private, broadcast)


TWO_ITEMS = model([LIKED, OTHER], [0.3, 0.1])  # of which a device has the first: there is one pair to draw
SLOPE = 1 / (1 + np.exp((0.3 - 0.1) + P @ (LIKED - OTHER)))
USER, POSITIVE, NEGATIVE = (np.float32(RATE * share) for share in (0.5, 1 / 20, 1 / 200))


def test_one_pair_by_hand():
    somebody = device([0], triples=1)
    found = computed(somebody, TWO_ITEMS)
    assert (found.positives.tolist(), found.negatives.tolist()) == ([0], [1])
    assert found.slopes[0] == pytest.approx(SLOPE, rel=1e-5)
    np.testing.assert_allclose(found.positive_vectors[0], SLOPE * P - POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(found.negative_vectors[0], -SLOPE * P - NEGATIVE * OTHER, rtol=1e-5)
    np.testing.assert_allclose(somebody.vector, P + RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


def test_as_published_the_second_pair_meets_the_vector_that_the_first_has_moved():
    once, twice = device([0], triples=1), device([0], triples=2)
    computed(once, TWO_ITEMS)
    found = computed(twice, TWO_ITEMS)
    moved = 1 / (1 + np.exp((0.3 - 0.1) + once.vector @ (LIKED - OTHER)))
    np.testing.assert_allclose(found.slopes, [SLOPE, moved], rtol=1e-5)
    np.testing.assert_allclose(found.positive_vectors[1], moved * once.vector - POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(
        twice.vector, once.vector + RATE * (moved * (LIKED - OTHER) - USER * once.vector), rtol=1e-5
    )


def test_summed_all_pairs_meet_the_vector_as_the_round_found_it():
    somebody = device([0], triples=3)
    found = computed(somebody, TWO_ITEMS, order="as-printed")
    np.testing.assert_allclose(found.slopes, [SLOPE] * 3, rtol=1e-5)
    np.testing.assert_allclose(found.negative_vectors, [-SLOPE * P - NEGATIVE * OTHER] * 3, rtol=1e-5)
    np.testing.assert_allclose(somebody.vector, P + 3 * RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


@given(st.sets(st.integers(0, 19), min_size=1, max_size=19), st.integers(0, 1000))
def test_positives_are_the_persons_own_and_negatives_never_are(profile, round_number):
    own = sorted(profile)
    broadcast = model(np.zeros((20, 2)), np.zeros(20), round_number)
    found = computed(device(own, triples=8), broadcast)
    assert set(found.positives.tolist()) <= profile
    assert not set(found.negatives.tolist()) & profile
    np.testing.assert_array_equal(np.array(own)[found.positions], found.positives)


def test_every_pair_is_as_likely_as_any_other():
    # Three of five items: six pairs, also where most negatives are met at the third try only.
    broadcast = model(np.zeros((5, 2)), np.zeros(5))
    found = computed(device([0, 2, 3], triples=2400), broadcast)
    counts = np.zeros((5, 5), dtype=int)
    np.add.at(counts, (found.positives, found.negatives), 1)
    assert np.all(abs(counts[np.ix_([0, 2, 3], [1, 4])] - 400) < 5 * 400**0.5)
    assert counts.sum() == counts[np.ix_([0, 2, 3], [1, 4])].sum()


def test_the_received_model_stays_as_it_was():
    before = TWO_ITEMS.vectors.copy(), TWO_ITEMS.biases.copy()
    computed(device([0], triples=5), TWO_ITEMS)
    np.testing.assert_array_equal(TWO_ITEMS.vectors, before[0])
    np.testing.assert_array_equal(TWO_ITEMS.biases, before[1])


def test_another_round_has_other_pairs_and_the_same_round_the_same():
    rounds = [computed(device([0, 2, 3], triples=20), model(np.zeros((9, 2)), np.zeros(9), r)) for r in (1, 2, 1)]
    assert rounds[0].negatives.tolist() != rounds[1].negatives.tolist()
    for one, other in zip(rounds[0], rounds[2], strict=True):
        np.testing.assert_array_equal(one, other)
