"""Products of tall matrices: what NumPy gives, and the same bits for any number of threads."""

import numpy as np
import pytest

from federank._numerics.topn import tall_product, weighted_gram


@pytest.mark.parametrize("rows", [0, 1, 511, 512, 1_300])
def test_products_are_those_of_numpy_for_any_number_of_threads(rows):
    rng = np.random.default_rng(rows)
    tall, small, weights = rng.normal(size=(rows, 5)), rng.normal(size=(5, 3)), rng.random(rows).astype(np.float32)
    products = [tall_product(tall, small, threads) for threads in (1, 2, 3)]
    grams = [weighted_gram(tall, weights, threads) for threads in (1, 2, 3)]
    np.testing.assert_allclose(products[0], tall @ small, atol=1e-12)
    np.testing.assert_allclose(grams[0], tall.T @ (weights[:, None] * tall), atol=1e-10)
    assert all(np.array_equal(products[0], other) for other in products[1:])
    assert all(np.array_equal(grams[0], other) for other in grams[1:])


def test_single_precision_is_multiplied_in_double():
    tall = np.full((600, 2), 0.1, dtype=np.float32)
    small = np.eye(2)
    np.testing.assert_array_equal(tall_product(tall, small), tall.astype(np.float64))
