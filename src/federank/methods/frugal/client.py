"""Few messages (Frugal) on a device: its own vector in closed form, and at most `messages` messages in its lifetime.

    computation       the vector that explains the shared profile best, and one number an item
    transmission      weighted and clipped; every item is named, so that what is named tells nothing
    ledger            the message is written down: the how-many-th it is, and which items stood for the history

Where items need a minimum support, those without a weight in the model have none. The first message carries counts, and
so does any other while no item is supported, or where a secure round asks for counts. Others cover the supported items.

Nothing is kept between rounds. All that leaves is a function of the shared profile, so what the owner's policy holds
back is in no message. The maths are the protocol's own (protocol/squares/); the simulation plays the same.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import SettingError
from federank.federation.client import (
    MOST_FACTORS,
    MOST_MESSAGES,
    MOST_SUPPORT,
    ClientMethod,
    History,
    Model,
    Played,
    Random,
    RoundVector,
    Rows,
    SecureClientMethod,
    Terms,
    User,
    clipped_message,
    integer,
    number,
    numbers_in_range,
    solved,
    split,
)
from federank.methods.frugal.losses import FrugalSettings
from federank.methods.frugal.method import (
    FrugalBroadcast,
    FrugalPrivate,
    FrugalUpdate,
    check_frugal_update,
    compute_frugal,
    count_unit,
    covered,
    covered_items,
    dense,
    flat,
    is_count,
    own_vector,
    rows_of,
    send,
)
from federank.methods.frugal.private import directions_at_home, one_message
from federank.methods.frugal.settings import FrugalRecipe, frugal_recipe
from federank.methods.frugal.wire import decode_frugal_broadcast, encode_frugal_update, frugal_broadcast_bytes
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, SharedProfile
from federank.secagg.config import PRIVATE, SPECTRAL
from federank.secagg.round_config import model_digest
from federank.secagg.upload import rounding_chances

_NO_BIASES: FloatVector = np.zeros(0, dtype=np.float32)


def private_message(
    terms: Terms, vectors: FloatMatrix, weights: FloatVector, profile: IntVector, random: Random = os.urandom
) -> IntVector:
    """The message of the plan's stage that the round asks for; after the first it covers the supported items."""
    offer, known, rows = terms.offer, None, terms.config.items
    if offer.stage:
        items = covered_items(terms.config.min_support, weights)
        known, rows = directions_at_home(vectors[items], weights[items]), len(items)
        profile = covered(items, profile)
    return one_message(offer.stage, rows, profile, known, rounding_chances(offer.length, random))


def spectral_message(terms: Terms, update: FrugalUpdate, random: Random = os.urandom) -> IntVector:
    """Frugal's own message in integers, clipped to the federation config's length; counts in units that are exact."""
    if is_count(update):
        return (update.strengths * np.float32(count_unit(terms.config.items))).astype(np.int32)
    return clipped_message(terms, flat(dense(update)), random)


def is_asked_for_counts(settings: FrugalSettings, weights: FloatVector, spent: int, terms: Terms | None) -> bool:
    """Whether a message is to carry counts: in a secure round its stage says so, else the first one does."""
    if settings.min_support == 1:
        return False
    if terms is not None:
        return terms.config.is_counting(terms.offer.stage)
    return not spent or not weights.any()


def settings_of(recipe: dict[str, Any], n_items: int) -> FrugalSettings:
    """The settings that a server's recipe says."""
    clip = recipe.get("clip")
    settings = FrugalSettings(
        factors=integer(recipe.get("factors"), 1, MOST_FACTORS),
        messages=integer(recipe.get("messages"), 1, MOST_MESSAGES),
        min_support=integer(recipe.get("min_support", 1), 1, MOST_SUPPORT),
        alpha=number(recipe.get("alpha")),
        unobserved_weight=number(recipe.get("unobserved_weight")),
        activity=number(recipe.get("activity")),
        clip=None if clip is None else number(clip),
    )
    _alone(settings, n_items)  # more factors than items are refused
    return settings


def model_bytes(settings: FrugalSettings, n_items: int) -> int:
    """No model of this catalogue is longer on the wire: all rows as they are, and their numbers beside them."""
    factors = int(settings.factors or 0)
    return frugal_broadcast_bytes(n_items, factors, whole=True, as_codes=False, weighted=True) + 4 * n_items


def read_rows(settings: FrugalSettings, content: bytes, n_items: int) -> Rows:
    """Rows from the wire, once they are sure to be some."""
    broadcast = decode_frugal_broadcast(content, int(settings.factors or 0), n_items)
    tables = {"vectors": rows_of(broadcast), "weights": broadcast.weights}
    model = Model(broadcast.version, tables, {"regulariser": np.array([broadcast.regulariser])})
    return Rows(broadcast.round_number, broadcast.items, model)


def regulariser_of(model: Model) -> float:
    """The regularisation of user vectors, which comes with the model."""
    return float(model.overall["regulariser"][0])


def scores(_settings: FrugalSettings, model: Model, vector: FloatVector) -> FloatVector:
    """The scores of all items; -inf for those without a vector, which have no support or were hidden by the server."""
    scores: FloatVector = model.vectors @ vector
    scores[~model.vectors.any(axis=1)] = -np.inf
    return scores


def first_vector(settings: FrugalSettings, _seed: int, _user: int) -> FloatVector:
    """Nothing: no vector is kept from round to round."""
    return np.zeros(int(settings.factors or 0), dtype=np.float32)


def sharing_policy(policy: Policy) -> Policy:
    """Decisions for its lifetime, and what they let out stands for the history."""
    if policy.sharing == "all":
        raise SettingError(
            "This federation's devices send few messages, and sharing as published tosses a coin again for each: what "
            "is held back today is sent tomorrow. Choose --sharing fixed-subset or randomized-response."
        )
    if policy.basis == "history":
        raise SettingError(
            "This federation's messages are computed from what is shared: from the full history they would give it "
            "away. Leave --basis out, or choose shared."
        )
    return policy


def messages(settings: FrugalSettings, policy: Policy) -> int | None:
    """As many as the federation promised, or fewer where the owner allows fewer."""
    return settings.messages if policy.messages is None else min(settings.messages, policy.messages)


def play(client: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record its message in the ledger; where sums are promised, what goes out is split already."""
    settings, policy, taken = client.settings, client.policy, client.taken
    allowed, spent = int(messages(settings, policy) or 0), ledger.spent
    recipe = _alone(settings, client.n_items)
    private = FrugalPrivate(client.user, taken.profile, taken, allowed, spent)
    terms, weights = client.terms, model.tables["weights"]
    has_counts = is_asked_for_counts(settings, weights, spent, terms)
    items = np.arange(client.n_items, dtype=np.int32) if has_counts else covered_items(settings.min_support, weights)
    with numbers_in_range(), np.errstate(invalid="ignore", over="ignore"):
        if terms is not None and terms.config.recipe == PRIVATE:
            private.spent += 1
            body = split(terms, private_message(terms, model.vectors, weights, taken.profile))
        else:
            broadcast = broadcast_of(settings, model, round_number)
            update = _update(recipe, private, _asking_for_counts(broadcast) if has_counts else broadcast)
            body = encode_frugal_update(update) if terms is None else split(terms, spectral_message(terms, update))
    taken = _among(taken, items)  # what is in this message, and nothing else, is recorded
    ledger.record_message(round_number, taken, private.spent, allowed, 0 if terms is None else terms.offer.noise)
    kept = RoundVector(client.kept.values, None, frozenset())
    return Played(kept, body, len(items), taken.profile)


def _update(recipe: FrugalRecipe, private: FrugalPrivate, broadcast: FrugalBroadcast) -> FrugalUpdate:
    update = send(recipe, private, *compute_frugal(recipe, private, broadcast))
    if is_count(update):
        check_frugal_update(update, 0, recipe.n_items)
    else:
        check_frugal_update(update, recipe.factors, len(broadcast.items))
    return update


def _among(taken: SharedProfile, items: IntVector) -> SharedProfile:
    """The part of a shared profile that is among these items."""
    here = np.isin(taken.profile, items)
    return SharedProfile(taken.profile[here], taken.real[here], taken.allowed[here], taken.lifelong)


def at_home(settings: FrugalSettings, _seed: int, _user: int, history: History, model: Model) -> FloatVector:
    """The vector that explains the full history best, in closed form; it is never sent."""
    recipe = _alone(settings, len(model.vectors))
    return solved(lambda: own_vector(recipe, broadcast_of(settings, model, 0), history.items))


def _alone(settings: FrugalSettings, n_items: int) -> FrugalRecipe:
    """The recipe of one client."""
    return frugal_recipe(settings, np.ones(1, dtype=np.int64), n_items)


def broadcast_of(settings: FrugalSettings, model: Model, round_number: int) -> FrugalBroadcast:
    """The rows of the supported items, as the maths take them."""
    weights = model.tables["weights"]
    items = covered_items(settings.min_support, weights)
    no_codes = np.zeros((len(items), 0), dtype=np.int8)
    head = round_number, model.version, regulariser_of(model), items, weights[items]
    return FrugalBroadcast(*head, no_codes, _NO_BIASES, model.vectors[items])


def _asking_for_counts(broadcast: FrugalBroadcast) -> FrugalBroadcast:
    """A Broadcast without rows."""
    none = np.zeros(0, dtype=np.int32)
    return broadcast._replace(
        items=none, weights=broadcast.weights[:0], codes=broadcast.codes[:0], vectors=broadcast.vectors[:0]
    )


def _shape(settings: FrugalSettings) -> tuple[str, int, str]:
    """The recipe, numbers a row and longest message that go with what the leader tells of its method."""
    factors = int(settings.factors or 0)
    if settings.clip is None:
        return PRIVATE, factors - 1, repr(1.0)
    return SPECTRAL, factors + 1, repr(settings.clip)


def _digest(model: Model) -> bytes:
    return model_digest(model.version, regulariser_of(model), model.tables["weights"], model.vectors)


FRUGAL_CLIENT = ClientMethod(
    settings_of=settings_of,
    model_bytes=model_bytes,
    read_rows=read_rows,
    first_vector=first_vector,
    sharing_policy=sharing_policy,
    messages=messages,
    play=play,
    home_vector=at_home,
    scores=scores,
    counts_messages=True,
    is_home_alone=True,
    summed=SecureClientMethod(
        public_settings=("factors", "messages", "alpha", "unobserved_weight", "activity", "clip", "min_support"),
        shape=_shape,
        digest=_digest,
        unsaid={"activity": "0.0", "min_support": 1},  # where everyone weighs the same; of an earlier version
        rows=lambda model: int(np.count_nonzero(model.tables["weights"])),
        min_support=lambda settings: int(settings.min_support),
    ),
)


CLIENTS, SECURE_CLIENTS = {"frugal": FRUGAL_CLIENT}, {"frugal": FRUGAL_CLIENT}
