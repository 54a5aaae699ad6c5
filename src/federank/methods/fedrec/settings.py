"""Recipes of federated rating prediction: FedRec (Lin et al., 2020), in the reading of its paper and of its code.

`PMFSettings` and `SVDPlusPlusSettings` are the settings of a simulation; `simulated_recipe` resolves them for a
population. `FedRecSettings` are those that real clients have too (method.py).
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

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector, LongVector
from federank._numerics.rows import inlined
from federank.checks import Settings, setting
from federank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class FedRecSettings:
    """Settings of simulations and of served federations; the defaults are the authors' values."""

    implicit: ClassVar[bool] = False  # SVD++: items have a second vector
    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Virtual ratings: first averages, later predictions (hybrid); the user's average; or none."""
    rho: float = setting(0.0, 0)
    """Number of virtual ratings per real rating, on items that the user has not rated."""
    sampling: Literal["fresh", "fixed"] = setting("fresh", paper=True)
    """Virtual items are drawn again in every round, as published, so that items of all rounds are the rated ones; or
    once per lifetime (fixed)."""
    t_predict: int = setting(5, 0, 10_000, paper=True)
    """Iterations before virtual ratings are predicted (T_predict; hybrid filling only)."""
    t_local: int = setting(15, 0, 10_000, paper=True)
    """Local passes over the user's ratings before virtual ratings are predicted (T_local; hybrid filling only)."""
    learning_rate: float | None = setting(None, positive=True)
    """Learning rate.  [default: the papers' values, 0.8 in batch style and 0.01 in stochastic style]"""
    decay: float = setting(0.9, positive=True, paper=True)
    """Factor of the learning rate after an iteration."""
    regulariser: float = setting(0.001, 0)
    """L2 regularisation of all vectors (lambda)."""
    initial_range: float = setting(0.01, positive=True, paper=True)
    """Initial vectors are uniform in a range of this width around zero."""
    item_gradients: Literal["before", "after"] = setting("before", paper=True)
    """Item gradients use the user's vector before its step (the authors' code) or after it (the paper)."""
    filling_start: Literal["late", "early"] = setting("late", paper=True)
    """Predicted virtual ratings begin with iteration T_predict + 2 (the authors' code) or T_predict (the paper)."""
    local_training: Literal["copy", "own"] = setting("copy", paper=True)
    """Local passes train a copy of the user's vector (the authors' code) or the vector itself (the paper)."""
    lowest: float = 1.0
    """Lowest possible rating."""
    highest: float = 5.0
    """Highest possible rating. Predictions are clipped to the range, in evaluation and recommendations only."""

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of Settings or of FederatedMethod, which are mixed with it
        if not self.lowest < self.highest:
            raise SettingError(
                f"Ratings are declared to lie between {self.lowest} and {self.highest}; a lowest and a greater highest "
                "are needed."
            )
        if self.rho > 0 and self.filling == "none":
            raise SettingError(f"rho is {self.rho:g}, but filling is none; choose average or hybrid, or rho 0.")


@dataclass(frozen=True, kw_only=True)
class RatingSettings(FedRecSettings, Settings):
    """Settings of a simulation of rating prediction."""

    style: Literal["stochastic", "batch"] = "stochastic"
    """One client per round, whose vector moves with every rating; or all clients, with mean gradients."""
    federated: bool = setting(True, paper=True)
    """Train in rounds of a federation, or centrally on all ratings."""
    factors: int = setting(20, 1)
    """Number of latent factors."""
    iterations: int = setting(100, 1)
    """Number of passes over all ratings."""
    client_rate: Literal["participation", "iteration"] = setting("participation", paper=True)
    """A client's learning rate falls when it takes part (the authors' code) or with iterations (the paper)."""
    local_ratings: Literal["rated", "all"] = setting("rated", paper=True)
    """Local passes go over the user's ratings (the authors' code), or also over the sampled items with the user's mean
    (all: the paper, Algorithm 3 with Eq. 7)."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
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


def rating_recipe(
    settings: Any,
    sizes: LongVector,
    n_items: int,
    *,
    style: str = "batch",
    federated: bool = True,
    client_rate: str = "iteration",
    local_ratings: str = "rated",
) -> RatingRecipe:
    """Work the settings out for users who have rated this many of `n_items` items; as clients of a server take part
    unless another style is named."""
    batch = style == "batch"
    participants = np.flatnonzero(sizes > 0).astype(np.int32)
    # With W beside U a client's step counts twice, so SVD++ in batch style has half the rate of PMF.
    default_rate = (0.4 if settings.implicit else 0.8) if batch else 0.01
    # The paper counts iterations from 1; t_predict + 2 there is t_predict + 1 here.
    start = settings.t_predict + 1 if settings.filling_start == "late" else max(settings.t_predict - 1, 0)
    wanted = np.floor(settings.rho * sizes + 1e-9)  # the last decimal of rho times a size is not to cost an item
    return RatingRecipe(
        seed=settings.seed,
        factors=settings.factors,
        federated=federated,
        batch=batch,
        implicit=settings.implicit,
        learning_rate=float(default_rate if settings.learning_rate is None else settings.learning_rate),
        decay=float(settings.decay),
        regulariser=np.float32(settings.regulariser),
        hybrid=settings.filling == "hybrid",
        predict_from=start,
        local_passes=settings.t_local,
        local_own=settings.local_training == "own",
        local_all=local_ratings == "all",
        after=settings.item_gradients == "after" and federated,
        rate_by_participation=client_rate == "participation" and federated and not batch,
        participants=participants,
        virtual=np.minimum(wanted, n_items - sizes).astype(np.int32),
        fixed=settings.sampling == "fixed",
        clients_per_round=len(participants) if batch else 1,
        rounds_per_epoch=1 if batch else len(participants),
    )


def simulated_recipe(settings: RatingSettings, sizes: LongVector, n_items: int) -> RatingRecipe:
    """The recipe of a simulation."""
    names = ("style", "federated", "client_rate", "local_ratings")
    return rating_recipe(settings, sizes, n_items, **{name: getattr(settings, name) for name in names})


@inlined
def rate_after(recipe: Any, times: Any) -> Any:
    """The learning rate once it has fallen this many times."""
    return np.float32(recipe.learning_rate * recipe.decay ** np.float64(times))


@inlined
def predicts(recipe: Any, iteration: Any) -> Any:
    """Whether this iteration's virtual ratings are predictions."""
    return recipe.hybrid and iteration >= recipe.predict_from
