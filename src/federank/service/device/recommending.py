"""Recommending on the device: the best items of the cached model that its owner does not have; no network.

A person who takes part with their history is scored by the vector of the rounds. One who takes part with an outward
profile alone, or has not played a round yet, is scored by the home vector: learnt here from the whole history with the
public item factors, kept until the model changes, never sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatVector
from federank.protocol.messages import Broadcast
from federank.protocol.pairs.home import home_vector
from federank.service.device.round import recipe_of
from federank.service.device.state import (
    Identity,
    Model,
    catalogue_of,
    home_of,
    identity_of,
    keep_home,
    model_of,
    policy_of,
    profile_of,
    rounds_of,
    vector_of,
)
from federank.service.device.store import BadState, DeviceStore


class Suggestion(NamedTuple):
    """One recommended item."""

    item: str
    title: str
    score: float


def recommend(store: DeviceStore, n: int) -> list[Suggestion]:
    """The n best items that the owner does not have."""
    identity = identity_of(store)
    factors, n_items = identity.facts.settings.factors, identity.facts.n_items
    model = model_of(store, n_items, factors)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank device` fetches one.")
    policy, _ = policy_of(store)
    at_home = policy.basis == "shared" or rounds_of(store) == 0
    vector = _home(store, identity, model) if at_home else vector_of(store, factors)
    scores = model.vectors @ vector + model.biases
    scores[profile_of(store)] = -np.inf
    # Of equal scores the smaller number comes first, as everywhere.
    best = np.argsort(-scores, kind="stable")[:n]
    catalogue = catalogue_of(store)
    return [
        Suggestion(catalogue.ids[item], catalogue.titles[item], float(scores[item]))
        for item in best
        if np.isfinite(scores[item])
    ]


def _home(store: DeviceStore, identity: Identity, model: Model) -> FloatVector:
    """The home vector for this model: the one that is kept, or a new one."""
    kept = home_of(store, identity.facts.settings.factors, model.version)
    if kept is not None:
        return kept
    history = profile_of(store)
    everything = np.arange(identity.facts.n_items, dtype=np.int32)
    recipe = recipe_of(identity.facts, identity.seed, history)
    broadcast = Broadcast(0, model.version, everything, model.vectors, model.biases)
    vector = home_vector(recipe, identity.seed, identity.user, history, broadcast)
    keep_home(store, vector, model.version)
    return vector
