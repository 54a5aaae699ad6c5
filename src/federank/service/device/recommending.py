"""Recommending on the device: the best items of the cached model that its owner does not have; no network.

A person who takes part with their history is scored by the vector of the rounds. One who takes part with an outward
profile alone, or has not played a round yet, is scored by the home vector: learnt here from the whole history with the
public item factors, kept until the model changes, never sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatVector
from federank.errors import BadState
from federank.protocol.messages import Broadcast
from federank.protocol.pairs.home import home_vector
from federank.service.device.federation import Model
from federank.service.device.round import recipe_of
from federank.service.device.state import Identity
from federank.service.device.store import DeviceStore


class Suggestion(NamedTuple):
    """One recommended item."""

    item: str
    title: str
    score: float


def recommend(store: DeviceStore, n: int) -> list[Suggestion]:
    """The n best items that the owner does not have."""
    identity = store.identity()
    factors, n_items = identity.facts.settings.factors, identity.facts.n_items
    model = store.model(n_items, factors)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank device` fetches one.")
    policy, _ = store.policy()
    at_home = policy.basis == "shared" or store.rounds() == 0
    vector = _home(store, identity, model) if at_home else store.vector(factors)
    scores = model.vectors @ vector + model.biases
    scores[store.profile()] = -np.inf
    # Of equal scores the smaller number comes first, as everywhere.
    best = np.argsort(-scores, kind="stable")[:n]
    catalogue = store.catalogue()
    return [
        Suggestion(catalogue.ids[item], catalogue.titles[item], float(scores[item]))
        for item in best
        if np.isfinite(scores[item])
    ]


def _home(store: DeviceStore, identity: Identity, model: Model) -> FloatVector:
    """The home vector for this model: the one that is kept, or a new one."""
    kept = store.home_vector(identity.facts.settings.factors, model.version)
    if kept is not None:
        return kept
    history = store.profile()
    everything = np.arange(identity.facts.n_items, dtype=np.int32)
    recipe = recipe_of(identity.facts, identity.seed, history)
    broadcast = Broadcast(0, model.version, everything, model.vectors, model.biases)
    vector = home_vector(recipe, identity.seed, identity.user, history, broadcast)
    store.write_home_vector(vector, model.version)
    return vector
