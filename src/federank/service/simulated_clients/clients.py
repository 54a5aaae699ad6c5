"""Virtual devices: the people of a data set, each with a private vector and history, in the memory of one process.

They follow the federation's recipe with the draws of a simulation (its seed, and users numbered as in the data), so a
federation in which everyone answers learns what the simulation learns. A device's part of a round is played by the
compiled engine's own kernel: thousands of devices share the two cores of a laptop with the server that they test.

Every device downloads what it is sent; in memory, devices that have the same version of the model share it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank._numerics.rows import padded_width
from federank.data.interactions import Interactions, Profiles
from federank.errors import BadAnswer, DataError
from federank.federation.rng import DROPOUT, happens, words, words_wrap_around
from federank.methods.fpl.factors import home_vectors
from federank.methods.fpl.kernels import sum_of_updates, workspace_for_clients
from federank.methods.fpl.settings import recipe_for
from federank.methods.fpl.simulation import Federation
from federank.methods.fpl.wire import Update, encode
from federank.privacy.population import Choices, coins, shared_profiles_of_all
from federank.service.client.federation import Facts, merged
from federank.service.client.methods.method import Model, Rows
from federank.service.client.methods.summed import Terms


class Models:
    """The versions of the model that devices of this process have, each kept once, as the kernels want them.

    Their rows are padded with zeros.
    """

    MOST = 64

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._kept: dict[int, Model] = {}
        self._seen: set[tuple[int | None, int]] = set()

    def known(self, have: Model | None, version: int) -> Model | None:
        """The model that these very rows make, if a neighbour has received and checked them before."""
        return self._kept.get(version) if (have and have.version, version) in self._seen else None

    def receive(self, have: Model | None, rows: Rows) -> Model:
        """Take in rows; where neighbours have the same version, it must be the very same model."""
        factors = self.facts.factors
        known = None if have is None else have._replace(vectors=have.vectors[:, :factors])
        whole = merged(rows, known, self.facts.n_items)
        padded = np.zeros((self.facts.n_items, padded_width(factors)), dtype=np.float32)
        padded[:, :factors] = whole.vectors
        model = whole._replace(vectors=padded)
        twin = self._kept.setdefault(model.version, model)
        one, other = ((kept.vectors, kept.biases, kept.weights, kept.implicit) for kept in (twin, model))
        same = all(np.array_equal(*both) for both in zip(one, other, strict=True))
        if not same or (twin.regulariser, twin.iteration) != (model.regulariser, model.iteration):
            raise BadAnswer(f"The server gave two devices different models as version {model.version}.")
        self._seen.add((have and have.version, model.version))
        while len(self._kept) > self.MOST:
            self._kept.pop(min(self._kept))
        return twin


class Devices(Protocol):
    """The private side of a fleet, of any method."""

    participants: IntVector
    profiles: Profiles

    def take_over(self, before: Any) -> None:
        """Go on as the same devices, from before the catalogue has grown."""
        ...

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left."""
        ...

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: what it sends."""
        ...

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """The same where no single server reads a message: split, or nothing where its guarantee has no room."""
        ...

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum: it was made for a sum with this noise."""
        ...

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered."""
        ...

    def vectors(self) -> FloatMatrix:
        """Everyone's vector of the rounds, where the method keeps one."""
        ...

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """How good everyone's device finds each item; `vectors` are those of the rounds."""
        ...


class VirtualDevices:
    """The private side of a fleet of pair-wise learning: vectors, histories and draws of everyone in a data set."""

    def __init__(self, facts: Facts, ids: list[str], data: Interactions, seed: int, specs: dict[str, Any]) -> None:
        settings = replace(facts.settings, seed=seed, clients_per_round="all", **specs)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(specs.get("pi", 1.0))))
        shared_profile = shared_profiles_of_all(choices, seed, self.profiles, facts.n_items)
        recipe = recipe_for(settings, self.profiles.sizes, facts.n_items, coins(choices), None, shared_profile)
        self.federation = Federation.established(settings, recipe, self.profiles, facts.n_items)
        self.choices, self.recipe, self.participants = choices, recipe, recipe.participants
        self._run = self.federation.run
        self._workspace = workspace_for_clients(*self.federation.item_vectors.shape)
        sum_of_updates(
            self._run, 0, np.zeros(0, dtype=np.int32), self._workspace
        )  # no one, but the kernel is compiled now

    def play(self, user: int, round_number: int, model: Model) -> Update:
        """One device's part of a round: its vector moves, and an Update comes out."""
        run = self._run._replace(item_vectors=model.vectors, item_biases=model.biases)
        return sum_of_updates(run, round_number, np.array([user], dtype=np.int32), self._workspace)

    def take_over(self, before: VirtualDevices) -> None:
        """Everyone keeps the vector that was learnt so far."""
        self.federation.user_vectors[:] = before.federation.user_vectors

    def may_take_part(self, user: int) -> bool:
        """No one has promised a number of messages."""
        del user
        return True

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: the bytes that it sends."""
        return encode(self.play(user, round_number, model))

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """Pairs are not sent as sums."""
        del user, model, terms
        raise AssertionError("a federation of pairs has no federation config of sums")

    def release(self, user: int, noise: int) -> None:
        """Nothing was charged."""

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
        return vanishes(self.recipe.seed, user, round_number, share)

    def vectors(self) -> FloatMatrix:
        """Everyone's vector of the rounds."""
        return self.federation.user_vectors[:, : self.recipe.factors].copy()

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """By the vector of the rounds, or by one that was learnt at home where a policy keeps the history there."""
        at_home = np.flatnonzero(self.choices.at_home).astype(np.int32)
        if len(at_home):
            vectors = vectors.copy()
            vectors[at_home] = home_vectors(self.recipe, self.profiles, model.vectors, model.biases, at_home)
        scores: FloatMatrix = vectors @ model.vectors.T + model.biases
        return scores


def vanishes(seed: int, user: int, round_number: int, share: float) -> bool:
    """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
    if share <= 0:
        return False
    with words_wrap_around():
        word, _, _, _ = words(seed, user, DROPOUT, round_number, 0)
    return bool(happens(word, share))


def in_catalogue(data: Interactions, ids: list[str]) -> tuple[Profiles, int]:
    """Everyone's history in the numbers of the federation's catalogue, and how many items it does not have."""
    own = [str(item) for item in data.item_ids.tolist()]
    if own == ids:
        return data.profiles, 0
    number_of = {item: number for number, item in enumerate(ids)}
    numbers = np.array([number_of.get(item, -1) for item in own], dtype=np.int32)
    known = numbers[data.items] >= 0
    if not known.any():
        raise DataError(f"None of the items of {data.name} is in the federation's catalogue; is it the same data?")
    users, items = data.users[known], numbers[data.items[known]]
    order = np.lexsort((items, users))
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=data.n_users)))).astype(np.int64)
    return Profiles(starts, items[order]), int((numbers < 0).sum())


# What happened in a rehearsal, counted: interactions, bytes, how long requests took, and what came to nothing.


@dataclass
class Tally:
    """What happened, counted."""

    seconds: float = 0.0
    interactions: int = 0
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    took: dict[str, list[float]] = field(default_factory=lambda: {"task": [], "upload": [], "interaction": []})

    def merge(self, other: Tally) -> None:
        """Add what another process has counted at the same time."""
        self.seconds, self.rounds = max(self.seconds, other.seconds), max(self.rounds, other.rounds)
        self.interactions += other.interactions
        self.counts += other.counts
        self.bytes_up += other.bytes_up
        self.bytes_down += other.bytes_down
        for name, took in other.took.items():
            self.took[name] += took

    def report(self) -> dict[str, Any]:
        """The numbers that a person or a program reads."""
        each = max(1, self.interactions)
        return {
            "interactions": self.interactions,
            "rounds": self.rounds,
            "seconds": round(self.seconds, 2),
            "interactions_per_s": round(self.interactions / max(self.seconds, 1e-9), 1),
            "bytes_per_interaction": round((self.bytes_up + self.bytes_down) / each),
            "bytes_up_per_interaction": round(self.bytes_up / each),
            "bytes_down_per_interaction": round(self.bytes_down / each),
            **{
                f"{name}_ms": {
                    f"p{level}": round(1000 * float(np.percentile(took, level)), 1) for level in (50, 95, 99)
                }
                for name, took in self.took.items()
                if took
            },
            "not_counted": dict(self.counts),
        }
