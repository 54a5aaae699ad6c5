"""FPL / FedeRank as a recommender: federated pair-wise learning, simulated for a whole population.

model = FPL(pi=0.3, triples="mean").fit(split.train)
model.recommend("A3EBHHCZO6V2A4", n=10)
"""

from __future__ import annotations

from federank.protocol.pairs.recipes import FPLSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.federated_pairs import FederatedPairs


class FPL(FederatedPairs):
    """Federated pair-wise learning to rank (Anelli et al., 2020-2022); see `FPLSettings`."""

    name = "fpl"
    settings_type = FPLSettings
    settings: FPLSettings

    @made_from(FPLSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings, as they are."""
        return self.settings
