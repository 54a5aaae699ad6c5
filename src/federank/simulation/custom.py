"""A federation whose steps come from outside, in memory: what the server holds, what devices keep, and its rounds.

Real messages pass between a server and devices: a Broadcast is a copy that no device can change, and an Update is
checked as it arrives. Which rows are sent may depend on the maths here, so traffic is counted while rounds are played,
and is part of what a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.data.interactions import Profiles
from federank.federation.method import (
    Device,
    Message,
    Steps,
    StepsRecipe,
    answering,
    bytes_of,
    checked,
    choose,
    generator,
    rows_of,
    sealed,
)
from federank.federation.round import play_round
from federank.privacy.population import all_shared_items
from federank.simulation.federated import EngineName, Open, Tables, in_this_process, traffic

Watch = Callable[[int, Message, Message], None]
"""Shown each message that arrives: whose it is, what they were told, what they sent."""
_UPLOADS, _ROWS_UP, _BYTES_UP, _DOWNLOADS, _ROWS_DOWN, _BYTES_DOWN = range(6)


class StepsFederation:
    """Server and devices between two rounds; the server's half is what a round calls the shared model."""

    def __init__(self, steps: Steps, recipe: StepsRecipe, profiles: Profiles) -> None:
        """A federation before its first round."""
        self.steps, self.recipe = steps, recipe
        self.profiles = all_shared_items(recipe.shared_profile, profiles)
        self.round_number = 0
        self.watch: Watch | None = None
        self.spent: IntVector = np.zeros(len(self.profiles.sizes), dtype=np.int32)
        self.counted = np.zeros(6, dtype=np.int64)
        # A checkpoint puts tables back as attributes of these names (engines/checkpoint.py).
        self._keep(checked(steps.first_shared(recipe.n_items, generator(recipe.seed, -1, -1)), "What the server has"))
        self._states = sorted(self._first_states())

    def _first_states(self) -> list[str]:
        """Give every device what it keeps to itself; the names of the tables."""
        each: dict[str, list[Any]] = {}
        for user in range(len(self.spent)):
            device = self._device(user, {}, -1)
            for name, array in self.steps.first_state(device).items():
                each.setdefault(name, []).append(array)
        for name, arrays in each.items():
            setattr(self, f"devices/{name}", np.stack(arrays))
        return list(each)

    def _keep(self, shared: Message) -> None:
        self._shared = list(shared)
        for name, array in shared.items():
            setattr(self, f"server/{name}", array)

    @property
    def shared(self) -> Message:
        """What the server holds."""
        return {name: getattr(self, f"server/{name}") for name in self._shared}

    @property
    def states(self) -> Message:
        """What all devices keep to themselves: a row for each."""
        return {name: getattr(self, f"devices/{name}") for name in self._states}

    def broadcast(self) -> Message:
        """What devices are told as the federation is now: they recommend from it."""
        return sealed(checked(self.steps.distribute(self.shared, self.round_number), "What the server tells"))

    # The server's two steps.
    def distribute(self, recipe: StepsRecipe) -> Message:
        """The round's Broadcast."""
        del recipe
        return self.broadcast()

    def aggregate(self, recipe: StepsRecipe, updates: Iterable[Message]) -> None:
        """Fold a round's messages in; a round that no one answered changes nothing."""
        del recipe
        arriving = iter(updates)
        first = next(arriving, None)
        if first is not None:
            folded = self.steps.aggregate(self.shared, _again(first, arriving), self.round_number)
            for _ in arriving:  # a fold that looks at some messages alone does not leave the others unsent
                pass
            self._keep(checked(folded, "What the server holds after a round"))
        self.round_number += 1

    # The devices: who takes part, and their two steps.
    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        return choose(self.recipe, round_number, self.spent)

    def train(self, clients: IntVector, broadcast: Message) -> Iterator[Message]:
        """Computation and transmission on each of these devices; a message that is lost on the way is spent too."""
        arrives = set(answering(self.recipe, self.round_number, clients).tolist())
        self.counted[_DOWNLOADS] += len(clients)
        self.counted[_ROWS_DOWN] += len(clients) * rows_of(broadcast)
        self.counted[_BYTES_DOWN] += len(clients) * bytes_of(broadcast)
        states = self.states
        for user in clients.tolist():
            device = self._device(user, {name: table[user] for name, table in states.items()}, self.round_number)
            update = self.steps.transmit(self.steps.compute(broadcast, device), device)
            self.spent[user] += 1
            if user in arrives:
                sent = checked(update, f"The message of device {user}")
                self.counted[_UPLOADS] += 1
                self.counted[_ROWS_UP] += rows_of(sent)
                self.counted[_BYTES_UP] += bytes_of(sent)
                if self.watch is not None:
                    self.watch(user, broadcast, sent)
                yield sent

    def _device(self, user: int, state: Message, round_number: int) -> Device:
        rng = generator(self.recipe.seed, user, round_number)
        return Device(user, self.profiles.of(user), self.recipe.n_items, state, rng)

    # What training asks (engines/federated.py).
    @property
    def rounds_per_epoch(self) -> int:
        """An epoch is a round: everyone who is there takes part."""
        return 1

    @property
    def steps_per_round(self) -> float:
        """How many interactions a round learns from on average."""
        return max(1.0, float(self.profiles.sizes[self.recipe.participants].sum()) * self.recipe.online)

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """One engine: it calls the steps, whatever they are written in."""
        return {"compiled": in_this_process(play)}

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        server = {f"server/{name}": array for name, array in self.shared.items()} | {"counted": self.counted}
        devices = {f"devices/{name}": array for name, array in self.states.items()}
        return Tables(server, devices | {"spent": self.spent})

    def why_diverged(self) -> str:
        """What is to blame if the server's numbers are no longer finite."""
        return "the method's steps are too large for this data; try smaller ones."

    def communication(self) -> dict[str, Any]:
        """The traffic so far: messages, rows and bytes, in all and per round."""
        counted, rounds = self.counted.tolist(), max(1, self.round_number)
        return {
            "rounds": self.round_number,
            "uploads": counted[_UPLOADS],
            "downloads": counted[_DOWNLOADS],
            "up": traffic(counted[_ROWS_UP], counted[_BYTES_UP], rounds),
            "down_dense": traffic(counted[_ROWS_DOWN], counted[_BYTES_DOWN], rounds),
        }


def play(federation: StepsFederation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    del threads  # one device after the other: the steps are someone's Python
    for _ in range(rounds):
        play_round(federation.recipe, federation, federation)


def _again(first: Message, others: Iterator[Message]) -> Iterator[Message]:
    yield first
    yield from others
