"""Federations of ratings in the world: what one decides beside the recipe, and the scale that its ratings are on.

Rounds are of batch style: a client that takes part steps by the mean gradient over its own ratings, and an item by the
round's share of an iteration (aggregation.py; FedRec, 2020, Algorithms 1 and 2). The stochastic style has one client
per round, whose result the next one waits for: in the world that would be one device at a time, so it stays a matter of
simulation.

Clients come when they come, so an *iteration* is over once as many uploads were aggregated as there are clients; the
learning rate falls with iterations, and predicted virtual ratings begin with one. With `prior_count` 0,
`first_prediction` zero and everybody in every round, it is the simulation's.

The first model predicts every client's own mean rating (`first_prediction` mean): all items have one vector, of length
sqrt(m) with m the middle of the scale, and a client's first vector is solved from its ratings. Vectors of users and
items then have about the same length, so a step has a curvature of about the rating r = |U| |V|, and a learning rate
of 1 / highest does not diverge. The papers' 0.8 can: there the rate falls in time, because everybody takes
part in every round.

Filling, rho and sampling are suggestions: each device's owner decides (policies/policy.py). Where messages are sums
that no single server can open (sums.py), nothing needs hiding among virtual ratings: there are none, and a life has a
number of messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from federank.arrays import FloatVector
from federank.checks import one_of, positive, whole, within
from federank.errors import SettingError
from federank.protocol.ratings.recipes import PMFSettings

_CLOSE = 1e-4
"""How far from a step a 32-bit float may lie that stands for it."""


@dataclass(frozen=True, kw_only=True)
class RatingFederationSettings(PMFSettings):
    """What can be chosen about a federation that learns ratings by PMF."""

    style: Literal["batch"] = "batch"
    """Whoever takes part in a round steps by mean gradients."""
    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Suggested to devices: virtual ratings that are first averages, later predictions (hybrid), averages, or none."""
    rho: float = 1.0
    """Suggested to devices: virtual ratings for every rating a person has given."""
    sampling: Literal["fixed", "fresh"] = "fixed"
    """Suggested to devices: what gets a virtual rating is drawn once for life (fixed), or anew in every round, so that
    what comes back every time is what was rated (fresh)."""
    learning_rate: float | None = None
    """Size of a step.  [default: 1 / the highest rating, and half of that for svdpp]"""
    prior_count: float = 10.0
    """Items move as if so many more clients had reported a gradient of zero: those with few ratings move slowly."""
    first_prediction: Literal["mean", "zero"] = "mean"
    """What a new federation predicts: each client's own mean rating, or about zero, as published."""
    step: float | None = None
    """Smallest difference between two ratings: 1 for whole stars, 0.5 for half ones, 0 for any number; as in the data
    if not given."""
    messages: int | None = None
    """With --helper: how many messages a device sends in its life.  [default: 50, with noise 20]"""
    clip: float | None = None
    """With --helper: the bound of what one person's ratings can change, as the length of a message of gradients and
    counts; longer ones are scaled down.  [default: 64, with noise 8]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("prior_count", self.prior_count, 0, math.inf)
        one_of("first_prediction", self.first_prediction, ("mean", "zero"))
        if self.messages is not None:
            whole("messages", self.messages, 1)
        if self.clip is not None:
            positive("clip", self.clip)
        if self.step is not None:
            within("step", self.step, 0, self.highest - self.lowest)
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


class Scale(NamedTuple):
    """What ratings there are: from the lowest to the highest, in steps; a step of 0 is any number between them."""

    lowest: float
    highest: float
    step: float

    def __str__(self) -> str:
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"from {self.lowest:g} to {self.highest:g}{steps}"

    def why_not(self, value: float) -> str | None:
        """Why this is no rating here, in words that follow what was found; None where it is one."""
        if not math.isfinite(value) or not self.lowest <= value <= self.highest:
            return f"ratings go {self}"
        if self.step and abs((value - self.lowest) / self.step - round((value - self.lowest) / self.step)) > _CLOSE:
            whole = self.step == 1 and self.lowest == round(self.lowest)
            return f"ratings go {self}" + ("; there are no half stars here" if whole else "")
        return None


def step_of(ratings: FloatVector, lowest: float) -> float:
    """The largest usual step that these ratings keep to: 1, 0.5 or 0.1; 0 where they keep to none."""
    for step in (1.0, 0.5, 0.1):
        places = (ratings.astype(np.float64) - lowest) / step
        if np.all(np.abs(places - np.round(places)) < _CLOSE / step):
            return step
    return 0.0
