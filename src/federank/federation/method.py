"""What a method that brings its own messages is made of: messages, devices, and the steps that it fills in.

    first_shared     what the server starts with
    first_state      what a device keeps to itself between rounds
    1. distribute    server: what every device of a round is told
    2. compute       device: learn from what it takes part with; what it would tell
    3. transmit      device: what of that leaves (noise, clipping, fewer rows)
    4. aggregate     server: fold what came in, and begin the next round
    scores           device: every item of the catalogue, for its owner

A message is a dictionary of arrays: that is all that crosses. A device is handed in with what its owner's policy lets
it take part with in the place of the history, so policies hold whatever the maths does. Randomness is the device's own
generator, made again for each round from (seed, user, round): a run is the same before and after a resume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.checks import check_int, check_range
from federank.errors import BadMessage
from federank.federation.rng import DROPOUT, ONLINE, happens, words, words_wrap_around
from federank.federation.wire import encode_parts
from federank.privacy.policy import SharedProfileSettings
from federank.privacy.population import SharedProfiles

Message = dict[str, NDArray[Any]]
"""What crosses the wire, one way or the other: arrays by name."""


@dataclass(eq=False)
class Device:
    """One person's device while it takes part in a round, or recommends at home. Nothing of it crosses the wire."""

    number: int
    """Which device it is, from 0."""
    profile: IntVector
    """The items that it takes part with, ascending: what its owner's policy lets stand for the history."""
    n_items: int
    """How many items the catalogue has."""
    state: Message
    """What it keeps to itself between rounds: arrays of the same shapes for every device. Change them in place."""
    rng: np.random.Generator
    """Its own random numbers, for this round alone."""


class Steps(Protocol):
    """What a method fills in."""

    def first_shared(self, n_items: int, rng: np.random.Generator) -> Message:
        """What the server starts with."""
        ...

    def first_state(self, device: Device) -> Message:
        """What a device starts with and keeps to itself."""
        ...

    def distribute(self, shared: Message, round_number: int) -> Message:
        """What every device of a round is told."""
        ...

    def compute(self, broadcast: Message, device: Device) -> Message:
        """Learn on the device; what it would tell the server."""
        ...

    def transmit(self, update: Message, device: Device) -> Message:
        """What of that leaves the device."""
        ...

    def aggregate(self, shared: Message, updates: Iterable[Message], round_number: int) -> Message:
        """Fold a round's messages in: what the server holds then."""
        ...


def generator(seed: int, user: int, round_number: int) -> np.random.Generator:
    """The random numbers of one device in one round; -1 stands for the server, and for the time before all rounds."""
    return np.random.default_rng([seed, user + 1, round_number + 1])


def checked(message: Any, what: str) -> Message:
    """A message as someone's step made it, if it can cross: arrays of finite numbers by name."""
    if not isinstance(message, Mapping) or not message:
        raise BadMessage(f"{what} is {type(message).__name__!r} or empty; a dictionary of arrays by name is needed.")
    arrays = {}
    for name, value in message.items():
        array = np.asarray(value)
        if not isinstance(name, str) or array.dtype.kind not in "iufb":
            raise BadMessage(f"{what} has {name!r} of {array.dtype}; arrays of numbers by name are needed.")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BadMessage(f"{what} has values in {name!r} that are not finite numbers; smaller steps may help.")
        arrays[name] = array
    return arrays


def sealed(message: Message) -> Message:
    """A copy that no one can change: what the server tells, so that no device can write to the server's arrays."""
    copies = {name: array.copy() for name, array in message.items()}
    for copy in copies.values():
        copy.flags.writeable = False
    return copies


_sizes: dict[tuple[Any, ...], int] = {}


def bytes_of(message: Message) -> int:
    """The bytes of a message on the wire (protocol/wire.py); those of alike messages are the same."""
    alike = tuple((name, array.dtype.str, array.shape) for name, array in message.items())
    if alike not in _sizes:
        _sizes[alike] = len(encode_parts(message))
    return _sizes[alike]


def rows_of(message: Message) -> int:
    """The rows of a message: those of its longest array."""
    return max((len(array) for array in message.values() if array.ndim), default=1)


def moved_table(update: Message, broadcast: Message, n_items: int, tables: bool) -> FloatMatrix:
    """What a message says of each item, as anyone reads it who knows the protocol: a row for every item.

    Arrays with a row for every item, side by side; where `items` says which items the rows are of, the others are zero.
    Where messages carry whole tables and not changes, what counts is how they differ from the Broadcast.
    """
    items = update.get("items")
    parts = [np.zeros((n_items, 0), dtype=np.float32)]
    for name, array in update.items():
        if name == "items" or array.ndim == 0:
            continue
        if items is not None and len(array) == len(items):
            placed = np.zeros((n_items, *array.shape[1:]), dtype=np.float32)
            told = broadcast.get(name)
            placed[items] = array - told[items] if tables and told is not None else array
        elif len(array) == n_items:
            told = broadcast.get(name)
            placed = np.asarray(array - told if tables and told is not None else array, dtype=np.float32)
        else:
            continue
        parts.append(placed.reshape(n_items, -1))
    table: FloatMatrix = np.concatenate(parts, axis=1)
    return table


def row_lengths(table: FloatMatrix) -> FloatVector:
    """The length of each row."""
    lengths: FloatVector = np.sqrt(np.einsum("ij,ij->i", table, table)).astype(np.float32)
    return lengths


# The settings that every method with messages of its own has, and what they come to for a population.


@dataclass(frozen=True, kw_only=True)
class FederatedSettings(SharedProfileSettings):
    """What can be chosen about any federated method of your own: rounds, who is there, and what people let out."""

    rounds: int = 20
    """How many rounds are played; every device that is there takes part in each."""
    online: float = 1.0
    """Probability that a device is there when a round begins."""
    dropout: float = 0.0
    """Probability that a device takes part and its answer never comes."""
    seed: int = 1
    """Names the run: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rounds", self.rounds, 1)
        check_int("seed", self.seed, 0, 2**32 - 1)
        check_range("online", self.online, 0, 1)
        check_range("dropout", self.dropout, 0, 1)


class StepsRecipe(NamedTuple):
    """What is played: who may take part with what."""

    n_items: int
    rounds: int
    seed: int
    online: float
    dropout: float
    participants: IntVector  # those who have something to take part with, ascending
    messages: IntVector  # how many messages each person allows in their lifetime
    shared_profile: SharedProfiles


def choose(recipe: StepsRecipe, round_number: int, spent: IntVector) -> IntVector:
    """The devices that are asked in this round, ascending."""
    able: IntVector = recipe.participants[spent[recipe.participants] < recipe.messages[recipe.participants]]
    return able if recipe.online >= 1 else able[_happens(recipe, able, ONLINE, round_number, recipe.online)]


def answering(recipe: StepsRecipe, round_number: int, asked: IntVector) -> IntVector:
    """Those of the asked whose message arrives."""
    return asked if recipe.dropout <= 0 else asked[~_happens(recipe, asked, DROPOUT, round_number, recipe.dropout)]


def _happens(
    recipe: StepsRecipe, people: IntVector, purpose: int, round_number: int, chance: float
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    with words_wrap_around():
        seed, number = np.uint32(recipe.seed), np.uint32(round_number)
        drawn = words(seed, people.astype(np.uint32), purpose, number, np.uint32(0))[0]
    return np.asarray(happens(drawn, chance))
