"""A device's part of one round: computation, transmission and the ledger, with nothing sent yet.

    outward profile   what the owner's policy lets the device take part with
    own vector        that of the last round, unless the owner has taken back something that it was learnt from:
                      every Update carries the vector, so it is then drawn anew
    computation       pairs are drawn from it, the own vector moves, gradients come out
    transmission      what may leave becomes the Update
    ledger            the Update is written down

They are the protocol's own (protocol/); the simulation plays the same. The result is kept on the disk as one
whole by life.py before anything goes out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from federank.arrays import FloatVector, IntVector
from federank.errors import BadAnswer, BadMessage
from federank.protocol.draws import USER_FACTORS, words_wrap_around
from federank.protocol.initial import normal_rows
from federank.protocol.ledger import Ledger
from federank.protocol.messages import Broadcast, Private, Update, check_update
from federank.protocol.pairs.computation import compute
from federank.protocol.pairs.recipes import Recipe, recipe_for
from federank.protocol.pairs.transmission import share
from federank.protocol.policy import Outward, Policy, outward
from federank.service.device.federation import Facts, Model
from federank.service.device.state import Identity, RoundVector


class Played(NamedTuple):
    """What a round leaves on the device: its new vector, and the Update that may go out."""

    vector: RoundVector
    update: Update


def recipe_of(facts: Facts, seed: int, history: IntVector) -> Recipe:
    """The federation's recipe for one person who takes part with these items; what may be sent is not its business."""
    settings = replace(facts.settings, seed=seed, clients_per_round=1)
    with np.errstate(over="ignore"):  # what is out of range becomes infinite here, and is refused where it is used
        return recipe_for(settings, np.array([len(history)]), facts.n_items, np.zeros(1))


def first_vector(facts: Facts, seed: int, user: int) -> FloatVector:
    """The vector that a device begins with, before it has learnt anything."""
    scale, factors = facts.settings.initial_scale, facts.settings.factors
    vector: FloatVector = normal_rows(1, factors, seed=seed, purpose=USER_FACTORS, scale=scale, first_row=user)[0]
    return vector


def can_take_part(taken: Outward, policy: Policy, n_items: int) -> bool:
    """Whether pairs can be drawn and their owner lets them: neither paused, nor nothing, nor everything to show."""
    return not policy.paused and 0 < len(taken.profile) < n_items


def play(
    identity: Identity,
    policy: Policy,
    history: IntVector,
    kept: RoundVector,
    model: Model,
    ledger: Ledger,
    round_number: int,
) -> Played | None:
    """Play a round and record it in the ledger; nothing where the owner's policy leaves nothing to take part with."""
    facts = identity.facts
    taken = outward(policy, identity.seed, identity.user, history, facts.n_items, ledger.really_liked())
    if not can_take_part(taken, policy, facts.n_items):
        return None
    recipe = recipe_of(facts, identity.seed, taken.profile)
    stands = kept.stands(policy.basis, taken.profile)
    vector = kept.values.copy() if stands else first_vector(facts, identity.seed, identity.user)
    private = Private(identity.user, vector, taken.profile, policy.pi, taken.allowed, facts.triples, taken.lifelong)
    everything = np.arange(facts.n_items, dtype=np.int32)
    broadcast = Broadcast(round_number, model.version, everything, model.vectors, model.biases)
    with words_wrap_around(), np.errstate(invalid="ignore", over="ignore"):
        gradients = compute(recipe, private, broadcast)
        update = share(recipe, private, round_number, gradients)
    try:
        check_update(update, recipe.factors, facts.n_items)
    except BadMessage as reason:
        raise BadAnswer(
            f"With this model and recipe the device's numbers run out of range ({reason}); nothing was sent."
        ) from reason
    if not np.isfinite(private.vector).all():
        raise BadAnswer("With this model and recipe the device's vector runs out of range; nothing was sent.")
    ledger.record(round_number, taken, update)
    learnt = RoundVector(private.vector, policy.basis, frozenset(taken.profile.tolist()))
    return Played(learnt, update)
