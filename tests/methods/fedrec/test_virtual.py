from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.reference import sample_unrated


def sample(profile, n_items, count, seed=1, user=0, round_number=0, marks=None, stamp=1):
    sampled = np.empty(count, np.int32)
    marks = np.zeros(n_items, np.int64) if marks is None else marks
    profile = np.asarray(profile, np.int32)
    with words_wrap_around():
        sample_unrated(seed, user, round_number, profile, n_items, marks, stamp, sampled)
    return sampled.tolist()


@given(st.sets(st.integers(0, 29), max_size=29), st.data())
def test_sampled_items_are_different_and_unrated(rated, data):
    count = data.draw(st.integers(0, 30 - len(rated)))
    found = sample(sorted(rated), 30, count, seed=data.draw(st.integers(0, 99)))
    assert len(set(found)) == count
    assert not rated.intersection(found)
    assert all(0 <= item < 30 for item in found)


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "rated"), [(5, [1]), (12, [1, 2, 3, 4])], ids=["by ranks", "by tries"])
def test_every_set_is_equally_likely(n_items, rated):
    unrated = [item for item in range(n_items) if item not in rated]
    draws = 4000
    seen = Counter(frozenset(sample(rated, n_items, 2, round_number=number)) for number in range(draws))
    sets = [frozenset(pair) for pair in combinations(unrated, 2)]
    assert set(seen) == set(sets)
    expected = draws / len(sets)
    for pair in sets:  # five deviations of a binomial count
        assert abs(seen[pair] - expected) < 5 * expected**0.5


def test_a_user_samples_again_in_every_round_and_users_sample_differently():
    rounds = {tuple(sample([0], 100, 5, round_number=number)) for number in range(20)}
    users = {tuple(sample([0], 100, 5, user=user)) for user in range(20)}
    assert len(rounds) == len(users) == 20


def test_marks_of_earlier_calls_do_not_matter():
    marks = np.zeros(40, np.int64)
    sample([1, 2], 40, 10, round_number=7, marks=marks, stamp=1)
    assert sample([1, 2], 40, 10, marks=marks, stamp=2) == sample([1, 2], 40, 10)
