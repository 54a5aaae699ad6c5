"""PFedRec: dual personalisation (Zhang et al., IJCAI 2023). Every user has an own score function and view of the items.

The client fits its score function (logistic regression on item vectors) and the item vectors to what its user has and
to sampled items. It uploads how far the item vectors moved; the server adds the mean. To recommend, a client fits the
newest item vectors again: its scores are its own, and nothing of them leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import holds
from federank.federation.method import (
    Aggregate,
    Client,
    ClientResult,
    FederatedMethod,
    ItemVectors,
    Records,
    setting,
)
from federank.federation.wire import Array, array


@dataclass(frozen=True, eq=False)
class ItemChanges:
    """Update: how far every item vector moved."""

    vectors: Array = array("items", "factors")


@dataclass(eq=False, kw_only=True)
class SummedChanges(Aggregate):
    """Their sum."""

    vectors: Array = array("items", "factors", dtype="f8")


@dataclass(frozen=True, eq=False)
class ScoreFunction:
    """Client state: a weight per factor, and a bias."""

    weights: Array = array("weights")


@dataclass(frozen=True, kw_only=True)
class PFedRec(FederatedMethod):
    """Dual personalisation (Zhang et al., 2023): every user's own score function and view of the items."""

    name = "pfedrec"
    records = Records(update=ItemChanges, aggregate=SummedChanges, client=ScoreFunction)

    factors: int = setting(32, 1, 1024)
    """Number of latent factors."""
    learning_rate: float = setting(0.1, 0)
    """Step of the score function."""
    item_rate: float = setting(80.0, 0)
    """Step of the item vectors, as a multiple of the learning rate and of the number of items."""
    negatives: int = setting(4, 1)
    """Sampled items per item of the user, drawn again in every round."""
    local_epochs: int = setting(1, 1)
    """Passes over the examples in a round."""
    batch_size: int = setting(256, 1, expert=True)
    """Examples per step."""
    initial_scale: float = setting(1.0, 0, expert=True)
    """Standard deviation of the first values of the item vectors."""

    @property
    def weights(self) -> int:
        """Numbers of a score function."""
        return self.factors + 1

    def initial_state(self) -> Any:
        """Item vectors at random."""
        rng = np.random.default_rng([self.seed, 0, 0])
        return ItemVectors(rng.normal(0, self.initial_scale, (self.n_items, self.factors)).astype(np.float32))

    def client_update(self, client: Client, broadcast: Any) -> ClientResult:
        """Fit the score function and the item vectors; how far the vectors moved is the update."""
        vectors, weights = self.fitted(client, broadcast)
        return ClientResult(ItemChanges(vectors - broadcast.vectors), ScoreFunction(weights))

    def add(self, aggregate: Any, update: Any) -> None:
        """Add the changes of every item."""
        aggregate.vectors += update.vectors

    def server_update(self, state: Any, aggregate: Any) -> Any:
        """Add the mean of the changes."""
        mean = aggregate.vectors / max(1, aggregate.count)
        return replace(state, vectors=(state.vectors + mean).astype(np.float32))

    def fold_in(self, client: Client, broadcast: Any) -> FloatVector:
        """The user's scores: by the newest item vectors, fitted again to the history."""
        for number in range(0 if client.state else 10):
            at_home = replace(client, round=client.round + number)
            client = replace(at_home, state=self.client_update(at_home, broadcast).state)
        vectors, weights = self.fitted(client, broadcast)
        scores: FloatVector = vectors @ weights[:-1]
        return scores

    def scores(self, broadcast: Any, factors: Array) -> FloatMatrix:  # noqa: ARG002 (each user has own vectors)
        """The factors of a user are scores already."""
        return factors

    def fitted(self, client: Client, broadcast: Any) -> tuple[FloatMatrix, FloatVector]:
        """The item vectors and the score function of this client after its passes."""
        vectors, weights = broadcast.vectors.copy(), self._weights(client)
        rates = self.learning_rate, self.learning_rate * self.item_rate * self.n_items
        gradient = np.empty(self.weights, dtype=np.float32)
        for _ in range(self.local_epochs):
            items, labels = draw_examples(client.items, client.not_negative, self.n_items, self.negatives, client.rng)
            errors = np.empty(len(items), dtype=np.float32)
            pass_over(vectors, weights, items, labels, errors, gradient, self.batch_size, *rates)
        return vectors, weights

    def _weights(self, client: Client) -> FloatVector:
        """The client's score function; the same for all at first."""
        if client.state:
            weights: FloatVector = client.state.weights.copy()
            return weights
        bound, rng = 1 / np.sqrt(self.factors), np.random.default_rng([self.seed, 0])
        return rng.uniform(-bound, bound, self.weights).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class LocalOnly(PFedRec):
    """PFedRec without a federation: every client trains alone and sends nothing. The control that exposes a leak."""

    name = "local"

    local_epochs: int = setting(60, 1)
    """Passes over the examples."""

    def fold_in(self, client: Client, broadcast: Any) -> FloatVector:
        """The user's scores after all passes, from the first item vectors."""
        vectors, weights = self.fitted(client, broadcast)
        scores: FloatVector = vectors @ weights[:-1]
        return scores

    def server_update(self, state: Any, aggregate: Any) -> Any:  # noqa: ARG002
        """Nothing is aggregated."""
        return state


# Logistic regression on items: a user's weights and item vectors, each stepped while the other stands still.


@compiled
def draw_examples(
    profile: IntVector, not_negative: IntVector, n_items: int, negatives: int, rng: np.random.Generator
) -> tuple[IntVector, FloatVector]:
    """What is learnt from in a pass, shuffled: the profile, and for each item this many outside of `not_negative`.

    A user who has the full catalogue learns from it alone.
    """
    count = len(profile)
    outside = negatives if len(not_negative) < n_items else 0
    items = np.empty(count * (1 + outside), dtype=np.int32)
    labels = np.zeros(len(items), dtype=np.float32)
    items[:count], labels[:count] = profile, 1
    for k in range(count, len(items)):
        item = int(rng.random() * n_items)
        while holds(not_negative, 0, len(not_negative), item):
            item = int(rng.random() * n_items)
        items[k] = item
    for k in range(len(items) - 1, 0, -1):  # Fisher and Yates
        other = int(rng.random() * (k + 1))
        items[k], items[other] = items[other], items[k]
        labels[k], labels[other] = labels[other], labels[k]
    return items, labels


@compiled(allocates=False)
def pass_over(
    vectors: FloatMatrix,
    weights: FloatVector,
    items: IntVector,
    labels: FloatVector,
    errors: FloatVector,
    gradient: FloatVector,
    batch: int,
    rate: float,
    item_rate: float,
) -> None:
    """One pass over the examples, in batches; `vectors` and `weights` (the bias last) are changed in place.

    `errors` and `gradient` are workspace.
    """
    size = vectors.shape[1]
    for begin in range(0, len(items), batch):
        end = min(begin + batch, len(items))
        share = np.float32(1.0) / np.float32(end - begin)
        gradient[:] = 0
        for k in range(begin, end):
            error = _error(vectors[items[k]], weights, labels[k])
            for f in range(size):
                gradient[f] += error * vectors[items[k], f]
            gradient[size] += error
        for f in range(size + 1):
            weights[f] -= np.float32(rate) * share * gradient[f]
        # Every example is judged before any vector moves: an item may be in a batch twice.
        for k in range(begin, end):
            errors[k] = _error(vectors[items[k]], weights, labels[k])
        step = np.float32(item_rate) * share
        for k in range(begin, end):
            for f in range(size):
                vectors[items[k], f] -= step * errors[k] * weights[f]


@compiled(allocates=False, fastmath={"contract", "nsz", "reassoc"})  # sums in any order: in vector registers
def _error(vector: FloatVector, weights: FloatVector, label: float) -> float:
    """How far the probability is from the truth."""
    size = len(vector)
    score = weights[size]
    for f in range(size):
        score += vector[f] * weights[f]
    error: float = np.float32(1.0) / (np.float32(1.0) + np.exp(-score)) - label
    return error
