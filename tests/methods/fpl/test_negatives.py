"""Negatives: whatever a person does not have may be compared with what they have, every missing item alike."""

import numpy as np
import pytest

from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import NO_BITS, Draw, Profile, draw_pair


def negatives(items, n_items, draws):
    profile = Profile(np.array(items, dtype=np.int32), 0, len(items), NO_BITS, n_items)
    with words_wrap_around():
        return [int(draw_pair(Draw(7, 3, 11, counter), profile)[1]) for counter in range(draws)]


@pytest.mark.parametrize("missing", [{0}, {499}, {0, 499}, {250, 498, 499}])
def test_where_nearly_all_is_liked_each_missing_item_is_drawn_the_last_one_too(missing):
    draws = 300 * len(missing)
    drawn = negatives(sorted(set(range(500)) - missing), 500, draws)
    assert set(drawn) == missing
    counts = np.array([drawn.count(item) for item in missing])
    assert np.all(np.abs(counts - 300) < 4 * np.sqrt(300)), "each of them alike"


def test_where_little_is_liked_every_other_item_is_drawn():
    assert set(negatives([2, 5], 8, 200)) == {0, 1, 3, 4, 6, 7}
