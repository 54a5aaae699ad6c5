"""Exposure: coverage, Gini in its two forms, and how well known the items of lists are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.data.interactions import Profiles
from federank.evaluation import metrics as exposure

counts_of_items = st.lists(st.integers(0, 50), min_size=2, max_size=40).map(np.array).filter(np.any)


def gini_by_all_pairs(counts):
    """The definition: the mean difference of any two, over twice the mean."""
    counts = np.asarray(counts, dtype=float)
    return np.abs(counts[:, None] - counts[None]).mean() / (2 * counts.mean())


@given(counts=counts_of_items)
def test_the_standard_form_is_the_mean_difference_of_all_pairs(counts):
    assert exposure.gini(counts) == pytest.approx(gini_by_all_pairs(counts), abs=1e-9)


@given(counts=counts_of_items)
def test_the_papers_form_is_one_minus_the_formula_they_print(counts):
    n, ascending = len(counts), np.sort(counts)
    printed = sum((2 * k - n - 1) * c for k, c in enumerate(ascending, start=1)) / ((n - 1) * ascending.sum())
    assert exposure.gini_diversity(counts) == pytest.approx(1 - printed, abs=1e-12)


@given(counts=counts_of_items)
def test_gini_ignores_scale_and_order(counts):
    for form in (exposure.gini_diversity, exposure.gini):
        assert form(3 * counts[::-1]) == pytest.approx(form(counts))


@given(counts=counts_of_items)
def test_both_forms_lie_between_0_and_1(counts):
    assert -1e-12 <= exposure.gini_diversity(counts) <= 1 + 1e-12
    assert -1e-12 <= exposure.gini(counts) < 1


def test_coverage_counts_different_items_and_skips_the_ends_of_short_lists():
    counts = exposure.count_items(np.array([[0, 3, -1], [3, -1, -1]], dtype=np.int32), 5)
    assert counts.tolist() == [1, 0, 0, 2, 0]
    assert exposure.item_coverage(counts) == 2


def test_popularity_and_novelty_are_means_over_the_places_filled():
    training_counts = np.array([10, 0, 4, 2])
    lists = np.array([[0, 2, -1], [3, -1, -1], [-1, -1, -1]], dtype=np.int32)
    np.testing.assert_array_equal(exposure.popularity(lists, training_counts), [7, 2, np.nan])
    np.testing.assert_allclose(exposure.novelty(lists, training_counts, n_users=20), [1 - 7 / 20, 1 - 2 / 20, np.nan])


def test_popularity_lift_compares_lists_with_the_profiles_of_the_same_users():
    profiles = Profiles(np.array([0, 2, 3, 3]), np.array([2, 3, 3], dtype=np.int32))
    of_profiles = exposure.profile_popularity(profiles, np.array([10, 0, 4, 2]))
    np.testing.assert_array_equal(of_profiles, [3, 2, np.nan])
    # The second user has no list and the third no profile: only the first counts, 9 against 3.
    assert exposure.popularity_lift(np.array([9, np.nan, 5.0]), of_profiles) == pytest.approx(2)


@given(counts=counts_of_items, factor=st.integers(2, 9))
def test_lift_of_lists_like_the_profiles_is_zero_and_of_lists_k_times_as_popular_k_minus_1(counts, factor):
    values = counts.astype(float) + 1
    assert exposure.popularity_lift(values, values) == pytest.approx(0)
    assert exposure.popularity_lift(factor * values, values) == pytest.approx(factor - 1)
