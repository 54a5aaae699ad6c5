"""Recommending on the device: the best items of the cached model that its owner does not have; no network.

Where few messages are sent, or ratings, everybody is scored by the home vector: solved for here from the whole history
and the public item vectors, kept until the model or the history changes, never sent. In pair-wise learning a person who
takes part with their history is scored by the vector of the rounds; one who takes part with an outward profile alone,
or has not played a round yet, by the home vector, learnt in some steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatVector
from federank.errors import BadState
from federank.protocol.ratings.federations import Scale
from federank.service.device.methods.method import Model
from federank.service.device.state import Identity
from federank.service.device.store.store import DeviceStore


class Suggestion(NamedTuple):
    """One recommended item."""

    item: str
    title: str
    score: float


def recommend(store: DeviceStore, n: int) -> list[Suggestion]:
    """The n best items that the owner does not have."""
    identity = store.identity()
    facts = identity.facts
    model = store.model(facts)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank device` fetches one.")
    policy, _ = store.policy()
    at_home = facts.rules.is_home_alone or policy.basis == "shared" or store.rounds() == 0
    vector = home_vector(store, identity, model) if at_home else store.vector(facts.factors)
    scores = model.vectors @ vector
    if len(model.biases):
        scores = scores + model.biases
    scores[store.profile()] = -np.inf
    if facts.scale is not None:
        # Predictions are told within the range; an item that nobody has told anything of has none.
        scores = np.where(model.weights > 0, scores, -np.inf)
    # Of equal scores the smaller number comes first, as everywhere.
    best = np.argsort(-scores, kind="stable")[:n]
    catalogue = store.catalogue()
    return [
        Suggestion(catalogue.ids[item], catalogue.titles[item], _told(float(scores[item]), facts.scale))
        for item in best
        if np.isfinite(scores[item])
    ]


def _told(score: float, scale: Scale | None) -> float:
    return score if scale is None else min(max(score, scale.lowest), scale.highest)


def home_vector(store: DeviceStore, identity: Identity, model: Model) -> FloatVector:
    """The home vector for this model: the one that is kept, or a new one."""
    facts = identity.facts
    kept = store.home_vector(facts.factors, model.version)
    if kept is not None:
        return kept
    vector = facts.rules.home_vector(
        facts.settings, facts.n_items, identity.seed, identity.user, store.history(), model
    )
    store.write_home_vector(vector, model.version)
    return vector
