"""Simulated clients of a real server: the users of a data set. Each method plays their part of a round in its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank.data.interactions import Interactions, Profiles
from federank.errors import DataError
from federank.federation.client import Model, Terms
from federank.federation.rng import DROPOUT, happens, words, words_wrap_around
from federank.privacy.policy import Policy


class Population(NamedTuple):
    """What simulated clients are made from."""

    info: Any  # what the federation announces (service/client/federation.py)
    ids: list[str]  # of the catalogue's items
    data: Interactions
    seed: int
    choices: dict[str, Any]  # what all of them choose in the place of the suggested policy
    suggested: Callable[[], Policy]  # what the federation suggests; raises where it suggests nothing


class SimulatedClients(Protocol):
    """The private side of the simulated clients of any method."""

    seed: int
    participants: IntVector
    profiles: Profiles

    def take_over(self, before: Any) -> None:
        """Go on as the same clients in another season: keep what was learnt; uploads count again from 0."""
        ...

    def may_take_part(self, user: int) -> bool:
        """Whether a client has an upload left."""
        ...

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One client's part of a round: what it sends."""
        ...

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """The same under secure aggregation: split, or nothing where its guarantee has no room."""
        ...

    def release(self, user: int, noise: int) -> None:
        """Give back a client's last upload, which is in no sum: it was made for a sum with this noise."""
        ...

    def vectors(self) -> FloatMatrix:
        """Every client's vector of the rounds, where the method keeps one."""
        ...

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """The scores of all users; `vectors` are those of the rounds."""
        ...


def vanishes(seed: int, user: int, round_number: int, share: float) -> bool:
    """Whether a client is gone before it has answered, by the draw that a simulation's `dropout` makes."""
    if share <= 0:
        return False
    with words_wrap_around():
        word, _, _, _ = words(seed, user, DROPOUT, round_number, 0)
    return bool(happens(word, share))


def in_catalogue(data: Interactions, ids: list[str]) -> tuple[Profiles, int]:
    """All histories in the numbers of the federation's catalogue, and how many items it does not have."""
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
