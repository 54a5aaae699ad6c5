"""Mult-VAE: a variational autoencoder for histories (Liang et al., 2018).

A history is seen as a bag of draws from one distribution over the full catalogue. The network squeezes a history
into a few numbers and unfolds them into such a distribution; items with a high probability that are not in the
history yet are what to recommend.

    x    the history, ones and zeros, scaled to length 1; in training some of it is dropped
    h    tanh(x A + a)
    m, s means and log variances of the latent numbers: the two halves of h B + b
    z    m in use; in training m + exp(s / 2) times normal noise
    y    tanh(z C + c) D + d; softmax(y) is the distribution

What is to be made small, per history: - sum of log softmax(y) over its items + beta KL(N(m, e^s) || N(0, 1)).

Training runs in JAX, imported only when it begins; scoring is the same few lines in NumPy, so that a trained
network can be used where JAX is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix


class Network(NamedTuple):
    """The weights, as NumPy or as JAX arrays."""

    encoder_weights: Any  # A: items x hidden
    encoder_biases: Any
    latent_weights: Any  # B: hidden x twice latent, means first
    latent_biases: Any
    decoder_weights: Any  # C: latent x hidden
    decoder_biases: Any
    output_weights: Any  # D: hidden x items
    output_biases: Any


def network_shapes(n_items: int, first: int, latent: int, last: int) -> Network:
    """The shape of each array, for layers of these widths."""
    return Network(
        (n_items, first),
        (first,),
        (first, 2 * latent),
        (2 * latent,),
        (latent, last),
        (last,),
        (last, n_items),
        (n_items,),
    )


def initial_network(shapes: Network, rng: np.random.Generator) -> Network:
    """First values: weights by the widths they join (Glorot and Bengio, 2010), biases close to zero."""

    def first_values(shape: tuple[int, ...]) -> FloatMatrix:
        scale = np.sqrt(2 / sum(shape)) if len(shape) == 2 else 0.001
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    return Network(*(first_values(shape) for shape in shapes))


def unit_length(histories: csr_array) -> csr_array:
    """Histories of ones, scaled so that the squares of each add up to 1."""
    sizes = np.diff(histories.indptr)
    values = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
    return csr_array((values, histories.indices, histories.indptr), shape=histories.shape)


def with_dropout(inputs: csr_array, dropout: float, rng: np.random.Generator) -> csr_array:
    """Each entry dropped with this probability, the others made larger to match."""
    kept = rng.random(inputs.nnz, dtype=np.float32) >= dropout
    values = (inputs.data * kept / (1 - dropout)).astype(np.float32)
    return csr_array((values, inputs.indices, inputs.indptr), shape=inputs.shape)


def network_scores(network: Network, histories: csr_array) -> FloatMatrix:
    """The scores y of the full catalogue, one row per history; without dropout or noise."""
    hidden = np.tanh(unit_length(histories) @ network.encoder_weights + network.encoder_biases)
    means = np.split(hidden @ network.latent_weights + network.latent_biases, 2, axis=1)[0]
    hidden = np.tanh(means @ network.decoder_weights + network.decoder_biases)
    scores: FloatMatrix = hidden @ network.output_weights + network.output_biases
    return scores


def loss(network: Network, inputs: Any, histories: Any, key: Any, beta: Any) -> Any:
    """The mean loss of a batch, in JAX: inputs x and histories of ones and zeros, both dense; `key` makes the noise."""
    import jax
    from jax import numpy as jnp

    hidden = jnp.tanh(inputs @ network.encoder_weights + network.encoder_biases)
    means, log_variances = jnp.split(hidden @ network.latent_weights + network.latent_biases, 2, axis=1)
    z = means + jnp.exp(log_variances / 2) * jax.random.normal(key, means.shape)
    hidden = jnp.tanh(z @ network.decoder_weights + network.decoder_biases)
    y = hidden @ network.output_weights + network.output_biases
    # The sum over a history of y_i - log(sum of e^y): its log likelihood.
    likelihood = (y * histories).sum(axis=1) - histories.sum(axis=1) * jax.nn.logsumexp(y, axis=1)
    divergence = (jnp.exp(log_variances) + means**2 - 1 - log_variances).sum(axis=1) / 2
    return jnp.mean(beta * divergence - likelihood)


def make_step(learning_rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Adam for this network: `start(network)` gives its memory, `step` the network and the memory one batch later."""
    import jax
    import optax

    adam = optax.adam(learning_rate)

    def step(
        network: Network, memory: Any, inputs: Any, histories: Any, key: Any, beta: Any
    ) -> tuple[Network, Any, Any]:
        value, gradient = jax.value_and_grad(loss)(network, inputs, histories, key, beta)
        change, memory = adam.update(gradient, memory)
        return optax.apply_updates(network, change), memory, value

    return adam.init, jax.jit(step, donate_argnums=(0, 1))
