"""PMF as a recommender: probabilistic matrix factorisation, federated as in FedRec or not.

model = PMF(style="batch", filling="hybrid", rho=3).fit(split.train)
model.predict(42, 50)
"""

from __future__ import annotations

from federank.protocol.ratings.recipes import PMFSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.methods.ratings import RatingFactors


class PMF(RatingFactors):
    """Probabilistic matrix factorisation (Mnih and Salakhutdinov, 2007; Lin et al., 2020); see `PMFSettings`."""

    name = "pmf"
    settings_type = PMFSettings
    settings: PMFSettings

    @made_from(PMFSettings)
    def __init__(self) -> None: ...
