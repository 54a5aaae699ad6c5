"""FedMF: matrix factorisation by gradients that are meant to be encrypted (Chai et al., 2020), for who has what.

    model = FedMF(rounds=100).fit(split.train)

1. The server tells everyone the item vectors.
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
from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.compiling import compiled
from federank.federation.method import Device, FederatedSettings, Message
from federank.methods.federated_method import FederatedMethod
from federank.methods.recommender import made_from

# Logistic regression on items: a person's weights and item vectors, each stepped while the other stands still.


@compiled
def draw_examples(
    profile: IntVector, n_items: int, negatives: int, rng: np.random.Generator
) -> tuple[IntVector, FloatVector]:
    """What is learnt from in a pass, shuffled: everything of the profile, and for each this many items outside of it.

    Anyone who has the full catalogue learns from it alone.
    """
    count = len(profile)
    outside = negatives if count < n_items else 0
    items = np.empty(count * (1 + outside), dtype=np.int32)
    labels = np.zeros(len(items), dtype=np.float32)
    items[:count], labels[:count] = profile, 1
    for k in range(count, len(items)):
        item = int(rng.random() * n_items)
        while _holds(profile, item):
            item = int(rng.random() * n_items)
        items[k] = item
    for k in range(len(items) - 1, 0, -1):  # Fisher and Yates
        other = int(rng.random() * (k + 1))
        items[k], items[other] = items[other], items[k]
        labels[k], labels[other] = labels[other], labels[k]
    return items, labels


@compiled(allocates=False)
def _holds(profile: IntVector, item: int) -> bool:
    """Whether an ascending profile has an item."""
    low, high = 0, len(profile)
    while low < high:
        middle = (low + high) // 2
        if profile[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < len(profile) and profile[low] == item


@compiled(allocates=False)
def pass_over(
    vectors: FloatMatrix,
    weights: FloatVector,
    items: IntVector,
    labels: FloatVector,
    errors: FloatVector,
    gradient: FloatVector,
    batch: int,
    rate: float,
    item_rate: float,
) -> None:
    """One pass over the examples, in batches; `vectors` and `weights` (the bias last) are changed in place.

    `errors` and `gradient` are room to work in.
    """
    size = vectors.shape[1]
    for begin in range(0, len(items), batch):
        end = min(begin + batch, len(items))
        share = np.float32(1.0) / np.float32(end - begin)
        gradient[:] = 0
        for k in range(begin, end):
            error = _error(vectors[items[k]], weights, labels[k])
            for f in range(size):
                gradient[f] += error * vectors[items[k], f]
            gradient[size] += error
        for f in range(size + 1):
            weights[f] -= np.float32(rate) * share * gradient[f]
        # Every example is judged before any vector moves: an item may be in a batch twice.
        for k in range(begin, end):
            errors[k] = _error(vectors[items[k]], weights, labels[k])
        step = np.float32(item_rate) * share
        for k in range(begin, end):
            for f in range(size):
                vectors[items[k], f] -= step * errors[k] * weights[f]


@compiled(allocates=False, fastmath={"contract", "nsz", "reassoc"})  # sums in any order: in vector registers
def _error(vector: FloatVector, weights: FloatVector, label: float) -> float:
    """How far the probability is from the truth."""
    size = len(vector)
    score = weights[size]
    for f in range(size):
        score += vector[f] * weights[f]
    error: float = np.float32(1.0) / (np.float32(1.0) + np.exp(-score)) - label
    return error


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
    """How many items are drawn for each that a person has, again in every round."""
    local_epochs: int = 5
    """How many steps the owner's vector takes in a round."""
    rows: Rows = "some"
    """Whose gradients are sent: of some items, those looked at (part text), or of all, mostly zeros (full text)."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of all vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_int("factors", self.factors, 1, 1024)
        checks.check_positive("learning_rate", self.learning_rate)
        checks.check_positive("item_rate", self.item_rate)
        checks.check_range("regulariser", self.regulariser, 0, np.inf)
        checks.check_int("negatives", self.negatives, 1)
        checks.check_int("local_epochs", self.local_epochs, 1)
        checks.check_choice("rows", self.rows, ("some", "all"))
        checks.check_positive("initial_scale", self.initial_scale)


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
        residuals = settings.regulariser * counts[:, None].astype(np.float32) * broadcast["vectors"][items]
        return {"items": items, "vectors": np.outer(errors, own) + residuals}

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


# PFedRec: everyone's own score function, over item vectors that they fit to themselves (Zhang et al., 2023).


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
    """How many items are drawn for each that a person has, again in every round."""
    local_epochs: int = 1
    """How often a device goes over its examples in a round."""
    batch_size: int = 256
    """How many examples make a step."""
    initial_scale: float = 1.0
    """Standard deviation of the first values of the item vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_int("factors", self.factors, 1, 1024)
        checks.check_positive("learning_rate", self.learning_rate)
        checks.check_range("item_rate", self.item_rate, 0, np.inf)
        checks.check_int("negatives", self.negatives, 1)
        checks.check_int("local_epochs", self.local_epochs, 1)
        checks.check_int("batch_size", self.batch_size, 1)
        checks.check_positive("initial_scale", self.initial_scale)


class PFedRec(FederatedMethod):
    """Dual personalisation (Zhang et al., 2023): everyone's own score function and view of the items."""

    name = "pfedrec"
    sends = "tables"
    settings_type = PFedRecSettings
    settings: PFedRecSettings

    @made_from(PFedRecSettings)
    def __init__(self) -> None: ...

    def first_shared(self, n_items: int, rng: np.random.Generator) -> Message:
        """Item vectors at random, and the one score function that everyone starts with."""
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
        """The mean of everyone's item vectors."""
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
