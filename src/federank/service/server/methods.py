"""The methods that a server can serve, by name: those with a record in their folder, and any method on the interface.

The record of a method on the interface (federation/method.py) is derived here. Its settings are the method itself; a
model's content is the broadcast, and what the server's state has beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector
from federank.data.interactions import Interactions
from federank.errors import BadMessage, ModelError, SettingError, StoreError
from federank.federation import wire
from federank.federation.method import DataSummary, FederatedMethod
from federank.federation.secure import aggregate_from, columns_of, length_of, model_digest
from federank.federation.server import (
    MAX_HEADER,
    SEALED,
    Content,
    Exported,
    Form,
    Guarantee,
    Published,
    SecurePlan,
    SecureServerMethod,
    ServerMethod,
    UploadKind,
    known_items,
    one_noise,
)
from federank.methods.registry import federated_method, part_of, served_names
from federank.secagg.config import GRADIENTS, SecaggConfig

USUAL_UPLOADS = 20
"""Uploads of a client's lifetime under secure aggregation, unless the operator says otherwise."""
_FILLED_IN = ("n_items", "uploads", "noise")
_STARTED = "started"
"""Marks the state of a federation that was started from a trained model."""


class _ServerMethods(Mapping[str, ServerMethod]):
    """Each is imported when it is looked up."""

    def __getitem__(self, name: str) -> ServerMethod:
        own: ServerMethod | None = part_of(name, "server", "SERVERS")
        if own is not None:
            return own
        kind: Any = federated_method(name)
        if kind is None:
            raise KeyError(name)
        return derived(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(served_names())

    def __len__(self) -> int:
        return len(served_names())


SERVER_METHODS = _ServerMethods()


def server_method(name: str) -> ServerMethod:
    """The method of a store's federation."""
    if name not in SERVER_METHODS:
        raise StoreError(
            f"The store holds a federation whose method is {name}, and this version of FedeRank serves "
            f"{', '.join(SERVER_METHODS)}. Use a newer version, or name another --store."
        )
    return SERVER_METHODS[name]


@cache
def derived(kind: type[FederatedMethod]) -> ServerMethod:
    """The record of a method on the interface."""
    names = tuple(part.name for part in fields(kind))
    return ServerMethod(
        name=kind.name,
        settings=kind,
        federation_settings=tuple(name for name in names if name not in _FILLED_IN),
        client_settings=names,
        defaults={},
        settle=_settle,
        first_content=_first_content,
        form=_form,
        recipe=lambda method, n_items, enrolled: _Step(replace(method, n_items=n_items), enrolled),
        fold=_fold,
        encode=_encode,
        decode=lambda method, content, n_items: wire.decode_rows(method.records.sent, _sized(method, n_items), content),
        kinds={"plain": UploadKind(_judge, _summand), "sums": SEALED},
        invitations=lambda method: method.uploads_per_client or None,
        sharing=("fixed-subset", "randomized-response"),
        implausible=_implausible,
        extend=_extend,
        item_state=_item_state,
        quota="uploads_per_client",
        exported=_exported,
        sums=SecureServerMethod(
            settings=_secure_settings,
            plan=_plan,
            stage=lambda method, model: method.stage(_broadcast(method, model)),
            digest=lambda _, model: model_digest(model.version, {**model.content.tables, **model.content.overall}),
            fold=_fold_sum,
            is_drawn=lambda content: _STARTED not in content.state,
        ),
    )


def _sized(method: FederatedMethod, n_items: int) -> FederatedMethod:
    return method if method.n_items == n_items else replace(method, n_items=n_items)


def _settle(method: FederatedMethod, data: Interactions, trained: Any) -> FederatedMethod:
    """The method for this catalogue. How many users there are is unknown where the data has nobody's history."""
    if trained is not None:
        if trained.name != method.name:
            raise ModelError(f"A federation of {method.name} can start from a model of it; this one is {trained.name}.")
        method = replace(method, factors=trained.method.factors)
    known = (data.n_users, len(data)) if len(data) else (None, None)
    return method.resolve(DataSummary(data.n_items, *known))


def _first_content(method: FederatedMethod, data: Interactions, trained: Any) -> Content:
    """The initial state; or a trained model's rows for the items that it knows, and rows of a grown catalogue else."""
    method = _sized(method, data.n_items)
    state = wire.checked(method.initial_state(), method.records.state, method)
    if trained is None:
        return _content(method, state)
    here, there = known_items(data, trained)
    empty = wire.zeros(method.records.state, method)
    rows = wire.rows_of(trained.state, there)
    content = _content(method, wire.with_rows(empty, here, rows))
    return content._replace(state={**content.state, _STARTED: np.ones(1, dtype=np.int8)})


def _content(method: FederatedMethod, state: Any) -> Content:
    broadcast = wire.checked(method.broadcast(state), method.records.sent, method)
    arrays, named = wire.values(broadcast), wire.tables(broadcast)
    if not named:
        raise SettingError(f"The broadcast of {method.name} has no table with a row per item, which a server needs.")
    kept = wire.values(state) if method.records.broadcast is not None else {}
    tables = {name: arrays[name] for name in named}
    return Content(tables, {name: part for name, part in arrays.items() if name not in named}, kept)


def _broadcast(method: FederatedMethod, model: Published) -> Any:
    return method.records.sent(**model.content.tables, **model.content.overall)


def _state(method: FederatedMethod, content: Content) -> Any:
    kept = {name: part for name, part in content.state.items() if name != _STARTED}
    return method.records.state(**(kept or {**content.tables, **content.overall}))


class _Step(NamedTuple):
    """What an aggregation follows."""

    method: FederatedMethod
    enrolled: int


def _fold(step: _Step, model: Published, _round_number: int, updates: Iterable[Any]) -> Content:
    method = step.method
    aggregate = method.empty(method.stage(_broadcast(method, model)))
    for update in updates:
        method.add(aggregate, update)
        aggregate.count += 1
    return _next(method, model, aggregate, step.enrolled)


def _fold_sum(
    method: FederatedMethod, _config: SecaggConfig, model: Published, enrolled: int, total: IntVector, uploads: int
) -> Content:
    method = _sized(method, model.n_items)
    stage = method.stage(_broadcast(method, model))
    aggregate: Any = aggregate_from(method, stage, total[: length_of(method, stage)])
    aggregate.count = uploads
    return _next(method, model, aggregate, enrolled)


def _next(method: FederatedMethod, model: Published, aggregate: Any, enrolled: int) -> Content:
    aggregate.enrolled = max(enrolled, aggregate.count)
    state = method.server_update(_state(method, model.content), aggregate)
    content = _content(method, wire.checked(state, method.records.state, method))
    started = {name: part for name, part in model.content.state.items() if name == _STARTED}
    return content._replace(state={**content.state, **started})


def _form(method: FederatedMethod, n_items: int, most_norm: float) -> Form:
    """What an upload must look like; free axes have at most a row per item."""
    method, kind = _sized(method, n_items), method.records.update
    axes = {axis for part in wire.arrays(kind) for axis in part.metadata["axes"] if isinstance(axis, str)}
    free = {axis: n_items for axis in axes if axis != "items" and not hasattr(method, axis)}
    longest = wire.size(wire.zeros(kind, method, **free)) + MAX_HEADER
    limit = min(most_norm, method.clip or most_norm)
    return Form(method.factors, n_items, n_items, limit, longest, method=method)


def _judge(body: bytes, form: Form) -> int:
    """Refuse an upload that is no update of this form; 1 where its norm is too large, and it will be scaled down."""
    update = _decoded(body, form)
    return int(form.method.bounded(update, form.most_norm) is not update)


def _summand(body: bytes, form: Form) -> Any:
    return form.method.bounded(_decoded(body, form), form.most_norm)


def _decoded(body: bytes, form: Form) -> Any:
    return wire.decode(form.method.records.update, _sized(form.method, form.n_items), body)


def _implausible(method: FederatedMethod, model: Published, body: bytes) -> str | None:
    method = _sized(method, model.n_items)
    try:
        method.check(_broadcast(method, model), wire.decode(method.records.update, method, body))
    except BadMessage as reason:
        return str(reason)
    return None


def _encode(method: FederatedMethod, model: Published, rows: IntVector, round_number: int) -> bytes:
    broadcast = _broadcast(method, model)
    return wire.encode_rows(broadcast, rows, model.n_items, round_number=round_number, version=model.version)


def _extend(method: FederatedMethod, content: Content, n_items: int) -> Content:
    before = _sized(method, content.n_items)
    if content.n_items >= n_items:
        return content
    if before.records.broadcast is not None and not content.state:  # an earlier version, whose state was not kept
        broadcast = wire.extended(_broadcast(before, Published(0, np.zeros(0, np.int64), content)), n_items)
        return content._replace(tables={name: getattr(broadcast, name) for name in content.tables})
    after = _sized(method, n_items)
    grown = wire.checked(before.grow(_state(before, content), n_items), after.records.state, after)
    return _content(after, grown)


def _item_state(method: FederatedMethod, content: Content) -> tuple[str, ...]:
    return tuple(name for name in wire.tables(method.records.state) if name in content.state)


def _exported(settings: Mapping[str, Any], tables: Mapping[str, Any]) -> Exported:
    """A version as a model's arrays; only where clients download the full state."""
    overall = {name.removeprefix("overall."): part for name, part in tables.items() if name.startswith("overall.")}
    state = {name: part for name, part in tables.items() if not name.startswith("overall.")} | overall
    return Exported({name: value for name, value in settings.items() if name != "n_items"}, state)


def _secure_settings(method: FederatedMethod, guarantee: Guarantee) -> FederatedMethod:
    """The method under secure aggregation: every upload of a lifetime has the same noise."""
    uploads = method.uploads_per_client or USUAL_UPLOADS
    if not method.clip:
        raise SettingError(f"Secure aggregation of {method.name} needs clip, the L2 bound of one upload, such as 10.")
    return replace(method, uploads="secure", uploads_per_client=uploads, noise=one_noise(guarantee, uploads)[0])


def _plan(method: FederatedMethod, n_items: int, _clients: int, guarantee: Guarantee) -> SecurePlan:
    method = _sized(method, n_items)
    noises = one_noise(guarantee, method.uploads_per_client)
    return SecurePlan(GRADIENTS, method.factors, columns_of(method), method.clip, noises, 0.0)
