"""The best N: the compiled selection against the obvious one, ties, gaps and scores that are no numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank._numerics.topn import top_n
from federank.data.interactions import Profiles


def obvious_top_n(scores, users, seen, n):
    """The truth: sort the whole row by score and item number, and leave out what may not be recommended."""
    items = np.full((len(users), n), -1, dtype=np.int32)
    best = np.full((len(users), n), -np.inf, dtype=np.float32)
    for row, user in enumerate(users):
        values = np.where(np.isnan(scores[row]), -np.inf, scores[row])
        values[seen.of(int(user))] = -np.inf
        order = np.lexsort((np.arange(len(values)), -values))[:n]
        order = order[values[order] > -np.inf]
        items[row, : len(order)] = order
        best[row, : len(order)] = values[order]
    return items, best


def profiles(*rows):
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return Profiles(starts, np.array([item for row in rows for item in row], dtype=np.int32))


def nobody_has_anything(n_users):
    return profiles(*([()] * n_users))


def agree(scores, users, seen, n):
    found_items, found_scores = top_n(scores, users, seen, n)
    true_items, true_scores = obvious_top_n(scores, users, seen, n)
    np.testing.assert_array_equal(found_items, true_items)
    np.testing.assert_array_equal(found_scores, true_scores)


@st.composite
def questions(draw):
    """Rows of scores with many ties, some of them not finite; profiles; and how many items are asked for."""
    n_users, n_items = draw(st.integers(0, 4)), draw(st.integers(1, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from([1, 3, 1000]))
    scores = rng.integers(0, levels, (n_users, n_items)).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf):
        scores[rng.random(scores.shape) < draw(st.sampled_from([0, 0.1, 0.9]))] = value
    share = draw(st.sampled_from([0, 0.2, 1]))
    seen = profiles(*(np.flatnonzero(rng.random(n_items) < share) for _ in range(5)))
    users = rng.integers(0, 5, n_users).astype(np.int32)
    return scores, users, seen, draw(st.integers(0, 160))


@given(question=questions())
def test_the_compiled_selection_equals_sorting_the_complete_row(question):
    agree(*question)


@pytest.mark.parametrize("n", [1, 10, 100, 3_000])
def test_long_rows_agree_with_sorting(n):
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((20, 3_000)).astype(np.float32)
    seen = profiles(*(np.flatnonzero(rng.random(3_000) < 0.05) for _ in range(20)))
    agree(scores, np.arange(20, dtype=np.int32)[::-1].copy(), seen, n)


def test_ties_go_to_the_smaller_item_number():
    items, _ = top_n(np.ones((1, 300), dtype=np.float32), np.zeros(1, dtype=np.int32), profiles([0, 2]), 4)
    assert items.tolist() == [[1, 3, 4, 5]]


def test_a_score_that_is_not_a_number_is_never_recommended():
    scores = np.array([[np.nan, 2.0, np.nan, 1.0]], dtype=np.float32)
    items, best = top_n(scores, np.zeros(1, dtype=np.int32), nobody_has_anything(1), 3)
    assert items.tolist() == [[1, 3, -1]]
    assert best.tolist() == [[2.0, 1.0, -np.inf]]


def test_the_rows_belong_to_the_users_given_and_not_to_their_places():
    scores = np.array([[3.0, 2.0, 1.0]] * 2, dtype=np.float32)
    items, _ = top_n(scores, np.array([1, 0], dtype=np.int32), profiles([], [0]), 1)
    assert items.tolist() == [[1], [0]]


def test_double_precision_decides_what_single_precision_would_tie():
    scores = np.array([[1.0, 1.0 + 1e-12]])
    items, _ = top_n(scores, np.zeros(1, dtype=np.int32), nobody_has_anything(1), 2)
    assert items.tolist() == [[1, 0]]
