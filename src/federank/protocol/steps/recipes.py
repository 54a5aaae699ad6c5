"""The settings that every method with messages of its own has, and what they come to for a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector
from federank.checks import whole, within
from federank.protocol.draws import DROPOUT, ONLINE, happens, words, words_wrap_around
from federank.protocol.policies.choices import Outwards
from federank.protocol.policies.sharing import OutwardSettings


@dataclass(frozen=True, kw_only=True)
class FederatedSettings(OutwardSettings):
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
        whole("rounds", self.rounds, 1)
        whole("seed", self.seed, 0, 2**32 - 1)
        within("online", self.online, 0, 1)
        within("dropout", self.dropout, 0, 1)


class StepsRecipe(NamedTuple):
    """What is played: who may take part with what."""

    n_items: int
    rounds: int
    seed: int
    online: float
    dropout: float
    participants: IntVector  # those who have something to take part with, ascending
    messages: IntVector  # how many messages each person allows in their life
    outward: Outwards


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
