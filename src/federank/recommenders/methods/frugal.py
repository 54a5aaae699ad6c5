"""Frugal: a handful of messages in a lifetime, simulated for a whole population.

model = Frugal(messages=5).fit(split.train)
model.recommend("A3EBHHCZO6V2A4", n=10)

Two losses share the promise of `messages`, policies, cohorts and availability; a Frugal is made as one of two classes.
`squares` (the default): each device solves for its own vector at home, and the server solves for the items from two
sums (protocol/squares/). `pairs`: FPL's loss; each device learns its own vector from pairs, and the server takes a step
of Adam with the sum of all (protocol/pairs/). It needs more messages to get as far. Either way everybody is recommended
to from a vector that is made at home from the whole history, whatever their policy lets out.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.engines.pairs.replay import participations
from federank.errors import SettingError
from federank.protocol.frugal import FrugalSettings
from federank.protocol.pairs.recipes import FPLSettings, Recipe
from federank.protocol.squares.distribution import attendance
from federank.protocol.squares.recipes import DEFAULT_FACTORS, SquaresSettings, factors_for, squares_recipe
from federank.recommenders.constructor import made_from
from federank.recommenders.federated_pairs import FederatedPairs
from federank.recommenders.few_messages import FewMessages
from federank.recommenders.people.choosing import messages_allowed, refuse_coins
from federank.recommenders.people.shares import read_trace
from federank.recommenders.recommender import Arrays, Recommender


class Frugal(Recommender):
    """Few messages; see `FrugalSettings`. What is made is the class of its loss."""

    name = "frugal"
    settings_type = FrugalSettings
    settings: FrugalSettings
    in_rounds = True
    learns_from = "interactions"
    searched: ClassVar = {
        "factors": (16, 32, 64, 96, 128),
        "shrinkage": (0.6, 0.8, 0.95, 1.1),
        "activity": (0.0, 0.15, 0.3, 0.5),
        "popularity": (0.0, 0.2, 0.4, 0.5),
    }
    __signature__ = inspect.signature(FrugalSettings)  # what an editor shows, in the place of `__new__`'s

    def __new__(cls, **settings: Any) -> Self:
        """One of the two below, by the loss."""
        by_loss: type[Any] = FrugalPairs if settings.get("loss") == "pairs" else FrugalSquares
        made: Self = super().__new__(by_loss if cls is Frugal else cls)
        return made

    @made_from(FrugalSettings)
    def __init__(self) -> None: ...

    # The class of the loss has these; a Frugal that has none of them is never made.
    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        raise NotImplementedError

    def _score_users(self, users: IntVector) -> FloatMatrix:
        raise NotImplementedError

    def _shared_arrays(self) -> Arrays:
        raise NotImplementedError

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        raise NotImplementedError


class FrugalSquares(FewMessages, Frugal):
    """Frugal that learns squares, solved from sums."""

    def squares(self) -> SquaresSettings:
        """The settings, as they are."""
        return self.settings


class FrugalPairs(FederatedPairs, Frugal):
    """Frugal that learns pairs, with Adam at the server."""

    learns_from = "triples"
    searched: ClassVar = {"item_pull": (2.0, 6.0, 20.0, 60.0), "learning_rate": (0.02, 0.05, 0.1), "factors": (20, 64)}

    def pairs(self) -> FPLSettings:
        """The settings as those of pair-wise learning."""
        people, items = self._fitted().n_users, self._fitted().n_items
        return self.settings.as_pairs(factors_for(self.settings, people, items, most=DEFAULT_FACTORS))

    def recipe(self, train: Interactions) -> Recipe:
        """The recipe of pairs, in which everybody takes part when it is their turn and they have a message left."""
        refuse_coins(self.choices)
        recipe, settings = super().recipe(train), self.settings
        trace = None if settings.trace is None else read_trace(settings.trace, train)
        promised = squares_recipe(
            settings,
            train.profiles.sizes,
            train.n_items,
            messages=messages_allowed(self.choices),
            outward=recipe.outward,
            trace=trace,
        )
        able = np.intersect1d(recipe.participants, promised.participants).astype(np.int32)
        if not len(able):
            raise SettingError(
                "Nobody can take part: those who allow a message have nothing to take part with, or the whole "
                "catalogue. More history, or policies that share more, are needed."
            )
        there = attendance(promised, train.n_users)
        always = bool(there[:, able].all())
        return recipe._replace(
            participants=able,
            clients_per_round=len(able),
            rounds_per_epoch=settings.cohorts,
            trace=recipe.trace if always else there,
        )

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        super()._learn(train, conduct)
        sent = participations(self.recipe(train), train.n_users, self.report["rounds"])
        self.report |= {"messages": int(sent.max()), "epochs": self.pairs().epochs}


# To those who use them there is one Frugal.
FrugalSquares.__name__ = FrugalPairs.__name__ = Frugal.__name__
