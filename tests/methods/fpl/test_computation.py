"""Computation on one client: pairs drawn from its own history, gradients by hand, a vector that moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.federation.method import Client, UserVector
from federank.methods.fpl.method import FPL, FPLModel

RATE = 0.1
P, LIKED, OTHER = np.float32([1, 2]), np.float32([0.5, -1]), np.float32([0.25, 0.5])


def model(vectors, biases):
    return FPLModel(np.array(vectors, np.float32), np.array(biases, np.float32))


def updated(profile, broadcast, triples, round_number=3, **settings):
    """The update of a client with this history, and its vector afterwards."""
    wanted = {"factors": 2, "learning_rate": RATE, "user_regulariser": 0.5, "triples": triples} | settings
    method = FPL(n_items=len(broadcast.biases), **wanted)
    client = Client(1, 0, round_number, np.array(profile, np.int32), state=UserVector(P.copy()))
    result = method.client_update(client, broadcast)
    return result.update, result.state.vector


TWO_ITEMS = model([LIKED, OTHER], [0.3, 0.1])  # of which a client has the first: there is one pair to draw
SLOPE = 1 / (1 + np.exp((0.3 - 0.1) + P @ (LIKED - OTHER)))
USER, POSITIVE, NEGATIVE = (np.float32(RATE * share) for share in (0.5, 1 / 20, 1 / 200))


def test_one_pair_by_hand():
    update, vector = updated([0], TWO_ITEMS, triples=1)
    assert update.items.tolist() == [0, 1]
    np.testing.assert_allclose(update.biases, [SLOPE, -SLOPE], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[0], SLOPE * P - POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(update.vectors[1], -SLOPE * P - NEGATIVE * OTHER, rtol=1e-5)
    np.testing.assert_allclose(vector, P + RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


def test_as_published_the_second_pair_meets_the_moved_vector():
    _, once = updated([0], TWO_ITEMS, triples=1)
    update, twice = updated([0], TWO_ITEMS, triples=2)
    moved = 1 / (1 + np.exp((0.3 - 0.1) + once @ (LIKED - OTHER)))
    np.testing.assert_allclose(update.biases, [SLOPE + moved, -SLOPE - moved], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[0], SLOPE * P + moved * once - 2 * POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(twice, once + RATE * (moved * (LIKED - OTHER) - USER * once), rtol=1e-5)


def test_as_printed_all_pairs_meet_the_vector_of_the_rounds_start():
    update, vector = updated([0], TWO_ITEMS, triples=3, order="as-printed")
    np.testing.assert_allclose(update.biases, [3 * SLOPE, -3 * SLOPE], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[1], 3 * (-SLOPE * P - NEGATIVE * OTHER), rtol=1e-5)
    np.testing.assert_allclose(vector, P + 3 * RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


@given(st.sets(st.integers(0, 19), min_size=1, max_size=19), st.integers(0, 1000))
def test_positives_are_of_the_history_and_negatives_never(profile, round_number):
    update, _ = updated(sorted(profile), model(np.zeros((20, 2)), np.zeros(20)), 8, round_number)
    assert set(update.items[update.biases > 0].tolist()) <= profile
    assert not set(update.items[update.biases < 0].tolist()) & profile


def test_every_pair_is_as_likely_as_any_other():
    # Three of five items: six pairs, also where most negatives are met at the third try only.
    broadcast, counts = model(np.zeros((5, 2)), np.zeros(5)), np.zeros((5, 5), dtype=int)
    for number in range(2400):
        update, _ = updated([0, 2, 3], broadcast, triples=1, round_number=number)
        counts[update.items[update.biases > 0], update.items[update.biases < 0]] += 1
    assert np.all(abs(counts[np.ix_([0, 2, 3], [1, 4])] - 400) < 5 * 400**0.5)
    assert counts.sum() == counts[np.ix_([0, 2, 3], [1, 4])].sum() == 2400


def test_the_received_model_stays_as_it_was():
    before = TWO_ITEMS.vectors.copy(), TWO_ITEMS.biases.copy()
    updated([0], TWO_ITEMS, triples=5)
    np.testing.assert_array_equal(TWO_ITEMS.vectors, before[0])
    np.testing.assert_array_equal(TWO_ITEMS.biases, before[1])


@pytest.mark.parametrize("settings", [{}, {"order": "as-printed"}, {"mask": "as-printed"}], ids=str)
def test_items_held_out_are_no_negatives(settings):
    method = FPL(n_items=9, factors=2, triples=40, **settings)
    held_out = np.array([1, 4, 5], np.int32)
    client = Client(1, 0, 3, np.array([0, 2, 3], np.int32), held_out=held_out)
    result = method.client_update(client, model(np.zeros((9, 2)), np.zeros(9)))
    assert set(result.negatives.tolist()) == {6, 7, 8}
    assert set(result.positives.tolist()) == {0, 2, 3}
