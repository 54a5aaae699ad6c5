"""EASE: the closed form of its paper."""

import tracemalloc

import numpy as np
import pytest
from tests.worlds import random_world

import federank as fr
from federank.methods.baselines.ease import item_weights


def test_the_weights_are_those_of_the_paper():
    histories = random_world(users=40, items=25, interactions=600, seed=5).matrix()
    weights = item_weights(histories, 3.0)
    dense = histories.toarray().astype(np.float64)
    inverse = np.linalg.inv(dense.T @ dense + 3.0 * np.eye(dense.shape[1]))
    wanted = inverse / -np.diag(inverse)
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(weights, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [7, 512])
def test_in_single_precision_it_is_the_same_and_lapack_copies_no_table(rows, monkeypatch):
    histories = random_world(users=300, items=800, interactions=6000, seed=5).matrix()
    wanted = item_weights(histories, 3.0)
    monkeypatch.setattr("federank.methods.baselines.ease._ROWS_AT_A_TIME", rows)
    monkeypatch.setattr("federank.methods.baselines.ease._SINGLE_PRECISION_FROM", 0)
    tracemalloc.start()
    weights = item_weights(histories, 3.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(weights, wanted, rtol=1e-3, atol=1e-5)
    # Beside the table, blocks of 512 rows and the sparse counts, which are a small part of a large table.
    assert peak < 2.6 * weights.nbytes


def test_no_item_explains_itself():
    assert np.all(np.diag(item_weights(random_world(users=40, items=25, interactions=600, seed=6).matrix(), 1.0)) == 0)


def test_a_catalogue_beyond_the_machine_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1}[name])
    with pytest.raises(fr.FedeRankError, match=r"25.*25"):
        fr.EASE().fit(random_world(users=40, items=25, interactions=600, seed=5))
