"""FedRAP: additive personalisation (Li et al., Federated Recommendation with Additive Personalization, ICLR 2024).

A score is u . (c_i + d_i): the user vector u and the personal item table D stay on the client, the item table C is
shared. The client steps u, C and D on the logistic loss of what its user has and of sampled items. Two terms keep the
tables apart and the shared one sparse: - lambda |C - D|^2 and + mu |C|_1. Both grow as tanh(round / 10).
The client uploads how far C moved; the server adds the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.compiling import compiled
from federank.federation.method import HOME, HOME_ROUNDS, Client, ClientResult, FederatedMethod, Records, setting
from federank.federation.wire import Array, array
from federank.methods.baselines.pfedrec import ItemChanges, SummedChanges, draw_examples


@dataclass(frozen=True, eq=False)
class SharedTable:
    """State and broadcast: the shared item table, and the number of rounds it has had."""

    vectors: Array = array("items", "factors")
    rounds: Array = array(1, dtype="i8")


@dataclass(frozen=True, eq=False)
class PersonalTables:
    """Client state: the user vector and the personal item table."""

    vector: Array = array("factors")
    own: Array = array("items", "factors")


@dataclass(frozen=True, kw_only=True)
class FedRAP(FederatedMethod):
    """Additive personalisation (Li et al., 2024): a personal item table beside the shared one."""

    name = "fedrap"
    records = Records(state=SharedTable, update=ItemChanges, aggregate=SummedChanges, client=PersonalTables)

    factors: int = setting(32, 1, 1024)
    """Number of latent factors."""
    learning_rate: float = setting(0.1, 0)
    """Step of the user vector."""
    item_rate: float = setting(1000.0, 0)
    """Step of both item tables, as a multiple of the learning rate."""
    apart: float = setting(0.001, 0)
    """Weight of the term that keeps the shared and the personal table apart (lambda)."""
    sparsity: float = setting(0.001, 0)
    """Weight of the L1 norm of the shared table (mu)."""
    negatives: int = setting(4, 1, expert=True)
    """Sampled items per item of the user, drawn again in every round."""
    local_epochs: int = setting(1, 1)
    """Passes over the examples in a round."""
    batch_size: int = setting(256, 1, expert=True)
    """Examples per step."""
    initial_scale: float = setting(0.1, 0, expert=True)
    """Standard deviation of the first values of the shared table; personal tables start at zero."""

    def initial_state(self) -> SharedTable:
        """The shared table at random."""
        rng = np.random.default_rng([self.seed, 0, 0])
        table = rng.normal(0, self.initial_scale, (self.n_items, self.factors)).astype(np.float32)
        return SharedTable(table, np.zeros(1, dtype=np.int64))

    def client_update(self, client: Client, broadcast: SharedTable) -> ClientResult:
        """Step the user vector and both tables; how far the shared one moved is the update."""
        shared, tables = self.fitted(client, broadcast)
        return ClientResult(ItemChanges(shared - broadcast.vectors), tables)

    def add(self, aggregate: SummedChanges, update: ItemChanges) -> None:
        """Add the changes of every item."""
        aggregate.vectors += update.vectors

    def server_update(self, state: SharedTable, aggregate: SummedChanges) -> SharedTable:
        """Add the mean of the changes."""
        if not aggregate.count:
            return state
        mean = aggregate.vectors / aggregate.count
        return SharedTable((state.vectors + mean).astype(np.float32), np.asarray(state.rounds + 1, dtype=np.int64))

    def fold_in(self, client: Client, broadcast: SharedTable) -> FloatVector:
        """The user's scores, by the shared table and the personal one."""
        for number in range(0 if client.state else HOME_ROUNDS):
            client = replace(client, round=HOME + number)
            client = replace(client, state=self.fitted(client, broadcast)[1])
        scores: FloatVector = (broadcast.vectors + client.state.own) @ client.state.vector
        return scores

    def scores(self, broadcast: SharedTable, factors: Array) -> FloatMatrix:  # noqa: ARG002 (each user has an own table)
        """The factors of a user are scores already."""
        return factors

    def fitted(self, client: Client, broadcast: SharedTable) -> tuple[FloatMatrix, PersonalTables]:
        """The shared table as this client leaves it, and what the client keeps."""
        shared = broadcast.vectors.copy()
        if client.state:
            vector, own = client.state.vector.copy(), client.state.own.copy()
        else:
            # The same vector for all at first: else the changes of the shared table cancel out in their mean.
            bound, rng = 1 / np.sqrt(self.factors), np.random.default_rng([self.seed, 0])
            vector, own = rng.uniform(-bound, bound, self.factors).astype(np.float32), np.zeros_like(shared)
        growth = np.tanh(float(broadcast.rounds[0]) / 10)
        rates = self.learning_rate, self.learning_rate * self.item_rate
        terms = 2 * self.apart * growth, self.sparsity * growth
        for _ in range(self.local_epochs):
            drawn = draw_examples(client.items, client.not_negative, self.n_items, self.negatives, client.rng)
            _pass(shared, own, vector, *drawn, self.batch_size, *rates, *terms)
        return shared, PersonalTables(vector, own)


@compiled
def _pass(
    shared: FloatMatrix,
    own: FloatMatrix,
    vector: FloatVector,
    items: IntVector,
    labels: FloatVector,
    batch: int,
    rate: float,
    item_rate: float,
    apart: float,
    sparsity: float,
) -> None:
    """One pass over the examples, in batches; both tables and the user vector are changed in place.

    The two terms that act on the tables are applied to the rows of the batch.
    """
    size = len(vector)
    gradient = np.empty(size, dtype=np.float32)
    errors = np.empty(len(items), dtype=np.float32)
    for begin in range(0, len(items), batch):
        end = min(begin + batch, len(items))
        share = np.float32(1.0) / np.float32(end - begin)
        gradient[:] = 0
        for k in range(begin, end):
            item = items[k]
            score = np.float32(0.0)
            for f in range(size):
                score += vector[f] * (shared[item, f] + own[item, f])
            errors[k] = np.float32(1.0) / (np.float32(1.0) + np.exp(-score)) - labels[k]
            for f in range(size):
                gradient[f] += errors[k] * (shared[item, f] + own[item, f])
        step = np.float32(item_rate) * share
        for k in range(begin, end):
            item = items[k]
            for f in range(size):
                apart_by = np.float32(apart) * (shared[item, f] - own[item, f])
                change = errors[k] * vector[f]
                shared[item, f] -= step * (change - apart_by + np.float32(sparsity) * np.sign(shared[item, f]))
                own[item, f] -= step * (change + apart_by)
        for f in range(size):
            vector[f] -= np.float32(rate) * share * gradient[f]
