"""FedMF: matrix factorisation by item gradients (Chai et al., Secure Federated Matrix Factorization, 2020).

The client keeps its user vector. What its user has counts 1, sampled items 0; the vector takes a few steps on the
squared error, then the gradients of the item vectors are sent. The server takes a step by each item's mean gradient.
The paper learns ratings and encrypts gradients so that the server reads sums alone: here, `uploads = secure`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from federank.federation.method import (
    Client,
    ClientResult,
    FederatedMethod,
    ItemGradients,
    ItemSums,
    ItemVectors,
    UserVector,
    setting,
)


@dataclass(frozen=True, kw_only=True)
class FedMF(FederatedMethod):
    """Federated matrix factorisation by gradients (Chai et al., 2020), with sampled items as negatives."""

    name = "fedmf"

    factors: int = setting(32, 1, 1024)
    """Number of latent factors."""
    learning_rate: float = setting(0.5, 0)
    """Step of the user vector, on the client."""
    item_rate: float = setting(5.0, 0)
    """Step of the item vectors, at the server."""
    regularization: float = setting(0.01, 0)
    """L2 regularisation of all vectors (lambda)."""
    negatives: int = setting(4, 1)
    """Sampled items per item of the user, drawn again in every round."""
    local_steps: int = setting(5, 1)
    """Steps of the user vector in a round."""
    send: Literal["sampled", "all"] = setting("sampled", paper=True)
    """Rows that are sent: of the items looked at (part text), or of all items, mostly zeros (full text)."""
    initial_scale: float = setting(0.1, 0, expert=True)
    """Standard deviation of the first values of all vectors."""

    def initial_state(self) -> ItemVectors:
        """Item vectors at random."""
        rng = np.random.default_rng([self.seed, 0, 0])
        return ItemVectors(rng.normal(0, self.initial_scale, (self.n_items, self.factors)).astype(np.float32))

    def client_update(self, client: Client, broadcast: ItemVectors) -> ClientResult:
        """Steps of the user vector, then the gradients of the items that were looked at."""
        rng, mine = client.rng, client.items
        u = client.state.vector if client.state else rng.normal(0, self.initial_scale, self.factors)
        others = np.delete(np.arange(self.n_items, dtype=np.int32), client.not_negative)
        sampled = rng.choice(others, self.negatives * len(mine)) if len(others) else others
        drawn, labels = np.concatenate((mine, sampled)), np.arange(len(mine) + len(sampled)) < len(mine)
        V = broadcast.vectors[drawn]
        for _ in range(self.local_steps):
            u = u - self.learning_rate * ((V @ u - labels) @ V / len(drawn) + self.regularization * u)
        order = np.argsort(drawn, kind="stable")
        items, starts = np.unique(drawn[order], return_index=True)
        terms = np.outer(V @ u - labels, u) + self.regularization * V
        gradients = np.add.reduceat(terms[order], starts).astype(np.float32)
        if self.send == "all":
            full = np.zeros((self.n_items, self.factors), np.float32)
            full[items] = gradients
            items, gradients = np.arange(self.n_items), full
        return ClientResult(ItemGradients(items, gradients), UserVector(u), negatives=np.unique(sampled))

    def server_update(self, state: ItemVectors, aggregate: ItemSums) -> ItemVectors:
        """A step by each item's mean gradient, over the clients that sent one."""
        means = aggregate.vectors / np.maximum(aggregate.counts, 1)[:, None]
        return replace(state, vectors=(state.vectors - self.item_rate * means).astype(np.float32))
