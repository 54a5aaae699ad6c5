"""FCF as a recommender: federated collaborative filtering, simulated for a whole population.

Each round every device solves for its own factors and uploads a row for every item of the catalogue; the server
adds the uploads up and takes one step (models/fcf.py). After the last step the devices solve once more, so that
everyone's own factors belong to the model as it is.

A device's upload is dense: as many numbers as the whole model has, each round, whatever the length of the history.
With `unobserved_weight` 0 the rows of what a user does not have are all zero, so the upload spells the history out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from federank import checks
from federank.arrays import FloatMatrix, IntVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.errors import Diverged
from federank.models.fcf import Adam, Objective, server_step, solve_users, summed_uploads
from federank.protocol.draws import ITEM_FACTORS
from federank.protocol.initial import normal_rows
from federank.recommenders.constructor import made_from
from federank.recommenders.recommender import Arrays, Recommender, restored_table

_FLOAT_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class FCFSettings:
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
        for name in ("factors", "rounds"):
            checks.whole(name, getattr(self, name), 1)
        for name in ("regulariser", "learning_rate", "initial_scale"):
            checks.positive(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            checks.share(name, getattr(self, name))
        checks.within("alpha", self.alpha, 0, inf)
        checks.within("unobserved_weight", self.unobserved_weight, 0, 1)
        checks.seed(self.seed)


class FCF(Recommender):
    """Federated collaborative filtering (Ammad-ud-din et al., 2019); see `FCFSettings`."""

    name = "fcf"
    settings_type = FCFSettings
    settings: FCFSettings
    can_use = ("after_epoch",)
    item_factors: FloatMatrix
    user_factors: FloatMatrix

    @made_from(FCFSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        """Play the rounds; `after_epoch` is called with each round's number while the model is whole."""
        chosen = self.settings
        objective = Objective(
            np.float32(1 + chosen.alpha), np.float32(chosen.unobserved_weight), np.float32(chosen.regulariser)
        )
        items = normal_rows(
            train.n_items, chosen.factors, seed=chosen.seed, purpose=ITEM_FACTORS, scale=chosen.initial_scale
        )
        memory = Adam(np.zeros_like(items), np.zeros_like(items), 0)
        begin = time.perf_counter()
        users = solve_users(objective, items, train.profiles)
        for number in range(1, chosen.rounds + 1):
            uploads = summed_uploads(objective, items, users, train.audiences)
            items, memory = server_step(
                objective,
                items,
                uploads,
                memory,
                learning_rate=chosen.learning_rate,
                beta1=chosen.beta1,
                beta2=chosen.beta2,
            )
            users = solve_users(objective, items, train.profiles)
            if not (np.isfinite(items).all() and np.isfinite(users).all()):
                raise Diverged(
                    f"By round {number:,} the factors are no longer finite numbers: learning_rate "
                    f"{chosen.learning_rate:g} is too large for this data; try a smaller one."
                )
            self.item_factors, self.user_factors = items, users
            if conduct.after_epoch is not None:
                conduct.after_epoch(number)
        self.report |= {
            "seconds": time.perf_counter() - begin,
            "epochs": chosen.rounds,
            "communication": _communication(train, chosen.factors, chosen.rounds),
        }

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self.user_factors[users] @ self.item_factors.T
        return scores

    def _shared_arrays(self) -> Arrays:
        return {"item_factors": self.item_factors}

    def _private_arrays(self) -> Arrays:
        return {"user_factors": self.user_factors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self.item_factors = restored_table(shared, "item_factors", (self.training.n_items, self.settings.factors))
        self.user_factors = restored_table(private, "user_factors", (self.training.n_users, self.settings.factors))


def _communication(train: Interactions, factors: int, rounds: int) -> dict[str, Any]:
    """What crosses the wire: gradients of the whole catalogue upwards, the whole model and its Y'Y downwards.

    An epoch is one round of everybody. The papers' cost is the rows an epoch moves, downwards and upwards; each round
    changes every row, so sending only what changed would save nothing.
    """
    uploads, downloads = train.n_users * rounds, train.n_users * (rounds + 1)  # the last solve needs the last model
    gram_rows = factors
    up = _traffic(uploads, train.n_items, factors, rounds)
    down = _traffic(downloads, train.n_items + gram_rows, factors, rounds)
    return {
        "rounds": rounds,
        "uploads": uploads,
        "downloads": downloads,
        "up": up,
        "down_dense": down,
        "down_changed": down,
        "papers": {
            "cce": 2 * train.n_users * train.n_items,
            "freshness": 1,
            "normalised_freshness": 1 / len(train),
        },
    }


def _traffic(messages: int, rows: int, factors: int, rounds: int) -> dict[str, float]:
    total = messages * rows
    return {
        "floats_per_device_per_round": rows * factors,
        "rows": total,
        "bytes": total * factors * _FLOAT_BYTES,
        "rows_per_round": total / rounds,
        "bytes_per_round": total * factors * _FLOAT_BYTES / rounds,
    }
