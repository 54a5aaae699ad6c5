"""A method as a device sees it: one record of functions, looked up by the word with which a federation names it.

What they are handed and give back are values: the shared model as the device has it, the vector that it may keep from
round to round, and what a round leaves on the device before anything goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadAnswer, BadMessage, Diverged, SettingError
from federank.methods.fedrec.settings import Scale
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, SharedProfile
from federank.service.client.methods.summed import Terms


class Model(NamedTuple):
    """The shared model as of a version."""

    version: int
    vectors: FloatMatrix
    biases: FloatVector  # of pairs; no numbers where squares are learnt
    weights: FloatVector = np.zeros(0, dtype=np.float32)  # of squares: how much each item counts; of ratings: 1 or 0,
    # whether any Update has ever had the item
    regulariser: float = 0.0  # of squares: the pull of an own vector towards zero
    implicit: FloatMatrix = np.zeros((0, 0), dtype=np.float32)  # of ratings: W, where it is SVD++
    iteration: int = 0  # of ratings: how many iterations are over


class Rows(NamedTuple):
    """A model or a part of one as the server sent it, with its round."""

    round_number: int
    items: IntVector
    model: Model  # of these items alone


class History(NamedTuple):
    """What its owner has: items, ascending, and their ratings where the federation is of ratings."""

    items: IntVector
    ratings: FloatVector = np.zeros(0, dtype=np.float32)

    def ratings_of(self, items: IntVector) -> FloatVector:
        """The ratings of some of these items; none where there are none."""
        return self.ratings[np.searchsorted(self.items, items)] if len(self.ratings) else self.ratings


class RoundVector(NamedTuple):
    """The vector that a device uses in rounds, and what it was learnt from; nothing where that is not known."""

    values: FloatVector
    basis: str | None
    items: frozenset[int]

    def stands(self, basis: str, profile: IntVector) -> bool:
        """Whether it may go on: its owner has taken back nothing of what it was learnt from."""
        return self.basis == basis and self.items <= set(profile.tolist())


class User(NamedTuple):
    """Whose device plays: its own draws, its settings, what it takes part with, and what it keeps between rounds."""

    seed: int
    user: int
    settings: Any
    n_items: int
    policy: Policy
    taken: SharedProfile
    kept: RoundVector
    terms: Terms | None = None  # where no single server reads a message
    ratings: FloatVector = np.zeros(0, dtype=np.float32)  # of the items that it takes part with, where they are rated


class Played(NamedTuple):
    """What a round leaves on the device: its new vector, and the Update that may go out, recorded in the ledger."""

    vector: RoundVector
    body: bytes
    rows: int  # how many items the Update names
    recorded: IntVector  # whose lines of the ledger are new or have changed


def _likes(settings: Any) -> Scale | None:
    """Nothing is rated."""
    del settings
    return None


class Summed(NamedTuple):
    """What a device must know of a method whose messages no single server reads, to check what the federation config
    says.
    """

    told: tuple[str, ...]
    """Settings that the leader tells, and that must be those whose digest the federation config has."""
    shape: Callable[[Any], tuple[str, int, str]]
    """(settings) -> the federation config's recipe, numbers a row and longest message, as decimal text."""
    digest: Callable[[Model], bytes]
    """(model) -> what the round's offer must name it by."""
    unsaid: Mapping[str, str] = MappingProxyType({})
    """What a setting is where the federation config's settings have none."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a device must know of a method."""

    settings_of: Callable[[dict[str, Any], int], Any]
    """(recipe as the server told it, number of items) -> settings; raises where they cannot be followed."""
    model_bytes: Callable[[int, int], int]
    """(number of items, factors) -> no model is longer on the wire."""
    read_rows: Callable[[bytes, int, int], Rows]
    """(content, factors, number of items) -> rows that were checked; raises `BadMessage`."""
    first_vector: Callable[[Any, int, int], FloatVector]
    """(settings, seed, user) -> the vector that a device begins with."""
    sharing_policy: Callable[[Policy], Policy]
    """The policy that decides what the device takes part with; raises where the method cannot keep it."""
    messages: Callable[[Any, Policy], int | None]
    """(settings, policy) -> how many messages may leave in a lifetime; None: no number was promised."""
    play: Callable[[User, Model, Ledger, int], Played]
    """One round, recorded in the ledger; nothing is sent yet."""
    home_vector: Callable[[Any, int, int, int, History, Model], FloatVector]
    """(settings, number of items, seed, user, history, model) -> the vector to recommend from, learnt at home."""
    counts_messages: bool
    """Whether the ledger counts messages, of which a number was promised."""
    is_home_alone: bool
    """Whether recommendations always come from the home vector."""
    scale: Callable[[Any], Scale | None] = _likes
    """(settings) -> what ratings there are; None where people like items, and rate none."""
    needs_others: bool = True
    """Whether there must be items that its owner does not have: to compare with, or to hide among."""
    summed: Summed | None = None
    """Where its messages may be such that no single server reads one."""


# Devices that speak in every round they are invited to: no number of messages is promised, and none is asked for.


def refuse_counting(policy: Policy) -> None:
    """Refuse a policy that counts messages."""
    if policy.messages is not None:
        raise SettingError(
            "This federation's devices speak in every round, and count no messages; leave --messages out. A bound on "
            "items is --budget."
        )


# A model with which a device's numbers run out of range is refused, in a sentence, and nothing is sent.


@contextmanager
def numbers_in_range() -> Iterator[None]:
    """Refuse the model and recipe of a round from which no message can be made."""
    try:
        yield
    except (BadMessage, Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model and recipe the device's numbers run out of range ({reason}); nothing was sent."
        ) from reason


def check_moved(vector: FloatVector) -> None:
    """Refuse the model and recipe of a round that moves the own vector out of range."""
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model and recipe the device's vector runs out of range; nothing was sent.")


def solved(solve: Callable[[], FloatVector]) -> FloatVector:
    """The own vector in closed form; the model is refused where there is none."""
    try:
        vector = solve()
    except (Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model the device's own vector cannot be solved for ({reason}); a newer model is needed."
        ) from reason
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model the device's own vector runs out of range; a newer model is needed.")
    return vector
