"""GPFedRec: graph-guided personalisation (Zhang et al., KDD 2024). The server has an item table for every client.

A client is that of PFedRec with a regulariser: it starts from the mean of all item tables, fits its score function and
the item vectors, and after each batch takes a step on the squared distance to the table that the server made for it.
It uploads its item vectors. The server links clients whose vectors are alike, and each one gets the mean of its
neighbours' vectors.

So the server reads single uploads, and answers each client differently: this runs in simulations alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector
from federank.federation.method import Aggregate, Client, ClientResult, DataSummary, Records, setting
from federank.federation.wire import Array, array
from federank.methods.baselines.pfedrec import PFedRec, ScoreFunction, draw_examples, pass_over


@dataclass(frozen=True, eq=False)
class TablesOfAll:
    """State: the mean of all item tables, and the table of each client."""

    vectors: Array = array("items", "factors")
    own: Array = array("items", "clients", "factors")


@dataclass(frozen=True, eq=False)
class TablesOfOne:
    """Broadcast: the mean of all item tables, and the table that is made for this client."""

    vectors: Array = array("items", "factors")
    own: Array = array("items", "factors")


@dataclass(frozen=True, eq=False)
class NamedVectors:
    """Update: the item vectors, and whose they are."""

    vectors: Array = array("items", "factors")
    user: Array = array(1, dtype="i8")


@dataclass(eq=False, kw_only=True)
class VectorsOfAll(Aggregate):
    """The item vectors of every client that took part, each in a place of its own."""

    vectors: Array = array("items", "clients", "factors")
    present: Array = array("clients")


@dataclass(frozen=True, kw_only=True)
class GPFedRec(PFedRec):
    """Graph-guided personalisation (Zhang et al., 2024): similar clients share item vectors."""

    name = "gpfedrec"
    records = Records(
        state=TablesOfAll, broadcast=TablesOfOne, update=NamedVectors, aggregate=VectorsOfAll, client=ScoreFunction
    )

    clients: int = setting(0, 0, expert=True)
    """Number of clients; in a simulation that of the users."""
    regulariser: float = setting(1.0, 0)
    """Weight of the squared distance to the table that the server made for the client (lambda)."""
    threshold: float = setting(1.0, 0, expert=True)
    """Clients are neighbours from this multiple of the mean cosine similarity on."""

    def resolve(self, data: DataSummary) -> Self:
        """There are as many clients as users."""
        return replace(self, n_items=data.n_items, clients=data.n_clients or self.clients)

    def initial_state(self) -> Any:
        """Item vectors at random, the same for all."""
        vectors = super().initial_state().vectors
        return TablesOfAll(vectors, np.repeat(vectors[:, None], self.clients, axis=1))

    def broadcast(self, state: TablesOfAll) -> TablesOfOne:
        """What a new client downloads: the mean stands for its own table."""
        return TablesOfOne(state.vectors, state.vectors)

    def broadcast_for(self, user: int, broadcast: TablesOfOne, state: TablesOfAll) -> TablesOfOne:
        """The mean, and this client's own table."""
        return TablesOfOne(broadcast.vectors, state.own[:, user])

    def client_update(self, client: Client, broadcast: TablesOfOne) -> ClientResult:
        """Fit the score function and the item vectors, which are the update."""
        vectors, weights = self.fitted(client, broadcast)
        return ClientResult(NamedVectors(vectors, np.array([client.user])), ScoreFunction(weights))

    def add(self, aggregate: VectorsOfAll, update: NamedVectors) -> None:
        """Put the item vectors in their client's place."""
        aggregate.vectors[:, update.user[0]] = update.vectors
        aggregate.present[update.user[0]] = 1

    def server_update(self, state: TablesOfAll, aggregate: VectorsOfAll) -> TablesOfAll:
        """Each client that took part gets the mean of the item vectors of its neighbours."""
        here = np.flatnonzero(aggregate.present)
        if not len(here):
            return state
        sent = aggregate.vectors[:, here].transpose(1, 0, 2).reshape(len(here), -1)
        lengths = np.linalg.norm(sent, axis=1, keepdims=True)
        alike = (sent @ sent.T) / np.maximum(lengths @ lengths.T, np.float32(1e-12))
        linked = (alike >= self.threshold * alike.mean()).astype(np.float32)
        np.fill_diagonal(linked, 1)
        tables = (linked / linked.sum(axis=1, keepdims=True)) @ sent
        own = state.own.copy()
        own[:, here] = tables.reshape(len(here), self.n_items, self.factors).transpose(1, 0, 2)
        return TablesOfAll(own.mean(axis=1), own)

    def fitted(self, client: Client, broadcast: TablesOfOne) -> tuple[FloatMatrix, FloatVector]:
        """The item vectors and the score function of this client after its passes."""
        vectors, weights, own = broadcast.vectors.copy(), self._weights(client), np.ascontiguousarray(broadcast.own)
        rates = self.learning_rate, self.learning_rate * self.item_rate * self.n_items
        share = np.float32(min(1.0, 2 * self.regulariser * rates[1] / vectors.size))
        gradient = np.empty(self.weights, dtype=np.float32)
        for _ in range(self.local_epochs):
            items, labels = draw_examples(client.items, client.not_negative, self.n_items, self.negatives, client.rng)
            errors = np.empty(len(items), dtype=np.float32)
            for begin in range(0, len(items), self.batch_size):
                batch = slice(begin, begin + self.batch_size)
                pass_over(
                    vectors, weights, items[batch], labels[batch], errors[batch], gradient, self.batch_size, *rates
                )
                vectors -= share * (vectors - own)
        return vectors, weights
