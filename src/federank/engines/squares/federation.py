"""A federation of few messages, in memory: the shared model, how many messages everybody has sent, and how far it is.

What an engine works on. `item_vectors`, `regulariser`, `sketch`, `mean` and `square` are the server's (see
protocol/squares/aggregation.py); profiles and `spent` are the devices'. A device keeps no vector between rounds: it is
solved anew from the history whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank.data.interactions import Profiles
from federank.engines.federated import EngineName, Open, Tables
from federank.protocol.policies.choices import outward_profiles
from federank.protocol.squares.aggregation import SquaresShared, first_shared
from federank.protocol.squares.recipes import SquaresRecipe, SquaresSettings


@dataclass(eq=False)
class SquaresFederation:
    """Server and devices of a simulation between two rounds."""

    recipe: SquaresRecipe
    profiles: Profiles  # whole histories
    item_vectors: FloatMatrix
    regulariser: RealVector  # one number
    sketch: RealMatrix
    mean: FloatMatrix
    square: FloatMatrix
    weights: FloatVector
    counts: RealVector
    heard: RealVector  # one number: how many messages the sketch stands for
    spent: IntVector  # messages that each device has sent
    round_number: int = 0

    @classmethod
    def established(cls, settings: SquaresSettings, recipe: SquaresRecipe, profiles: Profiles) -> SquaresFederation:
        """A federation before its first round."""
        first = first_shared(recipe, settings.initial_scale)
        spent = np.zeros(len(profiles.starts) - 1, dtype=np.int32)
        pull, heard = np.array([first.regulariser]), np.array([first.heard])
        server = first.vectors, pull, first.sketch, first.mean, first.square, first.weights, first.counts, heard
        return cls(recipe, profiles, *server, spent)

    @cached_property
    def outward(self) -> Profiles:
        """What everybody takes part with."""
        return outward_profiles(self.recipe.outward, self.profiles)

    @property
    def shared(self) -> SquaresShared:
        """What the server holds, as the protocol speaks of it."""
        return SquaresShared(
            self.item_vectors,
            float(self.regulariser[0]),
            self.sketch,
            self.mean,
            self.square,
            self.weights,
            self.counts,
            float(self.heard[0]),
            self.round_number,
        )

    def take(self, shared: SquaresShared) -> None:
        """Keep what the server holds now."""
        self.item_vectors, self.sketch = shared.vectors, shared.sketch
        self.mean, self.square = shared.mean, shared.square
        self.weights, self.counts = shared.weights, shared.counts
        self.regulariser, self.heard = np.array([shared.regulariser]), np.array([shared.heard])
        self.round_number = shared.round_number

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds it takes until everybody could send one message."""
        return self.recipe.cohorts

    @property
    def steps_per_round(self) -> float:
        """How many interactions a round learns from on average."""
        return float(self.outward.sizes[self.recipe.participants].sum()) / self.recipe.cohorts

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        from federank.engines.squares.engines import ENGINES  # made of functions on federations: looked up late

        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        server = ("item_vectors", "regulariser", "sketch", "mean", "square", "weights", "counts", "heard")
        return Tables({name: getattr(self, name) for name in server}, {"spent": self.spent})

    def why_diverged(self) -> str:
        """What is to blame if the item vectors are no longer finite numbers."""
        if self.recipe.step == "adam":
            return f"learning_rate {self.recipe.learning_rate:g} is too large for this data; try a smaller one."
        if self.recipe.step == "solve":
            return "damping is too large for this alpha, or the regulariser too small; try another."
        return "initial_scale or clip is too small for 32-bit numbers; leave it out."
