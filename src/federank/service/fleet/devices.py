"""Virtual devices: the people of a data set, each with a private vector and history, in the memory of one process.

They follow the federation's recipe with the draws of a simulation (its seed, and users numbered as in the data), so a
federation in which everybody answers learns what the simulation learns. A device's part of a round is played by the
compiled engine's own kernel: thousands of devices share the two cores of a laptop with the server that they test.

Every device downloads what it is sent; in memory, devices that have the same version of the model share it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank.data.interactions import Interactions, Profiles
from federank.engines.pairs.clients import room_for_clients, sum_of_updates
from federank.engines.pairs.federation import Federation
from federank.errors import BadAnswer, DataError
from federank.models.rows import padded_width
from federank.protocol.choices import Choices, coins, everyones_outward
from federank.protocol.draws import DROPOUT, happens, words, words_wrap_around
from federank.protocol.messages import Broadcast, Update
from federank.protocol.pairs.recipes import recipe_for
from federank.service.device.federation import Facts, Model, merged


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

    def receive(self, have: Model | None, rows: Broadcast) -> Model:
        """Take in rows; where neighbours have the same version, it must be the very same model."""
        factors = self.facts.settings.factors
        known = None if have is None else have._replace(vectors=have.vectors[:, :factors])
        whole = merged(rows, known, self.facts.n_items)
        padded = np.zeros((self.facts.n_items, padded_width(factors)), dtype=np.float32)
        padded[:, :factors] = whole.vectors
        model = Model(rows.version, padded, np.array(whole.biases))
        twin = self._kept.setdefault(rows.version, model)
        if not (np.array_equal(twin.vectors, model.vectors) and np.array_equal(twin.biases, model.biases)):
            raise BadAnswer(f"The server gave two devices different models as version {rows.version}.")
        self._seen.add((have and have.version, rows.version))
        while len(self._kept) > self.MOST:
            self._kept.pop(min(self._kept))
        return twin


class VirtualDevices:
    """The private side of a fleet: vectors, histories and draws of everybody in a data set."""

    def __init__(self, facts: Facts, ids: list[str], data: Interactions, seed: int, wishes: dict[str, Any]) -> None:
        settings = replace(facts.settings, seed=seed, clients_per_round="all", **wishes)
        self.profiles, self.unknown_items = _in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(wishes.get("pi", 1.0))))
        outward = everyones_outward(choices, seed, self.profiles, facts.n_items)
        recipe = recipe_for(settings, self.profiles.sizes, facts.n_items, coins(choices), None, outward)
        self.federation = Federation.established(settings, recipe, self.profiles, facts.n_items)
        self.choices, self.recipe, self.participants = choices, recipe, recipe.participants
        self._run = self.federation.run
        self._room = room_for_clients(*self.federation.item_vectors.shape)
        sum_of_updates(self._run, 0, np.zeros(0, dtype=np.int32), self._room)  # nobody, but the kernel is compiled now

    def play(self, user: int, round_number: int, model: Model) -> Update:
        """One device's part of a round: its vector moves, and an Update comes out."""
        run = self._run._replace(item_vectors=model.vectors, item_biases=model.biases)
        return sum_of_updates(run, round_number, np.array([user], dtype=np.int32), self._room)

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
        if share <= 0:
            return False
        with words_wrap_around():
            word, _, _, _ = words(self.recipe.seed, user, DROPOUT, round_number, 0)
        return bool(happens(word, share))


def _in_catalogue(data: Interactions, ids: list[str]) -> tuple[Profiles, int]:
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
