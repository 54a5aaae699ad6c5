"""Settings of Frugal: its rules, which the method has too (method.py), and those of a simulation.

`messages` is a guarantee of each client, for its lifetime; `cohorts` divides the users, for its lifetime too, so that a
round needs only one cohort and every client still uploads `messages` times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from federank.checks import (
    check_fields,
    check_fraction,
    check_int,
    check_positive,
    check_range,
    to_float,
)
from federank.errors import SettingError
from federank.federation.method import AUTO, setting
from federank.methods.frugal.objective import Objective
from federank.privacy.accountant import mu_for
from federank.privacy.policy import Policy, SharedProfileSettings

DEFAULT_FACTORS, MOST_DEFAULT_FACTORS, DEFAULT_ACTIVITY, DEFAULT_POPULARITY = 64, 96, 0.3, 0.4
DEFAULT_SHRINKAGE, PRIVATE_SHRINKAGE = 0.95, 0.9
DEFAULT_MIN_SUPPORT = 5
"""Chosen on the validation parts of four data sets and of cities; see docs/frugal.md."""
_FEWEST_FACTORS, _PEOPLE_A_FACTOR, _ITEMS_A_FACTOR, _MANY_ITEMS_A_FACTOR = 8, 8, 16, 64
DEFAULT_RATE = 0.1

_OF_ADAM = {"learning_rate": None, "beta1": 0.9, "beta2": 0.999}
_NO_STEPS = "the server solves for the items in closed form, and takes no steps of Adam (server adam does)"

Step = Literal["spectral", "solve", "adam", "private"]
"""What the server does with the sums (server_update.py)."""


@dataclass(frozen=True, kw_only=True)
class FrugalRules:
    """Rules of a federation of Frugal, simulated or real."""

    messages: int = setting(5, 1)
    """Uploads per client, over its lifetime. A client that has sent them still downloads models."""
    min_support: int = setting(DEFAULT_MIN_SUPPORT, 1)
    """Minimum support: items with fewer users are not learnt and not recommended. The first upload then carries
    counts only. 1: all items, and no upload for counts."""
    factors: int = setting(AUTO, 1, 1024)
    """Number of latent factors.  [default: 64, and up to 96 for catalogues above 4,096 items; fewer for less than
    512 users or 1,024 items, at least 8]"""
    alpha: float = setting(0.0, 0, paper=True)
    """Confidence in observed items is 1 + alpha (Hu et al., 2008)."""
    unobserved_weight: float = setting(1.0, 0, 1, paper=True)
    """Confidence in unobserved items: 1 as published by FCF, 0 for the FPL papers' variant."""
    regulariser: float | None = setting(None, 0, expert=True)
    """L2 regularisation of all vectors (lambda).  [default: from the spectrum of the sums]"""
    shrinkage: float | None = setting(None, positive=True)
    """Without `regulariser`: lambda as a multiple of the smallest singular value that is kept.  [default: 0.95; 0.9
    with noise]"""
    activity: float | None = setting(None, 0, 1)
    """Down-weights active users: a user with n items has weight n^-activity.  [default: 0.3; 0 where alpha is above 0,
    or the server uses Adam]"""
    popularity: float | None = setting(None, 0, 1)
    """Down-weights popular items: an item with n users has weight n^-popularity (1 - 1/n).  [default: 0.4; 0 as
    above]"""
    damping: float = setting(1.0, positive=True, paper=True)
    """Step towards the solution in a round, as a fraction of the way; below 1 where alpha is above 0."""
    encoding: Literal["int8", "float32"] = "int8"
    """Encoding of item vectors for clients: int8 with one scale per row, or float32."""
    clip: float | None = setting(None, positive=True, expert=True)
    """Norm bound: an upload with a larger L2 norm is scaled down to it."""
    initial_scale: float = setting(0.1, positive=True, paper=True)
    """Standard deviation of the initial item vectors."""
    item_weights: Literal["none", "ridge"] = setting("none", expert=True)
    """Item-item weights published beside the vectors: none, or a ridge regression of each item on its nearest items,
    from the sums of all uploads. Clients send nothing more; docs/frugal.md has what the weights disclose."""
    most_shown: float | None = None
    """Exposure cap against malicious clients: no item is recommended to a larger share of users, as predicted by the
    model, and rows of sums are bounded.  [default: none; a federation with a helper has one]"""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model."""

    @property
    def step(self) -> Step:
        """What the server does with sums: from their spectrum where all confidences are alike."""
        alike = self.alpha == 0 and self.unobserved_weight == 1
        return "spectral" if alike and self.damping == 1 else "solve"

    @property
    def counts_first(self) -> bool:
        """Whether the first upload carries counts only."""
        return self.min_support > 1

    @property
    def objective(self) -> Objective:
        """What counts how much."""
        return Objective(np.float32(1 + self.alpha), np.float32(self.unobserved_weight))

    @property
    def shrinkage_used(self) -> float:
        """Lambda over the smallest singular value that is kept: as chosen, or as suits sums with or without noise."""
        if self.shrinkage is not None:
            return self.shrinkage
        return PRIVATE_SHRINKAGE if self.step == "private" else DEFAULT_SHRINKAGE

    @property
    def user_weight_exponent(self) -> float:
        """`activity`, as chosen or as suits the server step."""
        usual = DEFAULT_ACTIVITY if self.step == "spectral" else 0.0
        return usual if self.activity is None else self.activity

    @property
    def item_weight_exponent(self) -> float:
        """`popularity`, as chosen or as suits the server step."""
        usual = DEFAULT_POPULARITY if self.step == "spectral" else 0.0
        return usual if self.popularity is None else self.popularity

    @property
    def exposure_cap(self) -> float:
        """`most_shown`; 1 where there is none."""
        return 1.0 if self.most_shown is None else self.most_shown

    def check_rules(self) -> None:
        """Refuse values that no federation can have."""
        check_fields(self)
        if self.messages == 1 and self.counts_first:
            raise SettingError(
                f"messages is 1 and min_support {self.min_support}, but the first message then carries counts only; "
                "ask for 2 messages or more, or for a min_support of 1."
            )
        check_range("damping", self.damping, 0, 1)
        if self.item_weights == "ridge" and self.step != "spectral":
            raise SettingError(
                "item_weights is ridge, which needs sums over all clients without noise, a server that solves, alpha 0 "
                "and damping 1; leave it out, or what is named beside it."
            )
        for name in ("activity", "popularity"):
            if getattr(self, name) and self.step != "spectral":
                raise SettingError(
                    f"{name} is {getattr(self, name):g}, but weights need a server that solves, alpha 0, damping 1 "
                    "and messages that cover the full catalogue; leave it out."
                )
        if self.most_shown is None:
            return
        if not 0 < to_float("most_shown", self.most_shown, "a share of people") <= 1:
            raise SettingError(
                f"most_shown is {self.most_shown!r}; a share of people above 0 is needed, and at most 1 (no bound)."
            )
        if self.most_shown < 1 and self.step not in ("spectral", "private"):
            raise SettingError(
                f"most_shown is {self.most_shown:g}, but what people are shown follows from the model only where a "
                "server solves, alpha is 0, damping 1, and messages cover the full catalogue; leave it out."
            )


@dataclass(frozen=True, kw_only=True)
class FrugalSettings(FrugalRules, SharedProfileSettings):
    """Settings of a simulation of Frugal: its rules, and who takes part when."""

    cohorts: int = 1
    """Number of fixed groups of clients; a round invites one of them."""
    rounds: int | None = setting(None, expert=True)
    """Number of rounds.  [default: messages x cohorts, so that every client can use its quota]"""
    server: Literal["solve", "adam"] = setting("solve", paper=True)
    """Server step: solve for the item vectors, or one step of Adam."""
    learning_rate: float | None = setting(None, paper=True)
    """Learning rate of the server (Adam); refused where the server solves.  [default: 0.1]"""
    beta1: float = setting(0.9, paper=True)
    """Adam: decay of the first moment."""
    beta2: float = setting(0.999, paper=True)
    """Adam: decay of the second moment."""
    online: float = 1.0
    """Probability that a client is online when a round begins."""
    trace: str | None = None
    """CSV file `round,user` of which client is online when, repeated from its end; instead of `online`."""
    dropout: float = 0.0
    """Probability that a client drops out before its upload arrives; the upload counts towards its quota."""
    epsilon: float | None = None
    """Differential privacy of all uploads of a client together, against each of the two servers and anyone who sees all
    sums and models. Both servers add noise; see `delta`."""
    sigma: float | None = None
    """Instead of `epsilon`: standard deviation of each server's noise, as a multiple of the norm bound (0: sums of
    integers without noise). Uploads get unequal noise; their total privacy loss is as if each had this."""
    delta: float = 1e-6
    """With noise: the probability with which epsilon may fail."""
    rounding: Literal["drawn", "mean"] = "drawn"
    """With noise: numbers are rounded at random, as clients do (drawn), or taken as their mean (mean), which is faster
    for simulations of large federations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_rules()
        check_int("cohorts", self.cohorts, 1)
        if self.rounds is not None:
            check_int("rounds", self.rounds, 1)
            if self.messages * self.cohorts > self.rounds:
                raise SettingError(
                    f"messages is {self.messages} and cohorts {self.cohorts}, which takes "
                    f"{self.messages * self.cohorts} rounds, but rounds is {self.rounds}; ask for fewer messages or "
                    "cohorts, or for more rounds."
                )
        if self.item_weights == "ridge" and self.cohorts > 1:
            raise SettingError("item_weights is ridge, which needs sums over all clients; leave cohorts out.")
        if self.learning_rate is not None:
            check_positive("learning_rate", self.learning_rate)
        check_fraction("beta1", self.beta1)
        check_fraction("beta2", self.beta2)
        self._refuse_steps_of_adam()
        check_range("online", self.online, 0, 1)
        check_range("dropout", self.dropout, 0, 1)
        if not 0 < to_float("delta", self.delta, "a probability") < 1:
            raise SettingError(f"delta is {self.delta!r}; a probability above 0 and below 1 is needed.")
        if self.rounding == "mean" and not self.guarantees:
            raise SettingError("rounding is mean, but only messages of sums with noise are rounded; leave it out.")
        if self.guarantees:
            _refuse_beside_noise(self)

    @property
    def step(self) -> Step:
        """What the server does with sums."""
        return "private" if self.guarantees else "adam" if self.server == "adam" else super().step

    @property
    def counts_first(self) -> bool:
        """Whether the first message carries counts only; sums with noise begin with popularity in any case."""
        return super().counts_first and not self.guarantees

    def _refuse_steps_of_adam(self) -> None:
        for name, default in _OF_ADAM.items():
            if self.server == "solve" and getattr(self, name) != default:
                raise SettingError(
                    f"{name} is {getattr(self, name)!r}, but it has no effect: {_NO_STEPS}. Leave {name} out."
                )

    def without_effect(self) -> dict[str, str]:
        """The settings that do nothing beside the others, each with the reason."""
        idle = {} if self.server == "adam" else dict.fromkeys(_OF_ADAM, _NO_STEPS)
        if not self.guarantees:
            idle |= dict.fromkeys(("delta", "rounding"), "without epsilon or sigma sums carry no noise")
        if self.regulariser is not None:
            idle["shrinkage"] = "lambda does not follow the data, because a regulariser is named"
        return idle

    @property
    def guarantees(self) -> bool:
        """Whether sums carry noise (or would, at sigma 0), so that messages are those of private.py."""
        return self.sigma is not None or self.epsilon is not None

    def policy(self, pi: float) -> Policy:
        """What everyone allows who has made no choice of their own; the epsilon of noise is no part of it."""
        return Policy(sharing=self.sharing, pi=pi, item_epsilon=self.item_epsilon, basis="shared", budget=self.budget)

    @property
    def mu(self) -> float:
        """What all messages of a client may disclose together (accountant.py); infinite where there is no noise."""
        if self.sigma is not None:
            return math.sqrt(self.messages) / self.sigma if self.sigma > 0 else math.inf
        assert self.epsilon is not None, "only asked of settings with noise"
        return mu_for(self.epsilon, self.delta)


COHORTS = 10
"""Where a server averages, it does as in a simulation with this many cohorts: max(1/t, 1.5/COHORTS)."""


def factors_for(settings: FrugalRules, people: int | None, n_items: int) -> int:
    """The length of vectors for this many users (None where that is not known yet) and a catalogue of this size."""
    if settings.factors is not AUTO:
        return settings.factors
    filled = n_items // _ITEMS_A_FACTOR
    if people is not None:
        filled = min(filled, people // _PEOPLE_A_FACTOR)
    wanted = min(max(DEFAULT_FACTORS, n_items // _MANY_ITEMS_A_FACTOR), MOST_DEFAULT_FACTORS)
    return min(wanted, max(filled, _FEWEST_FACTORS), n_items)


_NOT_BESIDE_NOISE = {
    "cohorts": 1,
    "rounds": None,
    "alpha": 0.0,
    "unobserved_weight": 1.0,
    "regulariser": None,
    "activity": None,
    "popularity": None,
    "damping": 1.0,
    "server": "solve",
    "clip": None,
}
"""Settings of other ways to learn, and what they are where they say nothing."""


def _refuse_beside_noise(settings: FrugalSettings) -> None:
    """Refuse what a guarantee cannot be kept with, or what its recipe has chosen already."""
    if settings.sigma is not None:
        check_range("sigma", settings.sigma, 0, math.inf)
        if settings.epsilon is not None:
            raise SettingError("epsilon and sigma say the same thing in two ways; give one of them.")
    else:
        check_positive("epsilon", settings.epsilon or 0.0)
    for name, usual in _NOT_BESIDE_NOISE.items():
        if getattr(settings, name) != usual:
            raise SettingError(
                f"{name} is {getattr(settings, name)!r}, but sums with noise have a recipe of their own, in which "
                f"everyone sends each message in the same round; leave {name} out, or epsilon and sigma."
            )
    if settings.messages < 2:
        raise SettingError(
            "messages is 1, but sums with noise need 2 or more: the first message says what is popular, the others "
            "what people's items have in common."
        )
    if settings.factors is not None and settings.factors < 2:
        raise SettingError("factors is 1, but sums with noise need 2 or more: one of them is popularity.")
