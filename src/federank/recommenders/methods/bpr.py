"""BPR-MF: the centralised method that FPL is compared with.

The same maths, draws and steps, but with everyone's history in one place: the next pair may be anybody's, and every
gradient is used. Users are drawn in proportion to their activity, so that every training interaction is equally
likely (Rendle et al., 2009), or uniformly, as the code of the FPL authors did; drawn uniformly, BPR-MF is FPL with
one client a round, one pair and pi = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.errors import SettingError
from federank.protocol.pairs.recipes import FPLSettings, recipe_for
from federank.recommenders.constructor import made_from
from federank.recommenders.factors import PairwiseFactors


@dataclass(frozen=True, kw_only=True)
class BPRSettings:
    """What can be chosen about centralised pair-wise learning."""

    factors: int = 20
    """Length of the vectors that describe users and items."""
    learning_rate: float = 0.05
    """Size of a step."""
    user_draw: Literal["activity", "uniform"] = "activity"
    """Draw users in proportion to their number of interactions, or each alike."""
    epochs: int = 20
    """Passes over the data: an epoch has as many steps as there are training interactions."""
    seed: int = 1
    """Names the run: the same seed gives the same model."""
    user_regulariser: float = 1 / 20
    """Pull of the user vector towards zero, as a multiple of the learning rate."""
    positive_regulariser: float = 1 / 20
    """Pull of a positive item's vector towards zero, as a multiple of the learning rate."""
    negative_regulariser: float = 1 / 200
    """Pull of a negative item's vector towards zero, as a multiple of the learning rate."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of all vectors."""
    initial_biases: Literal["normal", "zero"] = "normal"
    """First values of the item biases: drawn like the vectors, or zero."""

    def __post_init__(self) -> None:
        if self.user_draw not in ("activity", "uniform"):
            raise SettingError(f"user_draw is {self.user_draw!r}; it can be activity or uniform.")
        self.as_fpl()

    def as_fpl(self) -> FPLSettings:
        """The federation that takes the same steps: one client a round, one pair, everything sent."""
        return FPLSettings(**vars(self), pi=1.0, clients_per_round="1", triples="1")


class BPR(PairwiseFactors):
    """Bayesian personalised ranking with matrix factorisation (Rendle et al., 2009)."""

    name = "bpr"
    settings_type = BPRSettings
    settings: BPRSettings

    @made_from(BPRSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings of the federation that takes the same steps."""
        return self.settings.as_fpl()

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        settings = self.pairs()
        recipe = recipe_for(settings, train.profiles.sizes, train.n_items, np.ones(train.n_users))
        self._run(settings, recipe, train, conduct)
