"""What Frugal and FCF share: rounds of few messages, item vectors, and everybody's own vector solved at home."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions, Profiles
from federank.engines.conduct import Conduct
from federank.engines.squares.communication import count_squares_communication
from federank.engines.squares.compiled import vectors_at_home
from federank.engines.squares.federation import SquaresFederation
from federank.engines.training import train as play_epochs
from federank.errors import ModelError
from federank.protocol.policies.choices import AS_HISTORIES_ARE, Choices, Outwards, everyones_outward
from federank.protocol.squares.distribution import published
from federank.protocol.squares.private.plan import PrivatePlan, promise_of
from federank.protocol.squares.recipes import SquaresRecipe, SquaresSettings, squares_recipe
from federank.recommenders.choosing_people import ChoosingPeople
from federank.recommenders.identity import run_identity
from federank.recommenders.people.choosing import messages_allowed, refuse_coins
from federank.recommenders.people.shares import read_trace
from federank.recommenders.recommender import Arrays, restored_table
from federank.recommenders.stored.policies import choices_as_arrays, choices_from_arrays


class FewMessages(ChoosingPeople):
    """Scores x_u . y_i, learnt from squares by the rounds of a federation."""

    in_rounds = True
    learns_from = "interactions"
    item_vectors: FloatMatrix
    """As published: what devices have, and recommend from."""
    regulariser: float
    """lambda: the pull of a person's own vector towards zero."""
    item_weights: FloatVector
    """d: how much each item counts when a person's own vector is solved for."""
    user_vectors: FloatMatrix

    def squares(self) -> SquaresSettings:
        """The method's settings as those of few messages."""
        raise NotImplementedError

    def recipe(self, train: Interactions) -> SquaresRecipe:
        """The settings worked out for this population, with what everybody takes part with."""
        settings = self.squares()
        trace = None if settings.trace is None else read_trace(settings.trace, train)
        messages = messages_allowed(self.choices)
        outward = _outward(self.choices, settings.seed, train)
        sizes = train.profiles.sizes
        return squares_recipe(settings, sizes, train.n_items, messages=messages, outward=outward, trace=trace)

    def communication(self) -> dict[str, Any]:
        """What the run has sent, counted message by message."""
        data = self._fitted()
        return count_squares_communication(self.recipe(data), data.n_users, len(data), self.report["rounds"])

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The vector of somebody with this history, in closed form; nothing is sent."""
        starts = np.array([0, len(profile)], dtype=np.int64)
        vectors = vectors_at_home(self._alone(), *self._model(), Profiles(starts, profile))
        vector: FloatVector = vectors[0]
        return vector

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the whole catalogue for somebody with this vector."""
        scores: FloatVector = self.item_vectors @ vector
        return scores

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        chosen = self._ask_everybody(self.squares(), train)
        recipe = self.recipe(train)
        federation = SquaresFederation.established(self.squares(), recipe, train.profiles)
        identity = run_identity(self.name + chosen, self.settings, train)
        seconds = play_epochs(
            federation, recipe.rounds // recipe.cohorts, self._followed(federation, conduct), identity
        )
        self._follow(federation, conduct.threads)
        self.report |= {
            "seconds": seconds,
            "rounds": federation.round_number,
            "rounds_per_epoch": recipe.cohorts,
            "messages": int(federation.spent.max(initial=0)),
            "regulariser": self.regulariser,
            "skipped_users": int(train.n_users - len(recipe.participants)),
            "epochs": recipe.rounds // recipe.cohorts,
        }
        if recipe.private is not None:
            self.report |= promise(recipe.private, self.squares(), int(federation.spent.max(initial=0)))

    def _followed(self, federation: SquaresFederation, conduct: Conduct) -> Conduct:
        """The same conduct, with the model's vectors current whenever an epoch has been played."""
        then = conduct.after_epoch
        if then is None:
            return conduct

        def follow_first(number: int) -> None:
            self._follow(federation, conduct.threads)
            then(number)

        return replace(conduct, after_epoch=follow_first)

    def _follow(self, federation: SquaresFederation, threads: int) -> None:
        recipe = federation.recipe
        self.item_vectors = published(recipe, federation.item_vectors)
        self.regulariser, self.item_weights = float(federation.regulariser[0]), federation.weights
        self.user_vectors = vectors_at_home(recipe, *self._model(), federation.profiles, threads)

    def _model(self) -> tuple[FloatMatrix, FloatVector, float]:
        """What a device needs to solve for a vector."""
        return self.item_vectors, self.item_weights, self.regulariser

    def _alone(self) -> SquaresRecipe:
        """The recipe of one person at home: nobody else, and nothing is sent."""
        settings = replace(self.squares(), factors=self.item_vectors.shape[1])
        if settings.promises:  # solving at home needs no plan of noise
            settings = replace(settings, epsilon=settings.policy(0.5).epsilon, sigma=None, rounding="drawn")
        alone = replace(settings, cohorts=1, rounds=None, trace=None)
        return squares_recipe(alone, np.ones(1, dtype=np.int64), len(self.item_vectors))

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self.user_vectors[users] @ self.item_vectors.T
        return scores

    def _shared_arrays(self) -> Arrays:
        alone = np.array([self.regulariser])
        return {"item_vectors": self.item_vectors, "item_weights": self.item_weights, "regulariser": alone}

    def _private_arrays(self) -> Arrays:
        return {"user_vectors": self.user_vectors} | choices_as_arrays(self.choices)

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        factors = self.squares().factors or _columns(shared.get("item_vectors"))
        self.item_vectors = restored_table(shared, "item_vectors", (self.training.n_items, factors))
        self.user_vectors = restored_table(private, "user_vectors", (self.training.n_users, factors))
        weights = shared.get("item_weights")
        if weights is None or weights.dtype != np.float32 or weights.shape != (self.training.n_items,):
            raise ModelError("The model's folder lacks the weights of its items, or has them for other items.")
        self.item_weights, told = weights, shared.get("regulariser")
        if told is None or told.shape != (1,) or not np.isfinite(told).all():
            raise ModelError("The model's folder lacks its regulariser, which a person's own vector is solved with.")
        self.regulariser = float(told[0])
        self.choices = choices_from_arrays(private, self.training.n_users, self.squares().policy(0.5))


def _columns(table: NDArray[Any] | None) -> int:
    """How long the vectors of a table are; what is no table of vectors is refused by whoever takes it."""
    return table.shape[1] if table is not None and table.ndim == 2 else 0


def promise(plan: PrivatePlan, settings: SquaresSettings, messages: int) -> dict[str, Any]:
    """What may be said of a run's noise, for somebody who has sent so many messages."""
    return {
        "epsilon": promise_of(plan, messages, settings.delta),
        "delta": settings.delta,
        "sigmas": list(plan.sigmas(messages)),
        "against": "whoever runs one of the two servers, or sees every sum and every model",
        "adjacency": "a person's messages are replaced by zeros",
    }


def _outward(choices: Choices, seed: int, train: Interactions) -> Outwards:
    """What everybody takes part with; nothing to compute where that is everybody's whole history."""
    refuse_coins(choices)
    whole = all(
        kind.sharing == "sticky" and not kind.never_items and kind.budget is None and not kind.paused
        for kind in choices.kinds
    )
    if whole and np.all(choices.pi >= 1):
        return AS_HISTORIES_ARE
    return everyones_outward(choices, seed, train.profiles, train.n_items)
