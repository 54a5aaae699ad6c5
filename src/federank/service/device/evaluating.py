"""Federated evaluation: one item is held back, and whether the federation would have found it is told, deniably.

An owner who agrees lets the device hold one item of the history back for life: it is in nothing that the device learns
from or sends. After a round the device works a vector out at home without it, looks whether the item is among the first
ten, and tells the server yes or no by randomised response (protocol/randomised_response.py): each answer is wrong with
probability 1/4. It answers `MOST_ANSWERS` times in its life; what all of them give away together is epsilon 5.5 about
one item.

Where the federation is of ratings, a rating is held back. How far its prediction is off, as a share of the scale, is
rounded at random to all or nothing, so that the mean over many devices stays what it is, and then told likewise: yes
means near. What many of them say together is the mean absolute error (MAE). A fair coin, which tells nothing of
anybody, decides for each answer whether it is about that share or its square: together the squares are the RMSE. An
answer is one or the other, so both cost a device no more than one of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np

from federank.errors import NoAnswer, Refused
from federank.protocol.randomised_response import SQUARED, answered
from federank.service.device.methods.method import Model
from federank.service.device.requests.client import Client
from federank.service.device.state import Identity
from federank.service.device.store.store import DeviceStore

MOST_ANSWERS = 5
FIRST = 10
_CHANCE = random.SystemRandom().random


def found(store: DeviceStore, identity: Identity, model: Model, held_back: int) -> bool:
    """Whether the held-back item is among the first ten that this device would recommend without knowing it."""
    facts, history = identity.facts, store.training_history()
    vector = facts.rules.home_vector(facts.settings, facts.n_items, identity.seed, identity.user, history, model)
    scores = model.vectors @ vector
    if len(model.biases):
        scores = scores + model.biases
    scores[history.items] = -np.inf
    return bool(held_back in np.argsort(-scores, kind="stable")[:FIRST])


def near(
    store: DeviceStore, identity: Identity, model: Model, held_back: int, chance: float, *, is_squared: bool = False
) -> bool:
    """Whether the held-back rating is predicted well, rounded at random: surely where it is met, never a scale off."""
    facts, history, whole = identity.facts, store.training_history(), store.history()
    assert facts.scale is not None, "ratings are held back where items are rated"
    vector = facts.rules.home_vector(facts.settings, facts.n_items, identity.seed, identity.user, history, model)
    told = float(model.vectors[held_back] @ vector) if model.weights[held_back] else float(history.ratings.mean())
    low, high = facts.scale.lowest, facts.scale.highest
    actual = float(whole.ratings[np.searchsorted(whole.items, held_back)])
    off = abs(min(max(told, low), high) - actual) / (high - low)
    return chance >= (off * off if is_squared else off)


def tell(
    store: DeviceStore,
    client: Client,
    identity: Identity,
    note: Callable[[str], None],
    chance: Callable[[], float] = _CHANCE,
) -> bool:
    """Answer once about the model at hand, where the owner agreed and answers are left; whether it was counted."""
    held_back, version = store.held_back(), store.model_version()
    if held_back is None or not store.may_answer(version, MOST_ANSWERS):
        return False
    model = store.model(identity.facts)
    if model is None:
        return False
    is_rating = identity.facts.scale is not None
    is_squared = is_rating and chance() < 0.5
    truth = (
        near(store, identity, model, held_back, chance(), is_squared=is_squared)
        if is_rating
        else found(store, identity, model, held_back)
    )
    told = {"version": version, "hit": answered(truth, chance())} | ({"measure": SQUARED} if is_squared else {})
    store.write_answer(version)  # counted before it leaves: what may have left has left
    body = json.dumps(told).encode()
    try:
        client.request("POST", "/hits", body, attempts=1, headers={"Content-Type": "application/json"})
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        note(f"The answer about version {version} was not counted ({reason})")
        return False
    how = "how near it predicts the rating that is held back" if is_rating else "whether it finds the item held back"
    note(f"Told the server about version {version}, deniably, {how}.")
    return True
