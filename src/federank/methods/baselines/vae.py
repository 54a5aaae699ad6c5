"""Mult-VAE as a recommender (Liang et al., 2018): the strongest of the papers' centralised baselines that is learnt.

1. Where early stopping is asked for, hold back a share of each user's history, the newest where times are known.
2. Each epoch takes all users in random order, batch by batch; only a batch is ever made dense. The weight of the
   divergence grows from 0 to beta over the first epochs (annealing).
3. After each epoch, look how well the held-back items are ranked (nDCG@100); keep the best network so far, and stop
   once it has not been bettered for a while.

Recommendations are made from the full history, held-back items included. It needs the extra `vae` to learn; a
model that has learnt can be loaded and used without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.topn import top_n
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.data.splits import split_random, split_temporal
from federank.errors import Diverged, SettingError
from federank.extras import need
from federank.methods.recommender import Arrays, FromHistories, made_from, restored_table
from federank.simulation.options import TrainingOptions

# Mult-VAE: a variational autoencoder for histories (Liang et al., 2018).
#
# A history is seen as a bag of draws from one distribution over the full catalogue. The network squeezes a history
# into a few numbers and unfolds them into such a distribution; items with a high probability that are not in the
# history yet are what to recommend.
#
#     x    the history, ones and zeros, scaled to length 1; in training some of it is dropped
#     h    tanh(x A + a)
#     m, s means and log variances of the latent numbers: the two halves of h B + b
#     z    m in use; in training m + exp(s / 2) times normal noise
#     y    tanh(z C + c) D + d; softmax(y) is the distribution
#
# What is to be made small, per history: - sum of log softmax(y) over its items + beta KL(N(m, e^s) || N(0, 1)).
#
# Training runs in JAX, imported only when it begins; scoring is the same few lines in NumPy, so that a trained
# network can be used where JAX is not installed.


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
    held = rng.random(inputs.nnz, dtype=np.float32) >= dropout
    values = (inputs.data * held / (1 - dropout)).astype(np.float32)
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


# ruff: noqa: ARG002 (the parameters are those of every Recommender)


_JUDGED = 100
_USERS_AT_A_TIME = 256


@dataclass(frozen=True, kw_only=True)
class MultVAESettings(Settings):
    """What can be chosen about the network and its training."""

    topology: str = "200-100-200"
    """Widths of the layers, hidden-latent-hidden; the papers try 200-100-200, 300-100-300 and 600-200-600."""
    epochs: int = setting(200, 1)
    """Passes over all users, if training is not stopped earlier."""
    held_back: float = setting(0.1, fraction=True)
    """Share of each user's history, the newest, kept back to stop early by (0: learn from all, for all epochs)."""
    patience: int = setting(20, 1)
    """Stop after this many epochs without a better ranking of what was held back."""
    batch_size: int = setting(100, 1)
    """Users per step."""
    learning_rate: float = setting(0.001, positive=True)
    """Learning rate (Adam)."""
    dropout: float = setting(0.5, fraction=True)
    """Probability that an item of a history is hidden from the network in a step."""
    beta: float = setting(0.2, 0)
    """Largest weight of the divergence, which keeps the latent numbers near a normal distribution."""
    anneal_epochs: int = setting(100, 0)
    """Epochs over which that weight grows from 0 (0: the full weight at once)."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model on the same machine."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[1-9]\d*-[1-9]\d*-[1-9]\d*", self.topology):
            raise SettingError(f"topology is {self.topology!r}; three widths are needed, such as 200-100-200.")
        super().__post_init__()


class MultVAE(FromHistories):
    """A variational autoencoder for histories, with a multinomial likelihood; see `MultVAESettings`."""

    name = "vae"
    settings_type = MultVAESettings
    settings: MultVAESettings
    can_use = ("after_epoch",)
    network: Network

    @made_from(MultVAESettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        """Train the network; `after_epoch` is called with each epoch's number while the best network is in place."""
        training, held_back = _hold_back(train, self.settings.held_back, self.settings.seed)
        best, best_epoch, epoch = -inf, 0, 0
        for epoch, network in enumerate(self._epochs(training), start=1):
            now = epoch if held_back is None else _ndcg(network, training, held_back)
            if now > best:
                best, best_epoch, self.network = now, epoch, network
            if training_options.after_epoch is not None:
                training_options.after_epoch(epoch)
            if held_back is not None and epoch - best_epoch >= self.settings.patience:
                break
        self.report |= {"epochs": epoch, "best_epoch": best_epoch}
        if held_back is not None:
            self.report["held_back_ndcg"] = float(best)

    def _epochs(self, training: Interactions) -> Iterator[Network]:
        """The network after each epoch."""
        jax, chosen = _jax(), self.settings
        rng, key, steps = np.random.default_rng(chosen.seed), jax.random.key(chosen.seed), 0
        histories = training.matrix()
        start, step = make_step(chosen.learning_rate)
        network = jax.tree.map(jax.numpy.asarray, initial_network(self._shapes(), rng))
        memory = start(network)
        for epoch in range(chosen.epochs):
            extended = min(1.0, epoch / chosen.anneal_epochs) if chosen.anneal_epochs else 1.0
            beta = np.float32(chosen.beta * extended)
            order = rng.permutation(training.n_users)
            for first in range(0, training.n_users, chosen.batch_size):
                batch = histories[order[first : first + chosen.batch_size]]
                inputs = with_dropout(unit_length(batch), chosen.dropout, rng)
                noise = jax.random.fold_in(key, steps)
                network, memory, value = step(network, memory, inputs.toarray(), batch.toarray(), noise, beta)
                steps += 1
            if not np.isfinite(value):
                raise Diverged(
                    f"After epoch {epoch + 1} the loss is no longer a finite number: learning_rate "
                    f"{chosen.learning_rate:g} is too large for this data; try a smaller one."
                )
            yield Network(*(np.array(array) for array in network))

    def _shapes(self) -> Network:
        first, latent, last = (int(width) for width in self.settings.topology.split("-"))
        return network_shapes(self.training.n_items, first, latent, last)

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return network_scores(self.network, self.training.matrix()[users])

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for someone with this history."""
        scores: FloatVector = network_scores(self.network, csr_array(vector[None, :]))[0]
        return scores

    def _shared_arrays(self) -> Arrays:
        return self.network._asdict()

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        shapes = self._shapes()._asdict()
        self.network = Network(**{name: restored_table(shared, name, shape) for name, shape in shapes.items()})


def _jax() -> Any:
    need("vae", "Mult-VAE")
    import jax

    return jax


def _hold_back(train: Interactions, share: float, seed: int) -> tuple[Interactions, Interactions | None]:
    """What to learn from, and what to stop early by: the newest of each user, or any where there are no times."""
    split = split_random(train, share, seed=seed) if train.times is None else split_temporal(train, share)
    return split.train, split.test if len(split.test) else None


def _ndcg(network: Network, training: Interactions, held_back: Interactions) -> float:
    """How well the held-back items are ranked among all that a user does not have: mean nDCG of the first 100."""
    width = min(_JUDGED, training.n_items)
    discounts = 1 / np.log2(np.arange(2, width + 2))
    users = np.flatnonzero(held_back.profiles.sizes).astype(np.int32)
    histories, wanted, total = training.matrix(), held_back.matrix(), 0.0
    for first in range(0, len(users), _USERS_AT_A_TIME):
        block = users[first : first + _USERS_AT_A_TIME]
        ranked, _ = top_n(network_scores(network, histories[block]), block, training.profiles, width)
        hits = np.take_along_axis(wanted[block].toarray(), ranked, axis=1) * (ranked >= 0)
        ideal = np.cumsum(discounts)[np.minimum(held_back.profiles.sizes[block], width) - 1]
        total += float((hits @ discounts / ideal).sum())
    return total / len(users)
