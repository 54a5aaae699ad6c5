"""Pair-wise learning (FPL) on a device.

    own vector        that of the last round, unless the owner has taken back something that it was learnt from:
                      every Update carries the vector, so it is then drawn again
    computation       pairs are drawn from it, the own vector moves, gradients come out
    transmission      what may leave becomes the Update
    ledger            the Update is written down

They are the protocol's own (protocol/); the simulation plays the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.federation.client import (
    MOST_FACTORS,
    MOST_TRIPLES,
    ClientMethod,
    History,
    Model,
    Played,
    RoundVector,
    Rows,
    User,
    check_moved,
    integer,
    number,
    numbers_in_range,
    refuse_counting,
)
from federank.federation.rng import USER_FACTORS, normal_rows, words_wrap_around
from federank.methods.fpl.method import compute, home_vector, share
from federank.methods.fpl.settings import FPLSettings, Recipe, own_triples, recipe_for
from federank.methods.fpl.wire import (
    Broadcast,
    Private,
    broadcast_bytes,
    by_sign,
    check_update,
    decode_broadcast,
    encode,
)
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy


def settings_of(recipe: dict[str, Any], _n_items: int) -> FPLSettings:
    """The settings that a server announces; seed and pi are the client's own."""
    return FPLSettings(
        factors=integer(recipe.get("factors"), 1, MOST_FACTORS),
        order=recipe.get("order", "as-in-code"),
        mask=recipe.get("mask", "as-in-code"),
        triples=integer(recipe.get("triples"), 1, MOST_TRIPLES),
        most_triples=None if recipe.get("most_triples") is None else integer(recipe["most_triples"], 1, MOST_TRIPLES),
        learning_rate=number(recipe.get("learning_rate")),
        user_regulariser=number(recipe.get("user_regulariser")),
        positive_regulariser=number(recipe.get("positive_regulariser")),
        negative_regulariser=number(recipe.get("negative_regulariser")),
        initial_scale=number(recipe.get("initial_scale")),
    )


def read_rows(settings: FPLSettings, content: bytes, n_items: int) -> Rows:
    """Rows from the wire, once they are sure to be some."""
    broadcast = decode_broadcast(content, settings.factors, n_items)
    tables = {"vectors": broadcast.vectors, "biases": broadcast.biases}
    return Rows(broadcast.round_number, broadcast.items, Model(broadcast.version, tables))


def recipe_of(settings: FPLSettings, n_items: int, seed: int, history: IntVector) -> Recipe:
    """The federation's recipe for one client who takes part with these items; what may be sent is not its business."""
    own = replace(settings, seed=seed, clients_per_round=1)
    with np.errstate(over="ignore"):  # what is out of range becomes infinite here, and is refused where it is used
        return recipe_for(own, np.array([len(history)]), n_items, np.zeros(1))


def first_vector(settings: FPLSettings, seed: int, user: int) -> FloatVector:
    """The vector that a device begins with, before it has learnt anything."""
    scale, factors = settings.initial_scale, settings.factors
    vector: FloatVector = normal_rows(1, factors, seed=seed, purpose=USER_FACTORS, scale=scale, first_row=user)[0]
    return vector


def sharing_policy(policy: Policy) -> Policy:
    """As its owner chose it."""
    refuse_counting(policy)
    return policy


def messages(_settings: FPLSettings, _policy: Policy) -> int | None:
    """Uploads are not counted."""
    return None


def scores(_settings: FPLSettings, model: Model, vector: FloatVector) -> FloatVector:
    """The scores of all items."""
    scores: FloatVector = model.vectors @ vector + model.tables["biases"]
    return scores


def play(client: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record it in the ledger."""
    seed, user, settings, n_items, policy, taken, kept = client[:7]
    recipe = recipe_of(settings, n_items, seed, taken.profile)
    stands = kept.stands(policy.basis, taken.profile)
    vector = kept.values.copy() if stands else first_vector(settings, seed, user)
    triples = own_triples(settings, policy.triples)
    private = Private(user, vector, taken.profile, policy.pi, taken.allowed, triples, taken.lifelong)
    everything = np.arange(n_items, dtype=np.int32)
    broadcast = Broadcast(round_number, model.version, everything, model.vectors, model.tables["biases"])
    with words_wrap_around(), np.errstate(invalid="ignore", over="ignore"):
        gradients = compute(recipe, private, broadcast)
        update = share(recipe, private, round_number, gradients)
    with numbers_in_range():
        check_update(update, recipe.factors, n_items)
    check_moved(private.vector)
    ledger.record(round_number, taken, *by_sign(update))
    learnt = RoundVector(private.vector, policy.basis, frozenset(taken.profile.tolist()))
    return Played(learnt, encode(update), len(update.items), update.items)


def at_home(settings: FPLSettings, seed: int, user: int, history: History, model: Model) -> FloatVector:
    """The vector of the full history, learnt with the public item factors; it is never sent."""
    n_items = len(model.vectors)
    everything = np.arange(n_items, dtype=np.int32)
    broadcast = Broadcast(0, model.version, everything, model.vectors, model.tables["biases"])
    return home_vector(recipe_of(settings, n_items, seed, history.items), seed, user, history.items, broadcast)


FPL_CLIENT = ClientMethod(
    settings_of=settings_of,
    model_bytes=lambda settings, n_items: broadcast_bytes(n_items, settings.factors),
    read_rows=read_rows,
    first_vector=first_vector,
    sharing_policy=sharing_policy,
    messages=messages,
    play=play,
    home_vector=at_home,
    scores=scores,
    counts_messages=False,
    is_home_alone=False,
)
CLIENTS = {"fpl": FPL_CLIENT}
SECURE_CLIENTS: dict[str, ClientMethod] = {}
