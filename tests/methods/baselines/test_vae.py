"""Mult-VAE's maths: the loss against its formula in NumPy, and scoring against the network that was trained."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.worlds import random_world

from federank.methods.baselines.vae import (
    initial_network,
    loss,
    network_scores,
    network_shapes,
    unit_length,
    with_dropout,
)

pytestmark = pytest.mark.slow  # JAX takes seconds to wake up


@pytest.fixture(autouse=True)
def jax():
    return pytest.importorskip("jax", reason="Mult-VAE learns with JAX: install federank[vae]")


@pytest.fixture
def histories():
    return random_world(users=9, items=16, interactions=60, seed=1).compact().matrix()


@pytest.fixture
def network(histories):
    return initial_network(network_shapes(histories.shape[1], 7, 3, 6), np.random.default_rng(2))


def loss_by_hand(network, histories, noise, beta):
    """The formula at the top of methods/baselines/vae.py, in double precision."""
    A, a, B, b, C, c, D, d = (array.astype(np.float64) for array in network)
    liked = histories.toarray().astype(np.float64)
    x = liked / np.sqrt(liked.sum(axis=1, keepdims=True))
    m, s = np.split(np.tanh(x @ A + a) @ B + b, 2, axis=1)
    y = np.tanh((m + np.exp(s / 2) * noise) @ C + c) @ D + d
    log_shares = y - np.log(np.exp(y).sum(axis=1, keepdims=True))
    divergence = (np.exp(s) + m**2 - 1 - s).sum(axis=1) / 2
    return np.mean(-(log_shares * liked).sum(axis=1) + beta * divergence)


@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_the_loss_is_its_formula(jax, network, histories, beta):
    key = jax.random.key(5)
    noise = np.asarray(jax.random.normal(key, (histories.shape[0], 3)))
    found = loss(network, unit_length(histories).toarray(), histories.toarray(), key, beta)
    assert float(found) == pytest.approx(loss_by_hand(network, histories, noise, beta), rel=1e-5)


def test_scores_are_the_network_without_dropout_or_noise(network, histories):
    A, a, B, b, C, c, D, d = network
    x = unit_length(histories).toarray()
    means = (np.tanh(x @ A + a) @ B + b)[:, :3]
    np.testing.assert_allclose(network_scores(network, histories), np.tanh(means @ C + c) @ D + d, rtol=1e-4, atol=1e-6)


def test_inputs_have_length_one_and_an_empty_history_stays_empty():
    histories = csr_array(np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=np.float32))
    np.testing.assert_allclose((unit_length(histories).toarray() ** 2).sum(axis=1), [1, 0, 1], rtol=1e-6)


def test_dropout_keeps_the_expected_share_and_makes_up_for_the_rest():
    inputs = csr_array(np.ones((200, 500), dtype=np.float32))
    dropped = with_dropout(inputs, 0.75, np.random.default_rng(1)).toarray()
    assert set(np.unique(dropped)) == {0.0, 4.0}
    assert dropped.mean() == pytest.approx(1.0, abs=0.02)  # the mean of 100,000 such coins deviates by 0.0055
    np.testing.assert_array_equal(with_dropout(inputs, 0.0, np.random.default_rng(1)).toarray(), inputs.toarray())


def test_first_values_are_spread_by_the_widths_they_join():
    network = initial_network(network_shapes(3000, 100, 10, 50), np.random.default_rng(1))
    assert network.encoder_weights.std() == pytest.approx(np.sqrt(2 / 3100), rel=0.02)
    assert network.output_weights.std() == pytest.approx(np.sqrt(2 / 3050), rel=0.02)
    assert network.latent_weights.shape == (100, 20)
    assert all(array.dtype == np.float32 for array in network)
