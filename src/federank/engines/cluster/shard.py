"""A shard: some of a population's devices, on one machine of a cluster.

A shard holds its people's histories and vectors. What it is handed in a round is a Broadcast and the names of the
clients among its people; what it answers with is one Update per district, the sum of its clients' Updates. Both are the
protocol's own messages. Vectors travel only when the run is made whole: for a checkpoint, an evaluation, the model.

The kernels are the compiled engine's. They address people by their number in the whole population, which also names
their draws; so a shard's tables are as long as the population, but only its own people's rows are ever touched, and
memory that is never touched is never taken.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, IntVector, LongVector
from federank.data.interactions import Profiles
from federank.engines.pairs.clients import room_for_clients, sum_of_updates
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Run
from federank.engines.pairs.triples import histories_of
from federank.protocol.messages import Broadcast, Update
from federank.protocol.pairs.noise import disguise
from federank.protocol.pairs.recipes import Recipe
from federank.protocol.policies.choices import AS_HISTORIES_ARE


class Part(NamedTuple):
    """What a shard starts with: all that a federation knows of the people from `first` on, and of nobody else."""

    first: int
    n_users: int  # of the whole population
    n_items: int
    recipe: Recipe  # what is one value per user is these people's only
    starts: LongVector
    items: IntVector  # what they take part with: their histories, unless their policies say otherwise
    allowed: np.ndarray[Any, np.dtype[np.bool_]]  # which of these may ever be sent; empty where all of them may
    vectors: FloatMatrix


def part_of(federation: Federation, first: int, last: int) -> Part:
    """The people from `first` to just before `last`."""
    recipe, histories = federation.recipe, federation.histories
    starts, n_users = histories.starts, len(federation.user_vectors)
    able = recipe.participants[(recipe.participants >= first) & (recipe.participants < last)]
    # Who is there when is the server's matter: a shard is told its clients.
    nobody_away = np.zeros((0, n_users), dtype=np.bool_)
    entries = slice(starts[first], starts[last])
    return Part(
        first,
        n_users,
        len(federation.item_biases),
        recipe._replace(
            triples=recipe.triples[first:last],
            pi=recipe.pi[first:last],
            participants=able,
            trace=nobody_away,
            outward=AS_HISTORIES_ARE,
        ),
        starts[first : last + 1] - starts[first],
        histories.items[entries],
        histories.allowed[entries] if len(histories.allowed) else histories.allowed,
        federation.user_vectors[first:last],
    )


class Shard:
    """Devices of one machine between two rounds."""

    def __init__(self, part: Part) -> None:
        people = slice(part.first, part.first + len(part.vectors))
        width, n_users, n_items = part.vectors.shape[1], part.n_users, part.n_items
        starts = np.zeros(n_users + 1, dtype=np.int64)
        # Whoever comes after keeps zeros: their histories are never asked for.
        starts[people.start : people.stop + 1] = part.starts
        recipe = part.recipe._replace(
            triples=_amid_nobody(part.recipe.triples, people, n_users),
            pi=_amid_nobody(part.recipe.pi, people, n_users),
            participants=np.array(part.recipe.participants),  # what arrives through Ray cannot be written to
            trace=np.array(part.recipe.trace),
            outward=AS_HISTORIES_ARE,
        )
        histories = histories_of(Profiles(starts, np.array(part.items)), n_items, recipe)
        self._people = people
        self._run = Run(
            recipe,
            histories._replace(allowed=np.array(part.allowed)),
            np.zeros((n_items, width), dtype=np.float32),
            np.zeros(n_items, dtype=np.float32),
            _amid_nobody(part.vectors, people, n_users),
            (0,) * width,
        )
        self._room = room_for_clients(n_items, width)
        self._sum_clients(0, np.zeros(0, dtype=np.int32))  # nobody, but the kernel is compiled now

    def version(self) -> str:
        """Which FedeRank is installed here."""
        return version("federank")

    def train(self, broadcast: Broadcast, districts: list[IntVector]) -> list[Update]:
        """Computation and transmission on these clients; the sum of what they send, district by district."""
        self._run.item_vectors[broadcast.items, : self._run.recipe.factors] = broadcast.vectors
        self._run.item_biases[broadcast.items] = broadcast.biases
        sum_clients = self._sum_disguised if self._run.recipe.clip > 0 else self._sum_clients
        return [sum_clients(broadcast.round_number, np.array(clients)) for clients in districts]

    def vectors(self) -> FloatMatrix:
        """Its people's vectors, for when the run is made whole."""
        vectors: FloatMatrix = self._run.user_vectors[self._people]
        return vectors

    def restore(self, vectors: FloatMatrix) -> None:
        """Go back to these vectors: a shard elsewhere was lost, and rounds are played again."""
        self._run.user_vectors[self._people] = vectors

    def _sum_clients(self, round_number: int, clients: IntVector) -> Update:
        return sum_of_updates(self._run, round_number, clients, self._room)

    def _sum_disguised(self, round_number: int, clients: IntVector) -> Update:
        """The same where Updates are clipped and noisy: device by device, with the noise that each draws for itself."""
        recipe, n_items = self._run.recipe, len(self._run.item_biases)
        vectors, biases = np.zeros((n_items, recipe.factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        sent = np.zeros(n_items, dtype=np.bool_)
        for position, client in enumerate(clients):
            update = self._sum_clients(round_number, clients[position : position + 1])
            if len(update.items):  # a device that drops out sends no row, and no noise
                items, its_vectors, its_biases = disguise(recipe, int(client), round_number, update, n_items)
                vectors[items] += its_vectors
                biases[items] += its_biases
                sent[items] = True
        items = np.flatnonzero(sent).astype(np.int32)
        return Update(items, vectors[items], biases[items])


def _amid_nobody(values: Any, people: slice, n_users: int) -> Any:
    """These people's values in their places of a table of everybody."""
    table = np.zeros((n_users, *values.shape[1:]), dtype=values.dtype)
    table[people] = values
    return table
