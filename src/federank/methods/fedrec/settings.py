"""Recipes of federated rating prediction: FedRec (Lin et al., 2020), in the reading of its paper and of its code.

`PMFSettings` and `SVDPlusPlusSettings` are what a person chooses; `rating_recipe` works them out for a population.
An *iteration* shows every user's ratings about once, and the learning rate falls after each. In batch style it is one
round with all clients; in stochastic style it is n rounds with one client each, drawn with replacement.

The paper's text and the authors' code differ in five points. Each is a setting, whose first value is the code's:
the published figures come from it.

    item_gradients     `before`         V's gradients are taken with U as it was before its step, or `after` it
    client_rate        `participation`  a client's rate falls each time it takes part, or with every `iteration`
    filling_start      `late`           virtual ratings are predicted from iteration T_predict + 2 on, or T_predict
    local_training     `copy`           passes before a prediction train a copy of the user's vector, or its `own`
    local_ratings      `rated`          these passes go over the user's own ratings, or over `all`, virtual ones too
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector, LongVector
from federank._numerics.rows import inlined
from federank.checks import Settings, check_range, setting
from federank.errors import SettingError
from federank.federation.method import Scale


@dataclass(frozen=True, kw_only=True)
class RatingSettings(Settings):
    """What can be chosen about learning to predict ratings; the defaults are the authors' values."""

    implicit: ClassVar[bool] = False  # SVD++: items have a second vector
    style: Literal["stochastic", "batch"] = "stochastic"
    """One client a round, whose vector moves with every rating; or all clients, with mean gradients."""
    federated: bool = True
    """Through the rounds of a federation; or with everyone's ratings in one place."""
    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Virtual ratings: first averages, later predictions (hybrid); the user's average; or none."""
    rho: float = setting(0.0, 0)
    """Virtual ratings for every rating a user has given, on items that the user has not rated."""
    sampling: Literal["fresh", "fixed"] = setting("fresh", paper=True)
    """Draw these items again in every round, as published, so that what comes back every time is what was rated; or
    once for its lifetime (fixed), so that it is not."""
    t_predict: int = setting(5, 0, paper=True)
    """Iterations before virtual ratings are predicted (T_predict; hybrid filling only)."""
    t_local: int = setting(15, 0, paper=True)
    """Passes over the own ratings before virtual ratings are predicted (T_local; hybrid filling only)."""
    factors: int = setting(20, 1)
    """Length of the vectors that describe users and items."""
    iterations: int = setting(100, 1)
    """How many times every user's ratings are met."""
    learning_rate: float | None = setting(None, positive=True)
    """Size of a step; the papers' values if not given: 0.8 in batch style, 0.01 in stochastic style."""
    decay: float = setting(0.9, positive=True, paper=True)
    """What the learning rate is multiplied with after an iteration."""
    regulariser: float = setting(0.001, 0)
    """Pull of all vectors towards zero (lambda)."""
    initial_range: float = setting(0.01, positive=True, paper=True)
    """First values of all vectors are uniform in a range of this width around zero."""
    item_gradients: Literal["before", "after"] = setting("before", paper=True)
    """Item gradients use the user's vector before its step (the authors' code) or after it (the paper)."""
    client_rate: Literal["participation", "iteration"] = setting("participation", paper=True)
    """A client's learning rate falls when it takes part (the authors' code) or with iterations (the paper)."""
    filling_start: Literal["late", "early"] = setting("late", paper=True)
    """Predicted virtual ratings begin with iteration T_predict + 2 (the authors' code) or T_predict (the paper)."""
    local_training: Literal["copy", "own"] = setting("copy", paper=True)
    """Local passes train a copy of the user's vector (the authors' code) or the vector itself (the paper)."""
    local_ratings: Literal["rated", "all"] = "rated"
    """Local passes go over the user's ratings (the authors' code), or also over the sampled items with the user's mean
    (all: the paper, Algorithm 3 with Eq. 7)."""
    lowest: float = 1.0
    """The lowest rating there can be."""
    highest: float = 5.0
    """The highest rating there can be; predictions are clipped to the range, in tests and answers only."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Names the run: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lowest < self.highest:
            raise SettingError(
                f"Ratings are declared to lie between {self.lowest} and {self.highest}; a lowest and a greater highest "
                "are needed."
            )
        if self.rho > 0 and self.filling == "none":
            raise SettingError(f"rho is {self.rho:g}, but filling is none; choose average or hybrid, or rho 0.")
        if self.rho > 0 and not self.federated:
            raise SettingError(
                f"rho is {self.rho:g}, but without a federation nothing is sent that virtual ratings could hide; "
                "choose rho 0, or federated."
            )

    def without_effect(self) -> dict[str, str]:
        """The settings that do nothing beside the others, each with the reason."""
        predicted = ("t_predict", "t_local", "filling_start", "local_training", "local_ratings")
        idle: dict[str, str] = {}
        if self.rho == 0:
            filling = () if self.filling == "none" else ("filling",)
            idle = dict.fromkeys((*filling, "sampling", *predicted), "rho is 0, so there are no virtual ratings")
        elif self.filling != "hybrid":
            idle = dict.fromkeys(predicted, f"filling is {self.filling}, so virtual ratings are not predicted")
        if self.style == "batch" or not self.federated:
            idle["client_rate"] = "it belongs to the stochastic style of a federation"
        return idle


@dataclass(frozen=True, kw_only=True)
class PMFSettings(RatingSettings):
    """What can be chosen about PMF."""


@dataclass(frozen=True, kw_only=True)
class SVDPlusPlusSettings(RatingSettings):
    """What can be chosen about SVD++."""

    implicit: ClassVar[bool] = True
    style: Literal["stochastic"] = "stochastic"
    """One client a round, whose vectors move with every rating."""


class RatingRecipe(NamedTuple):
    """Settings worked out for a population; plain numbers and arrays that every engine can use."""

    seed: int
    factors: int
    federated: bool
    batch: bool
    implicit: bool  # SVD++: items have a second vector
    learning_rate: float
    decay: float
    regulariser: np.float32
    hybrid: bool
    predict_from: int  # the iteration, from 0, whose virtual ratings are the first to be predicted
    local_passes: int
    local_own: bool  # local passes move the user's own vectors, not a copy
    local_all: bool  # they go over virtual ratings too
    after: bool  # item gradients are taken after the user's step
    rate_by_participation: bool
    participants: IntVector  # the users who have rated anything
    virtual: IntVector  # per user: how many items get a virtual rating in a round
    fixed: bool  # these are the same items in every round
    clients_per_round: int
    rounds_per_epoch: int  # an epoch is what the paper calls an iteration


def rating_recipe(settings: RatingSettings, sizes: LongVector, n_items: int) -> RatingRecipe:
    """Work the settings out for users who have rated this many of `n_items` items."""
    batch = settings.style == "batch"
    participants = np.flatnonzero(sizes > 0).astype(np.int32)
    # With W beside U a device's step counts twice, so SVD++ in batch style has half the rate of PMF.
    default_rate = (0.4 if settings.implicit else 0.8) if batch else 0.01
    # The paper counts iterations from 1; t_predict + 2 there is t_predict + 1 here.
    start = settings.t_predict + 1 if settings.filling_start == "late" else max(settings.t_predict - 1, 0)
    wanted = np.floor(settings.rho * sizes + 1e-9)  # the last decimal of rho times a size is not to cost an item
    return RatingRecipe(
        seed=settings.seed,
        factors=settings.factors,
        federated=settings.federated,
        batch=batch,
        implicit=settings.implicit,
        learning_rate=float(default_rate if settings.learning_rate is None else settings.learning_rate),
        decay=float(settings.decay),
        regulariser=np.float32(settings.regulariser),
        hybrid=settings.filling == "hybrid",
        predict_from=start,
        local_passes=settings.t_local,
        local_own=settings.local_training == "own",
        local_all=settings.local_ratings == "all",
        after=settings.item_gradients == "after" and settings.federated,
        rate_by_participation=settings.client_rate == "participation" and settings.federated and not batch,
        participants=participants,
        virtual=np.minimum(wanted, n_items - sizes).astype(np.int32),
        fixed=settings.sampling == "fixed",
        clients_per_round=len(participants) if batch else 1,
        rounds_per_epoch=1 if batch else len(participants),
    )


@inlined
def rate_after(recipe: Any, times: Any) -> Any:
    """The learning rate once it has fallen this many times."""
    return np.float32(recipe.learning_rate * recipe.decay ** np.float64(times))


@inlined
def predicts(recipe: Any, iteration: Any) -> Any:
    """Whether this iteration's virtual ratings are predictions."""
    return recipe.hybrid and iteration >= recipe.predict_from


# Federations of ratings in the world: what one decides beside the recipe, and the scale that its ratings are on.


_CLOSE = 1e-4
"""How far from a step a 32-bit float may lie that stands for it."""


@dataclass(frozen=True, kw_only=True)
class RatingFederationSettings(PMFSettings):
    """What can be chosen about a federation that learns ratings by PMF."""

    style: Literal["batch"] = "batch"
    """Anyone who takes part in a round steps by mean gradients."""
    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Suggested to devices: virtual ratings that are first averages, later predictions (hybrid), averages, or none."""
    rho: float = setting(1.0, 0)
    """Suggested to devices: virtual ratings for every rating a person has given."""
    sampling: Literal["fixed", "fresh"] = "fixed"
    """Suggested to devices: what gets a virtual rating is drawn once for its lifetime (fixed), or again in every
    round, so that
    what comes back every time is what was rated (fresh)."""
    learning_rate: float | None = setting(None, positive=True)
    """Size of a step.  [default: 1 / the highest rating, and half of that for svdpp]"""
    prior_count: float = setting(10.0, 0)
    """Items move as if this many more clients had reported a gradient of zero: those with few ratings move slowly."""
    first_prediction: Literal["mean", "zero"] = "mean"
    """What a new federation predicts: each client's own mean rating, or about zero, as published."""
    step: float | None = None
    """Smallest difference between two ratings: 1 for whole stars, 0.5 for half ones, 0 for any number; as in the data
    if not given."""
    messages: int | None = setting(None, 1)
    """With --helper: how many messages a device sends in its life.  [default: 50, with noise 20]"""
    clip: float | None = setting(None, positive=True)
    """With --helper: the bound of what one person's ratings can change, as the length of a message of gradients and
    counts; longer ones are scaled down.  [default: 64, with noise 8]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None:
            check_range("step", self.step, 0, self.highest - self.lowest)
            steps = (self.highest - self.lowest) / self.step if self.step else 1.0
            if abs(steps - round(steps)) > _CLOSE:
                raise SettingError(
                    f"step is {self.step:g}, which does not lead from {self.lowest:g} to {self.highest:g}; choose one "
                    "that does, or 0 for any number."
                )

    @property
    def stable_rate(self) -> float:
        """The learning rate where none is given; with W beside U a client's step counts twice."""
        return (0.5 if self.implicit else 1.0) / max(abs(self.lowest), abs(self.highest))

    @property
    def first_length(self) -> float:
        """The length of the first item vectors, where these predict means."""
        return math.sqrt((abs(self.lowest) + abs(self.highest)) / 2)

    @property
    def scale(self) -> Scale:
        """What ratings there are."""
        return Scale(self.lowest, self.highest, 0.0 if self.step is None else self.step)


@dataclass(frozen=True, kw_only=True)
class SVDPlusPlusFederationSettings(RatingFederationSettings):
    """What can be chosen about a federation that learns ratings by SVD++."""

    implicit: ClassVar[bool] = True


def step_of(ratings: FloatVector, lowest: float) -> float:
    """The largest usual step that these ratings keep to: 1, 0.5 or 0.1; 0 where they keep to none."""
    for step in (1.0, 0.5, 0.1):
        places = (ratings.astype(np.float64) - lowest) / step
        if np.all(np.abs(places - np.round(places)) < _CLOSE / step):
            return step
    return 0.0
