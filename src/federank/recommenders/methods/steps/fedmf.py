"""FedMF: matrix factorisation by gradients that are meant to be encrypted (Chai et al., 2020), for who has what.

    model = FedMF(rounds=100).fit(split.train)

1. The server tells everybody the item vectors.
2. A device keeps its owner's vector to itself. What the owner has counts 1, items drawn at random 0; the vector steps
   by the squared error, then the gradients of the item vectors are taken.
3. It sends those gradients: of the items that it has looked at, or of all items with zeros for the rest (`rows`), which
   the paper calls part text and full text.
4. The server adds them up and steps; each item's step is the mean over those who sent something of it.

The paper learns ratings, and encrypts the gradients so that the server reads their sum alone; nothing is encrypted
here. What the server would read from each is what an audit of `updates` tells, from their sums one of `sums`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from federank import checks
from federank.arrays import FloatVector, RealMatrix, RealVector
from federank.models.logistic import draw_examples
from federank.protocol.steps.device import Device, Message
from federank.protocol.steps.recipes import FederatedSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.federated_method import FederatedMethod

Rows = Literal["some", "all"]


@dataclass(frozen=True, kw_only=True)
class FedMFSettings(FederatedSettings):
    """What can be chosen about FedMF."""

    factors: int = 32
    """Length of the vectors that describe users and items."""
    rounds: int = 100
    """How many rounds are played; every device that is there takes part in each."""
    learning_rate: float = 0.5
    """Step of the owner's vector on the device."""
    item_rate: float = 5.0
    """Step of the item vectors at the server."""
    regulariser: float = 0.01
    """Pull of all vectors towards zero (lambda)."""
    negatives: int = 4
    """How many items are drawn for each that a person has, anew in every round."""
    local_epochs: int = 5
    """How many steps the owner's vector takes in a round."""
    rows: Rows = "some"
    """Whose gradients are sent: of some items, those looked at (part text), or of all, mostly zeros (full text)."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of all vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("factors", self.factors, 1, 1024)
        checks.positive("learning_rate", self.learning_rate)
        checks.positive("item_rate", self.item_rate)
        checks.within("regulariser", self.regulariser, 0, np.inf)
        checks.whole("negatives", self.negatives, 1)
        checks.whole("local_epochs", self.local_epochs, 1)
        checks.one_of("rows", self.rows, ("some", "all"))
        checks.positive("initial_scale", self.initial_scale)


class FedMF(FederatedMethod):
    """Federated matrix factorisation by gradients (Chai et al., 2020), with items drawn as disliked."""

    name = "fedmf"
    settings_type = FedMFSettings
    settings: FedMFSettings

    @made_from(FedMFSettings)
    def __init__(self) -> None: ...

    def first_shared(self, n_items: int, rng: np.random.Generator) -> Message:
        """Item vectors at random."""
        vectors = rng.normal(0, self.settings.initial_scale, (n_items, self.settings.factors))
        return {"vectors": vectors.astype(np.float32)}

    def first_state(self, device: Device) -> Message:
        """The owner's vector, at random."""
        return {"own": device.rng.normal(0, self.settings.initial_scale, self.settings.factors).astype(np.float32)}

    def compute(self, broadcast: Message, device: Device) -> Message:
        """Step the owner's vector, and take the gradients of the items that were looked at."""
        settings, own = self.settings, device.state["own"]
        drawn, labels = draw_examples(device.profile, device.n_items, settings.negatives, device.rng)
        looked_at = broadcast["vectors"][drawn]
        for _ in range(settings.local_epochs):
            error = looked_at @ own - labels
            own -= settings.learning_rate * (error @ looked_at / len(drawn) + settings.regulariser * own)
        error = looked_at @ own - labels
        items, places, counts = np.unique(drawn, return_inverse=True, return_counts=True)
        errors = np.bincount(places, weights=error).astype(np.float32)
        pulls = settings.regulariser * counts[:, None].astype(np.float32) * broadcast["vectors"][items]
        return {"items": items, "vectors": np.outer(errors, own) + pulls}

    def transmit(self, update: Message, device: Device) -> Message:
        """The gradients as they are, or of all items with zeros for those that were not looked at."""
        if self.settings.rows == "some":
            return update
        table = np.zeros((device.n_items, self.settings.factors), dtype=np.float32)
        table[update["items"]] = update["vectors"]
        return {"vectors": table}

    def aggregate(self, shared: Message, updates: Iterable[Message], round_number: int) -> Message:
        """Step by the sum of the gradients, over how many devices sent one of the item."""
        del round_number
        vectors = shared["vectors"]
        total: RealMatrix = np.zeros(vectors.shape)
        senders: RealVector = np.zeros(len(vectors))
        for update in updates:
            if "items" in update:
                total[update["items"]] += update["vectors"]
                senders[update["items"]] += 1
            else:
                total += update["vectors"]
                senders += update["vectors"].any(axis=1)
        step = self.settings.item_rate * total / np.maximum(senders, 1)[:, None]
        return {"vectors": (vectors - step).astype(np.float32)}

    def scores(self, broadcast: Message, device: Device) -> FloatVector:
        """How well each item fits the owner."""
        scores: FloatVector = broadcast["vectors"] @ device.state["own"]
        return scores
