"""The nearest neighbours, against a cosine worked out in the open on small tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import random_world

from federank.data.interactions import Interactions
from federank.methods.baselines.knn import NO_USERS, nearest


def brute_force(data, k, shrinkage):
    """(neighbour, similarity) lists by a dense product, sorted by similarity and then by number."""
    table = data.matrix().toarray().astype(np.float64)
    shared = table @ table.T
    sizes = table.sum(axis=1)
    similarity = (shared / (np.sqrt(np.outer(sizes, sizes)) + shrinkage)).astype(np.float32)
    lists = []
    for row in range(len(table)):
        others = [other for other in range(len(table)) if other != row and shared[row, other] > 0]
        best = sorted(others, key=lambda other, row=row: (-similarity[row, other], other))[:k]
        lists.append([(other, similarity[row, other]) for other in best])
    return lists


def as_lists(found):
    return [
        [(int(row), similarity) for row, similarity in zip(rows, similarities, strict=True) if row != NO_USERS]
        for rows, similarities in zip(*found, strict=True)
    ]


@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 40),
    shrinkage=st.sampled_from([0.0, 0.5, 10.0]),
    interactions=st.integers(1, 400),
)
def test_neighbours_are_those_of_a_dense_cosine(seed, k, shrinkage, interactions):
    data = random_world(users=25, items=15, interactions=interactions, seed=seed).compact()
    assert as_lists(nearest(data.profiles, data.audiences, k, shrinkage)) == brute_force(data, k, shrinkage)


def test_of_equally_similar_rows_the_smaller_number_is_the_nearer():
    same_history = Interactions.from_columns([user for user in range(6) for _ in range(2)], [0, 1] * 6)
    found = nearest(same_history.profiles, same_history.audiences, 3)
    assert found.rows.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_rows_that_share_nothing_are_no_neighbours():
    new_users = Interactions.from_columns([0, 1, 2], [0, 1, 2])
    found = nearest(new_users.profiles, new_users.audiences, 2)
    assert (found.rows == NO_USERS).all()
    assert (found.similarities == 0).all()
    assert found.matrix().nnz == 0


def test_two_of_three_shared_entries_give_the_cosine_by_hand():
    data = Interactions.from_columns([0, 0, 0, 1, 1], [0, 1, 2, 0, 1])
    assert nearest(data.profiles, data.audiences, 1).similarities[0, 0] == pytest.approx(2 / np.sqrt(6))
    assert nearest(data.profiles, data.audiences, 1, 4.0).similarities[0, 0] == pytest.approx(2 / (np.sqrt(6) + 4))


def test_the_matrix_holds_each_rows_neighbours():
    data = random_world(seed=3).compact()
    found = nearest(data.profiles, data.audiences, 4)
    dense = found.matrix().toarray()
    for row, neighbours in enumerate(as_lists(found)):
        assert np.flatnonzero(dense[row]).tolist() == sorted(other for other, _ in neighbours)
        assert all(dense[row, other] == similarity for other, similarity in neighbours)
