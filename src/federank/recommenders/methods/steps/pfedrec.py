"""PFedRec: everybody's own score function, over item vectors that they fit to themselves (Zhang et al., 2023).

    model = PFedRec(rounds=100).fit(split.train)

1. The server tells everybody the item vectors.
2. A device keeps a linear score function to itself. It goes once over what its owner has and over items drawn at
   random: the score function steps, then the item vectors (models/logistic.py).
3. It sends its item vectors, all of them, and no more.
4. The server takes the mean.

Recommended is from what a device makes of the newest item vectors at home, by one more such pass: the paper's second
personalisation. The negatives are drawn from all that a person does not have in training; the authors' program leaves
out what is held out for the test as well, which a device cannot know (docs/baselines.md has what that is worth).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from federank import checks
from federank.arrays import FloatMatrix, FloatVector, RealMatrix
from federank.models.logistic import draw_examples, pass_over
from federank.protocol.steps.device import Device, Message
from federank.protocol.steps.recipes import FederatedSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.federated_method import FederatedMethod


@dataclass(frozen=True, kw_only=True)
class PFedRecSettings(FederatedSettings):
    """What can be chosen about PFedRec; the defaults are its authors'."""

    factors: int = 32
    """Length of the vectors that describe items."""
    rounds: int = 100
    """How many rounds are played; every device that is there takes part in each."""
    learning_rate: float = 0.1
    """Step of the score function."""
    item_rate: float = 80.0
    """Step of the item vectors, as a multiple of the learning rate and of the number of items."""
    negatives: int = 4
    """How many items are drawn for each that a person has, anew in every round."""
    local_epochs: int = 1
    """How often a device goes over its examples in a round."""
    batch_size: int = 256
    """How many examples make a step."""
    initial_scale: float = 1.0
    """Standard deviation of the first values of the item vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("factors", self.factors, 1, 1024)
        checks.positive("learning_rate", self.learning_rate)
        checks.within("item_rate", self.item_rate, 0, np.inf)
        checks.whole("negatives", self.negatives, 1)
        checks.whole("local_epochs", self.local_epochs, 1)
        checks.whole("batch_size", self.batch_size, 1)
        checks.positive("initial_scale", self.initial_scale)


class PFedRec(FederatedMethod):
    """Dual personalisation (Zhang et al., 2023): everybody's own score function and view of the items."""

    name = "pfedrec"
    sends = "tables"
    settings_type = PFedRecSettings
    settings: PFedRecSettings

    @made_from(PFedRecSettings)
    def __init__(self) -> None: ...

    def first_shared(self, n_items: int, rng: np.random.Generator) -> Message:
        """Item vectors at random, and the one score function that everybody starts with."""
        factors = self.settings.factors
        vectors = rng.normal(0, self.settings.initial_scale, (n_items, factors))
        return {"vectors": vectors.astype(np.float32)}

    def first_state(self, device: Device) -> Message:
        """The score function: a weight for each factor, and a bias; the same for all at first."""
        del device
        bound = 1 / np.sqrt(self.settings.factors)
        rng = np.random.default_rng([self.settings.seed, 0])
        return {"weights": rng.uniform(-bound, bound, self.settings.factors + 1).astype(np.float32)}

    def compute(self, broadcast: Message, device: Device) -> Message:
        """Fit the score function and the item vectors to the profile; the vectors are the message."""
        return {"vectors": self._fitted_to(device, broadcast["vectors"])}

    def aggregate(self, shared: Message, updates: Iterable[Message], round_number: int) -> Message:
        """The mean of everybody's item vectors."""
        del round_number
        total: RealMatrix = np.zeros(shared["vectors"].shape)
        count = 0
        for update in updates:
            total += update["vectors"]
            count += 1
        return {"vectors": (total / count).astype(np.float32)}

    def scores(self, broadcast: Message, device: Device) -> FloatVector:
        """The newest item vectors, fitted once more to the owner's history; nothing of it leaves."""
        vectors = self._fitted_to(device, broadcast["vectors"])
        scores: FloatVector = vectors @ device.state["weights"][:-1]
        return scores

    def _fitted_to(self, device: Device, told: FloatMatrix) -> FloatMatrix:
        """The item vectors as this device has them after its passes; its score function moves in place."""
        settings, vectors = self.settings, told.copy()
        rates = settings.learning_rate, settings.learning_rate * settings.item_rate * device.n_items
        gradient = np.empty(settings.factors + 1, dtype=np.float32)
        for _ in range(settings.local_epochs):
            items, labels = draw_examples(device.profile, device.n_items, settings.negatives, device.rng)
            errors = np.empty(len(items), dtype=np.float32)
            weights = device.state["weights"]
            pass_over(vectors, weights, items, labels, errors, gradient, settings.batch_size, *rates)
        return vectors
