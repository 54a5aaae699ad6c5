"""The methods that a client can take part in, by name: those with a record in their folder, and any on the interface.

The record of a method on the interface (federation/method.py) is derived here. Its settings are the method itself.
Recommendations always come from `fold_in`, from the full history.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatVector
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.client import (
    ClientMethod,
    History,
    Model,
    Played,
    RoundVector,
    Rows,
    SecureClientMethod,
    Terms,
    User,
    check_moved,
    numbers_in_range,
    solved,
    split,
)
from federank.federation.method import HOME, Client, FederatedMethod
from federank.federation.secure import length_of, secure_message
from federank.methods.registry import federated_method, served_names
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.secagg.upload import rounding_chances

_HEADER = 4096


def client_method(name: str, *, secure: bool) -> ClientMethod | None:
    """What a client knows of a method, with plain uploads or under secure aggregation; None where it knows nothing."""
    kind: Any = federated_method(name)
    return None if kind is None else derived(kind, secure)


def known_methods(*, secure: bool) -> list[str]:
    """The names of the methods that a client can take part in."""
    return [name for name in served_names() if client_method(name, secure=secure) is not None]


@cache
def derived(kind: type[FederatedMethod], secure: bool) -> ClientMethod:
    """The record of a method on the interface."""
    return ClientMethod(
        settings_of=lambda announced, n_items: kind.announced(announced, n_items, secure=secure),
        model_bytes=lambda method, n_items: replace(method, n_items=n_items).most_bytes() + 4 * n_items + _HEADER,
        read_rows=_read_rows,
        first_vector=lambda method, _seed, _user: np.zeros(_state_size(method), dtype=np.float32),
        sharing_policy=partial(_sharing_policy, kind, secure=secure),
        messages=_uploads,
        play=_play,
        home_vector=_fold_in,
        scores=lambda method, model, factors: method.scores(_broadcast(method, model), factors[None])[0],
        counts_messages=secure or kind.counts_uploads,
        is_home_alone="all" not in kind.sharing_policies,
        scale=lambda method: method.scale,
        needs_others=kind.needs_unseen_items or not secure,
        state_size=_state_size,
        summed=SecureClientMethod(
            public_settings=lambda method: method.public_settings(),
            shape=lambda method: (method.recipe, method.columns, repr(float(method.norm_bound))),
            messages=lambda method: method.uploads_per_client,
            rows=lambda method, model: method.covering(_broadcast(method, model), 1).n_items,
            min_support=lambda method: method.support,
        ),
    )


def _read_rows(method: FederatedMethod, content: bytes, n_items: int) -> Rows:
    message = replace(method, n_items=n_items).read(content)
    arrays, named = wire.values(message.part), wire.tables(message.part)
    tables = {name: arrays[name] for name in named}
    overall = {name: part for name, part in arrays.items() if name not in named and part.size}
    return Rows(message.round, message.items, Model(message.version, tables, overall))


def _broadcast(method: FederatedMethod, model: Model) -> Any:
    return method.records.sent(**model.tables, **model.overall)


def _sharing_policy(kind: type[FederatedMethod], policy: Policy, *, secure: bool) -> Policy:
    """The policy, if the method can follow it: else decisions for a lifetime, and what they let out stands for the
    history. A sharing policy from outside may have decoys, as randomized response has.
    """
    is_known = ("randomized-response" if policy.brought else policy.sharing) in kind.sharing_policies
    if not is_known or ("all" not in kind.sharing_policies and policy.basis != "shared"):
        lifelong = " or ".join(name for name in kind.sharing_policies if name != "all")
        raise SettingError(
            "In this federation it is decided once for a lifetime which items may leave, and uploads are computed from "
            f"these alone; choose --sharing {lifelong}, with the basis shared."
        )
    if secure and policy.filling not in (None, "none"):
        raise SettingError(
            "No single server reads an upload of this federation, so virtual ratings hide nothing and would only blur "
            "what it learns; choose --filling none, or leave it out."
        )
    return policy


def _uploads(method: FederatedMethod, policy: Policy) -> int | None:
    limits = [limit for limit in (method.uploads_per_client or None, policy.messages) if limit is not None]
    return min(limits, default=None)


def _play(person: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record it in the ledger; under secure aggregation, what is sent is split already."""
    policy, taken = person.policy, person.taken
    method, profile = person.settings.chosen(policy, 1.0 if taken.lifelong else policy.pi), taken.profile
    broadcast = _broadcast(method, model)
    state = _state_from(method, person.kept.values) if person.kept.stands(policy.basis, profile) else None
    client = Client(person.seed, person.user, round_number, profile, person.ratings, state, ledger.sampled())
    stage = None if person.terms is None else person.terms.offer.stage
    client = replace(client, withheld=profile[~taken.allowed], sent=ledger.spent, stage=stage)
    with numbers_in_range(), np.errstate(invalid="ignore", over="ignore"):
        result = method.client_update(client, broadcast)
        update = wire.checked(result.update, method.records.update, method)
        body = _body(method, update, broadcast, person.terms)
        vector = _vector_of(method, result.state)
    check_moved(vector)
    positives = profile if result.positives is None else result.positives
    ledger.record(round_number, person.taken, positives, result.negatives)
    allowed = _uploads(method, person.policy)
    if allowed is not None:
        noise = 0 if person.terms is None else person.terms.offer.noise
        ledger.count_message(round_number, len(positives), ledger.spent + 1, allowed, noise)
    learnt = RoundVector(vector, person.policy.basis, frozenset(profile.tolist()))
    rows = max((len(part) for part in wire.values(update).values() if part.ndim), default=1)
    return Played(learnt, body, rows, np.union1d(positives, result.negatives).astype(np.int32))


def _body(method: FederatedMethod, update: Any, broadcast: Any, terms: Terms | None) -> bytes:
    if terms is None:
        return wire.encode(method.bounded(update, method.clip) if method.clip else update)
    stage, padded = terms.offer.stage, np.zeros(terms.offer.length, dtype=np.int32)
    method = method.covering(broadcast, stage)
    message = secure_message(method, stage, update, rounding_chances(length_of(method, stage), os.urandom))
    padded[: len(message)] = message
    return split(terms, padded)


def _fold_in(method: FederatedMethod, seed: int, user: int, history: History, model: Model) -> FloatVector:
    """The user's factors from the full history, at home; nothing is sent."""
    client = Client(seed, user, HOME, history.items, history.ratings)
    return solved(lambda: np.asarray(method.fold_in(client, _broadcast(method, model)), dtype=np.float32))


# A client's state as one vector of numbers: what its file keeps.


def _state_size(method: FederatedMethod) -> int:
    return len(_vector_of(method, None if method.records.client is None else wire.zeros(method.records.client, method)))


def _vector_of(method: FederatedMethod, state: Any) -> FloatVector:
    if method.records.client is None:
        return np.zeros(0, dtype=np.float32)
    parts = wire.values(wire.checked(state, method.records.client, method)).values()
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def _state_from(method: FederatedMethod, vector: FloatVector) -> Any:
    kind = method.records.client
    if kind is None:
        return None
    shapes = {name: part.shape for name, part in wire.values(wire.zeros(kind, method)).items()}
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = np.split(vector, ends[:-1])
    return kind(**{name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)})
