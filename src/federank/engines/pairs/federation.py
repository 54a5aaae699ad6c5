"""A federation in memory: the shared model, the devices' private state, and how far the rounds have come.

What an engine works on. The two halves are kept apart, as they are on disk: `item_*` is the server's, `user_vectors`
and `profiles` are the devices'. Rows are padded (see models/rows.py); the padding stays zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.data.interactions import Profiles
from federank.engines.federated import EngineName, Open, Tables
from federank.engines.pairs.kernels import Run
from federank.engines.pairs.triples import Histories, histories_of
from federank.models.rows import padded_width
from federank.protocol.draws import USER_FACTORS
from federank.protocol.initial import first_items, normal_rows
from federank.protocol.pairs.aggregation import Shared, first_moments, no_moments
from federank.protocol.pairs.recipes import FPLSettings, Recipe


@dataclass(eq=False)
class Federation:
    """Server and devices of a simulation between two rounds."""

    recipe: Recipe
    profiles: Profiles
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix
    round_number: int = 0
    mean: FloatMatrix = field(default_factory=no_moments)  # what the server's step remembers, where it does
    square: FloatMatrix = field(default_factory=no_moments)

    @cached_property
    def histories(self) -> Histories:
        """The devices' profiles as the compiled engine wants them."""
        return histories_of(self.profiles, len(self.item_biases), self.recipe)

    @property
    def run(self) -> Run:
        """What the compiled engine's kernels are handed."""
        width = (0,) * self.item_vectors.shape[1]
        return Run(self.recipe, self.histories, self.item_vectors, self.item_biases, self.user_vectors, width)

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds make an epoch."""
        return self.recipe.rounds_per_epoch

    @property
    def steps_per_round(self) -> float:
        """How many triples a round learns from on average."""
        return self.recipe.clients_per_round * float(np.mean(self.recipe.triples[self.recipe.participants]))

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        from federank.engines.pairs.engines import ENGINES  # made of functions on federations: looked up late

        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        remembered = {"mean": self.mean, "square": self.square} if self.recipe.adam else {}
        return Tables(
            server={"item_vectors": self.item_vectors, "item_biases": self.item_biases} | remembered,
            devices={"user_vectors": self.user_vectors},
        )

    @property
    def shared(self) -> Shared:
        """What the server holds, as the protocol speaks of it: a copy."""
        vectors = self.item_vectors[:, : self.recipe.factors].copy()
        return Shared(vectors, self.item_biases.copy(), self.round_number, self.mean.copy(), self.square.copy())

    def take(self, shared: Shared) -> None:
        """Keep what the server holds now; tables stay where they are, so that whoever looks at them sees it."""
        self.item_vectors[:, : self.recipe.factors] = shared.vectors
        self.item_biases[:] = shared.biases
        self.mean, self.square, self.round_number = shared.mean, shared.square, shared.round_number

    def why_diverged(self) -> str:
        """What is to blame if the factors are no longer finite numbers."""
        rate = float(self.recipe.learning_rate)
        return f"learning_rate {rate:g} is too large for this data; try a smaller one."

    @classmethod
    def established(cls, settings: FPLSettings, recipe: Recipe, profiles: Profiles, n_items: int) -> Federation:
        """A federation before its first round: the server and every device draw their first values."""
        scale, factors, seed = settings.initial_scale, settings.factors, settings.seed
        width = padded_width(factors)
        vectors, biases = first_items(
            n_items, factors, seed=seed, scale=scale, biases=settings.initial_biases, width=width
        )
        return cls(
            recipe,
            profiles,
            vectors,
            biases,
            normal_rows(len(profiles.starts) - 1, factors, seed=seed, purpose=USER_FACTORS, scale=scale, width=width),
            mean=first_moments(recipe, n_items),
            square=first_moments(recipe, n_items),
        )
