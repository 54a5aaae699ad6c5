"""FCF: federated collaborative filtering (Ammad-ud-din et al., 2019), as a special case of few messages.

Each round every device solves for its own vector and sends its message; the server adds them up and takes one step of
Adam (protocol/squares/). After the last step the devices solve once more, so that everyone's own vector belongs to the
model as it is.

A message means a row for every item of the catalogue, whatever the length of the history. With `unobserved_weight` 0
the rows of what a user does not have are all zero, so the message spells the history out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from federank import checks
from federank.engines.complexity import cost_figures
from federank.engines.squares.operations import fcf_cost, fcf_of_paper
from federank.protocol.policies.sharing import OutwardSettings
from federank.protocol.squares.recipes import SquaresSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.few_messages import FewMessages


@dataclass(frozen=True, kw_only=True)
class FCFSettings(OutwardSettings):
    """What can be chosen about federated collaborative filtering."""

    factors: int = 20
    """Length of the vectors that describe users and items."""
    rounds: int = 50
    """How many times all devices upload and the server takes a step."""
    alpha: float = 1.0
    """How much surer it is that users like what they have than that they dislike the rest: confidence 1 + alpha."""
    unobserved_weight: float = 1.0
    """Confidence that users dislike what they do not have: 1 as published, 0 for the variant in the FPL tables."""
    regulariser: float = 1.0
    """Pull of all vectors towards zero (lambda)."""
    learning_rate: float = 0.1
    """Size of the server's steps (Adam)."""
    beta1: float = 0.9
    """How long the server remembers the direction of past gradients (Adam)."""
    beta2: float = 0.999
    """How long the server remembers the size of past gradients (Adam)."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of the item vectors."""
    seed: int = 1
    """Names the run: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("factors", self.factors, 1, 1024)
        checks.whole("rounds", self.rounds, 1)
        checks.positive("regulariser", self.regulariser)
        self.as_squares()

    def as_squares(self) -> SquaresSettings:
        """The federation of few messages that takes the same steps: one message of everybody a round, Adam."""
        same = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "rounds"}
        return SquaresSettings(**same, messages=self.rounds, server="adam", broadcast="float32")


class FCF(FewMessages):
    """Federated collaborative filtering (Ammad-ud-din et al., 2019); see `FCFSettings`."""

    name = "fcf"
    settings_type = FCFSettings
    settings: FCFSettings

    @made_from(FCFSettings)
    def __init__(self) -> None: ...

    def squares(self) -> SquaresSettings:
        """The settings as those of few messages."""
        return self.settings.as_squares()

    def complexity(self) -> dict[str, float]:
        """What a round costs a device and the server, counted, beside the formulas of FedRec's authors for it."""
        data = self._fitted()
        profiles = [data.profiles.of(int(user)) for user in np.flatnonzero(data.profiles.sizes)]
        size, (items, factors) = len(data) / len(profiles), self.item_vectors.shape
        formula = fcf_of_paper(size=size, users=len(profiles), items=items, factors=factors)
        return cost_figures(fcf_cost(self.item_vectors, profiles), formula)
