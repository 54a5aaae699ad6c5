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
from federank.federation.defences import shortened
from federank.federation.method import DataSummary, FederatedMethod
from federank.federation.secure import aggregate_from, length_of, model_digest
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
    lowest_rows,
    one_noise,
)
from federank.methods.registry import federated_method, part_of, served_names
from federank.secagg.config import GRADIENTS, SecaggConfig

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
    names = tuple(part.name for part in fields(kind) if part.name not in kind.owner_choices)
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
        sharing=kind.sharing_policies,
        defences=kind.defences,
        implausible=_implausible,
        out_of_scale=_out_of_scale,
        suggests=_suggests,
        extend=_extend,
        item_state=_item_state,
        quota="uploads_per_client",
        exported=lambda settings, tables: _exported(kind(**settings), tables),
        sums=SecureServerMethod(
            settings=_secure_settings,
            plan=_plan,
            stage=lambda method, model: method.stage(_broadcast(method, model)),
            digest=lambda _, model: model_digest(model.version, {**model.content.tables, **model.content.overall}),
            fold=_fold_sum,
            is_drawn=lambda content: _STARTED not in content.state,
            idle=kind.suggestions,
        ),
    )


def _sized(method: FederatedMethod, n_items: int) -> FederatedMethod:
    return method if method.n_items == n_items else replace(method, n_items=n_items)


def _settle(method: FederatedMethod, data: Interactions, trained: Any) -> FederatedMethod:
    """The method for this catalogue. How many users there are is unknown where the data has no history."""
    if not method.one_broadcast():
        raise SettingError(f"{method.name} answers each client differently, so it runs in simulations alone.")
    if trained is not None:
        learnt: Any = getattr(trained, "method", None)
        if getattr(learnt, "name", None) != method.name:
            other = getattr(trained, "name", "something else")
            raise ModelError(f"A federation of {method.name} can start from a model of it; this one is {other}.")
        method = replace(method, factors=learnt.factors)
    return method.resolve(DataSummary.of(data))


def _first_content(method: FederatedMethod, data: Interactions, trained: Any) -> Content:
    """The initial state; or a trained model's rows for its items, and new rows for the others."""
    method = _sized(method, data.n_items)
    kind = method.records.state
    if trained is None:
        return _content(method, wire.checked(method.initial_state(), kind, method))
    here, there = known_items(data, trained)
    known = wire.rows_of(wire.checked(trained.state, kind, trained.method), there)
    order = np.concatenate((here, np.setdiff1d(np.arange(data.n_items, dtype=np.int32), here)))
    extended = _sized(method, len(here)).grow(known, data.n_items)
    content = _content(method, wire.checked(wire.rows_of(extended, np.argsort(order).astype(np.int32)), kind, method))
    return content._replace(state={**content.state, _STARTED: np.ones(1, dtype=np.int8)})


def _content(method: FederatedMethod, state: Any) -> Content:
    """A state as versions keep it: what clients download, and what only the next server step needs."""
    broadcast = wire.checked(method.broadcast(state), method.records.sent, method)
    arrays, named = wire.values(broadcast), wire.tables(broadcast)
    if not named:
        raise SettingError(f"The broadcast of {method.name} has no table with a row per item, which a server needs.")
    tables = {name: arrays[name] for name in named}
    kept = {
        name: part
        for name, part in wire.values(state).items()
        if part.size and not (name in arrays and np.array_equal(part, arrays[name]))
    }
    return Content(tables, {name: part for name, part in arrays.items() if name not in named}, kept)


def _broadcast(method: FederatedMethod, model: Published) -> Any:
    return method.records.sent(**model.content.tables, **model.content.overall)


def _state(method: FederatedMethod, content: Content) -> Any:
    """The state of a version; raises `BadMessage` where it was not kept, which is so for all but the newest."""
    kind = method.records.state
    names = {part.name for part in wire.arrays(kind)}
    kept = {**content.tables, **content.overall, **content.state}
    return wire.from_arrays(kind, method, {name: part for name, part in kept.items() if name in names})


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
    """What an upload must look like; free axes have at most the rows that the method says."""
    method, kind = _sized(method, n_items), method.records.update
    axes = {axis for part in wire.arrays(kind) for axis in part.metadata["axes"] if isinstance(axis, str)}
    free = {axis: method.max_rows() for axis in axes if axis != "items" and not hasattr(method, axis)}
    longest = wire.size(wire.zeros(kind, method, **free)) + MAX_HEADER
    return Form(method.factors, n_items, method.max_rows(), most_norm, longest, method=method)


def _judge(body: bytes, form: Form) -> int:
    """Refuse an upload that is no update of this form; how many of its rows are too long, and will be scaled down."""
    update = wire.decode(form.method.records.update, _sized(form.method, form.n_items), body)
    for name in wire.indices(update):
        rows = len(getattr(update, name))
        if rows > form.most_rows:
            raise BadMessage(f"The update has {rows} rows; the task allows {form.most_rows} at most.")
    return shortened(update, form.most_norm).rows


def _summand(body: bytes, form: Form) -> Any:
    method = _sized(form.method, form.n_items)
    update = shortened(wire.decode_again(method.records.update, method, body), form.most_norm).update
    return form.method.bounded(update, form.method.clip) if form.method.clip else update


def _implausible(method: FederatedMethod, model: Published, body: bytes) -> str | None:
    method = _sized(method, model.n_items)
    try:
        method.check(_broadcast(method, model), wire.decode_again(method.records.update, method, body))
    except BadMessage as reason:
        return str(reason)
    return None


def _out_of_scale(method: FederatedMethod, before: Content, after: Content) -> str | None:
    kind, method = method.records.sent, _sized(method, after.n_items)
    try:
        method.check_step(*(kind(**content.tables, **content.overall) for content in (before, after)))
    except BadMessage as reason:
        return str(reason)
    return None


def _suggests(method: FederatedMethod) -> dict[str, Any] | None:
    """What hides uploads as the method's settings say; nothing where owners have no such choice."""
    chosen = {name: getattr(method, name) for name in method.suggestions}
    return {"sharing": "fixed-subset", "pi": 1.0, "basis": "shared"} | chosen if chosen else None


def _encode(method: FederatedMethod, model: Published, rows: IntVector, round_number: int) -> bytes:
    broadcast = _broadcast(method, model)
    return wire.encode_rows(broadcast, rows, model.n_items, round_number=round_number, version=model.version)


def _extend(method: FederatedMethod, content: Content, n_items: int) -> Content:
    before, after = _sized(method, content.n_items), _sized(method, n_items)
    if content.n_items >= n_items:
        return content
    try:
        state = _state(before, content)
    except BadMessage:  # an earlier version, which clients download and no step goes on from
        return lowest_rows(content, n_items)
    return _content(after, wire.checked(before.grow(state, n_items), after.records.state, after))


def _item_state(method: FederatedMethod, content: Content) -> tuple[str, ...]:
    return tuple(name for name in wire.tables(method.records.state) if name in content.state)


def _exported(method: FederatedMethod, tables: Mapping[str, Any]) -> Exported:
    """A version as a model's arrays; what an export says beside the model is left out."""
    arrays = {name.removeprefix("overall."): part for name, part in tables.items()}
    names = {part.name for part in wire.arrays(method.records.sent)}
    settings, shared = method.exported({name: part for name, part in arrays.items() if name in names})
    return Exported(settings, shared, rated=method.scale is not None)


def _secure_settings(method: FederatedMethod, guarantee: Guarantee) -> FederatedMethod:
    """The method under secure aggregation: every upload per client has the same noise."""
    secured = method.secured(with_noise=bool(guarantee.sigma) or guarantee.epsilon is not None)
    return replace(secured, noise=one_noise(guarantee, secured.uploads_per_client)[0])


def _plan(method: FederatedMethod, n_items: int, _clients: int, guarantee: Guarantee) -> SecurePlan:
    method = _sized(method, n_items)
    noises = one_noise(guarantee, method.uploads_per_client)
    return SecurePlan(GRADIENTS, method.factors, method.columns, method.clip, noises, 0.0)
