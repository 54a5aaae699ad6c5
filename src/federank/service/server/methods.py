"""What a server does with a method, derived from its interface (federation/method.py). It names none.

A federation's settings are the method itself. The content of a model version is the broadcast, and what the server's
state has beyond it. Under secure aggregation the content also has the stage of the next round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadMessage, ModelError, SettingError, StoreError
from federank.federation import wire
from federank.federation.method import DataSummary, FederatedMethod
from federank.federation.secure import aggregate_from, length_of, model_digest
from federank.federation.server import MAX_HEADER, Content, Form, Guarantee, Published, lowest_rows
from federank.federation.wire import Array
from federank.methods.registry import federated_method, served_names
from federank.secagg.upload import decode_upload

if TYPE_CHECKING:
    from federank.data.interactions import Interactions

_STAGE = "stage"
_STARTED = "started"
"""Marks the state of a federation that was started from a trained model."""


class ServerMethod:
    """What a server does with the methods of one class."""

    def __init__(self, kind: type[FederatedMethod]) -> None:
        self.kind, self.name = kind, kind.name
        names = (part.name for part in fields(kind) if part.name not in kind.owner_choices)
        self.federation_settings = tuple(name for name in names if name not in kind.filled_in)
        # Where each upload counts against a quota, no client is invited to spare.
        self.rounds: dict[str, Any] = {"over_selection": 1.0} if kind.counts_uploads else {}

    # Settings, and the content that a federation begins with.

    def settle(self, method: FederatedMethod, data: Interactions, trained: Any) -> FederatedMethod:
        """The method for this catalogue. How many users there are is unknown where the data has no history."""
        if not method.one_broadcast():
            raise SettingError(f"{method.name} answers each client differently, so it runs in simulations alone.")
        if trained is not None:
            learnt: Any = getattr(trained, "method", None)
            if getattr(learnt, "name", None) != self.name:
                other = getattr(trained, "name", "something else")
                raise ModelError(f"A federation of {self.name} can start from a model of it; this one is {other}.")
            method = replace(method, factors=learnt.factors)
        return method.resolve(DataSummary.of(data))

    def secured(self, method: FederatedMethod, guarantee: Guarantee, clients: int, n_items: int) -> FederatedMethod:
        """The method under secure aggregation in rounds of this many clients."""
        return _sized(method, n_items).secured(guarantee, clients)

    def first_content(self, method: FederatedMethod, data: Interactions, trained: Any) -> Content:
        """The initial state; or a trained model's rows for its items, and new rows for the others."""
        method = _sized(method, data.n_items)
        kind = method.records.state
        if trained is None:
            return _content(method, wire.checked(method.initial_state(), kind, method))
        here, there = known_items(data, trained)
        known = wire.rows_of(wire.checked(trained.state, kind, trained.method), there)
        order = np.concatenate((here, np.setdiff1d(np.arange(data.n_items, dtype=np.int32), here)))
        grown = wire.rows_of(_sized(method, len(here)).grow(known, data.n_items), np.argsort(order).astype(np.int32))
        content = _content(method, wire.checked(method.started(grown), kind, method))
        return content._replace(state={**content.state, _STARTED: np.ones(1, dtype=np.int8)})

    def is_drawn(self, first: Content) -> bool:
        """Whether a federation's seed has drawn its first content, and it is no trained model."""
        return _STARTED not in first.state

    # Broadcasts.

    def encode(self, method: FederatedMethod, model: Published, rows: IntVector, round_number: int) -> bytes:
        """Rows of the model as they are sent."""
        method = _sized(method, model.n_items)
        return method.write(_broadcast(method, model.content), rows, round_number=round_number, version=model.version)

    def decode(self, method: FederatedMethod, content: bytes, n_items: int) -> wire.RowsMessage:
        """Rows as a client reads them."""
        return _sized(method, n_items).read(content)

    def digest(self, method: FederatedMethod, model: Published) -> bytes:
        """The digest of the model as clients have it."""
        return model_digest(model.version, wire.values(_as_read(_sized(method, model.n_items), model.content)))

    def why_wrong(self, method: FederatedMethod, before: Content, after: Content) -> str | None:
        """Why the model after a step must not be published; None if it may."""
        method = _sized(method, after.n_items)
        try:
            method.check_step(_broadcast(method, before), _broadcast(method, after))
        except BadMessage as reason:
            return str(reason)
        return None

    # Plain uploads.

    def uploads_of(self, method: FederatedMethod) -> int | None:
        """The uploads of a client in a season; None: no limit."""
        uploads: int = getattr(method, self.kind.quota)
        return uploads or None

    def uploads_now(self, method: FederatedMethod, model: Published) -> int | None:
        """The most uploads of a client as long as this is the model; None: no other than its quota."""
        return method.uploads_now(_broadcast(method, model.content))

    def form(self, method: FederatedMethod, n_items: int, most_norm: float) -> Form:
        """What an upload must look like."""
        method = _sized(method, n_items)
        longest = method.max_upload() + MAX_HEADER
        return Form(method.factors, n_items, method.max_rows(), most_norm, longest, method=method)

    def form_of(self, method: FederatedMethod, form: Form, model: Published) -> Form:
        """The same for plain uploads that were made from this model."""
        method = _sized(method, model.n_items)
        return form._replace(n_items=model.n_items, method=method, broadcast=_broadcast(method, model.content))

    def judge(self, body: bytes, form: Form) -> int:
        """Refuse an upload of another form; else how many of its rows are too long, and will be scaled down.

        The content of a secure upload cannot be read.
        """
        if form.method.uploads == "secure":
            if form.numbers:
                decode_upload(body, form.numbers, form.check)
            return 0
        update = wire.decode(form.method.records.update, form.method, body)
        form.method.check_form(update, form.broadcast)
        return int(form.method.shortened(update, form.most_norm).rows)

    def summand(self, body: bytes, form: Form) -> Any:
        """What an upload that was judged before adds to its round's sum."""
        method = form.method
        update = wire.decode_again(method.records.update, method, body)
        update = method.shortened(update, form.most_norm).update
        return method.bounded(update, method.clip) if method.clip else update

    def implausible(self, method: FederatedMethod, model: Published, body: bytes) -> str | None:
        """Why no honest client can have sent a plain upload; None if one can."""
        method = _sized(method, model.n_items)
        try:
            update = wire.decode_again(method.records.update, method, body)
            method.check(_as_read(method, model.content), update)
        except BadMessage as reason:
            return str(reason)
        return None

    def suggests(self, method: FederatedMethod) -> dict[str, Any] | None:
        """The policy that clients are suggested; None where owners have no such choice."""
        chosen = {name: getattr(method, name) for name in method.suggestions}
        return {"sharing": "fixed-subset", "pi": 1.0, "basis": "shared"} | chosen if chosen else None

    # Secure uploads.

    def stage(self, model: Published) -> int:
        """Which of a client's secure uploads a round on this model asks for."""
        return int(model.content.overall[_STAGE][0])

    def rows(self, method: FederatedMethod, model: Published) -> int | None:
        """How many items secure uploads on this model cover; None: all."""
        if method.support == 1:
            return None
        return _sized(method, model.n_items).covering(_broadcast(method, model.content), 1).n_items

    # The server step.

    def step(self, method: FederatedMethod, model: Published, enrolled: int, updates: Iterable[Any]) -> Content:
        """The next version from plain uploads, in the stated order."""
        method = _sized(method, model.n_items)
        aggregate = method.covering(_broadcast(method, model.content), 0).empty()
        for update in updates:
            method.add(aggregate, update)
            aggregate.count += 1
        return _next(method, model, aggregate, enrolled)

    def step_of_sum(
        self, method: FederatedMethod, model: Published, enrolled: int, total: IntVector, uploads: int
    ) -> Content:
        """The next version from the noisy sum of secure uploads."""
        method, stage = _sized(method, model.n_items), self.stage(model)
        part = method.covering(_broadcast(method, model.content), stage)
        aggregate: Any = aggregate_from(part, stage, total[: length_of(part, stage)])
        aggregate.count = uploads
        return _next(method, model, aggregate, enrolled)

    def progress(self, method: FederatedMethod, content: Content) -> dict[str, int]:
        """How far learning has come."""
        return method.progress(_state(_sized(method, content.n_items), content))

    # Catalogues that grow, seasons, and exports.

    def extend(self, method: FederatedMethod, content: Content, n_items: int) -> Content:
        """The content for a larger catalogue."""
        before, after = _sized(method, content.n_items), _sized(method, n_items)
        if content.n_items >= n_items:
            return content
        try:
            state = _state(before, content)
        except BadMessage:  # an earlier version, which clients download and no step goes on from
            return lowest_rows(content, n_items)
        return _content(after, wire.checked(before.grow(state, n_items), after.records.state, after))

    def item_state(self, method: FederatedMethod, content: Content) -> tuple[str, ...]:
        """The arrays of a content's state with a row per item."""
        return tuple(name for name in wire.tables(method.records.state) if name in content.state)

    def new_season(self, method: FederatedMethod, content: Content, begun: IntVector) -> Content:
        """The content that a season begins with; `begun`: rows of items that begin or return."""
        method = _sized(method, content.n_items)
        return _content(method, method.new_season(_state(method, content), begun))

    def new_plan(
        self, method: FederatedMethod, before: tuple[int, ...], now: tuple[int, ...], content: Content
    ) -> Content:
        """The content at the first stage of a season's secure uploads; `before` and `now` are the noises of both."""
        method = _sized(method, content.n_items)
        return _content(method, method.new_plan(_state(method, content), before, now))

    def learnt_from(self, method: FederatedMethod, content: Content) -> dict[str, Array]:
        """How many users a version was learnt from, and how many have each item, where known."""
        try:
            return method.learnt_from(_state(_sized(method, content.n_items), content))
        except BadMessage:  # an earlier version, without its state
            return {}

    def exported(
        self, settings: Mapping[str, Any], tables: Mapping[str, Array]
    ) -> tuple[Mapping[str, Any], Mapping[str, Array]]:
        """A version as its method's recommender takes it: settings, and the arrays that its shared part is made from.

        What an export says beside the model is left out.
        """
        method = self.kind.made(settings)
        arrays = {name.removeprefix("overall."): part for name, part in tables.items()}
        names = {part.name for part in wire.arrays(method.records.sent)}
        return method.exported({name: part for name, part in arrays.items() if name in names})


class _ServerMethods(Mapping[str, ServerMethod]):
    """Each is imported when it is looked up."""

    def __getitem__(self, name: str) -> ServerMethod:
        kind: Any = federated_method(name)
        if kind is None:
            raise KeyError(name)
        return _derived(kind)

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
def _derived(kind: Any) -> ServerMethod:
    return ServerMethod(kind)


def known_items(data: Interactions, trained: Any) -> tuple[IntVector, IntVector]:
    """The items that a trained model knows: their numbers here, and there."""
    rows = {identity: row for row, identity in enumerate(trained.training.item_ids.tolist())}
    known = [(n, rows[identity]) for n, identity in enumerate(data.item_ids.tolist()) if identity in rows]
    if not known:
        raise ModelError(
            f"The trained model knows none of the {data.n_items:,} items of {data.name}; start from a model of the "
            "same data."
        )
    here, there = (np.array(column, dtype=np.int32) for column in zip(*known, strict=True))
    return here, there


# Contents and records.


def _sized(method: FederatedMethod, n_items: int) -> FederatedMethod:
    return method if method.n_items == n_items else replace(method, n_items=n_items)


def _content(method: FederatedMethod, state: Any) -> Content:
    """A state as versions keep it: what clients download, and what only the next server step needs."""
    broadcast = wire.checked(method.broadcast(state), method.records.sent, method)
    arrays, named = wire.values(broadcast), wire.tables(broadcast)
    if not named:
        raise SettingError(f"The broadcast of {method.name} has no table with a row per item, which a server needs.")
    tables = {name: arrays[name] for name in named}
    overall = {name: part for name, part in arrays.items() if name not in named}
    if method.uploads == "secure":
        overall[_STAGE] = np.array([method.stage(state)])
    kept = {
        name: part
        for name, part in wire.values(state).items()
        if part.size and not (name in arrays and np.array_equal(part, arrays[name]))
    }
    return Content(tables, overall, kept)


def _broadcast(method: FederatedMethod, content: Content) -> Any:
    parts = {**content.tables, **content.overall}
    return method.records.sent(**{part.name: parts[part.name] for part in wire.arrays(method.records.sent)})


_READ: list[tuple[Content, FederatedMethod, Any]] = []


def _as_read(method: FederatedMethod, content: Content) -> Any:
    """The broadcast as clients have it; kept for the version at hand, since all uploads of a round are about it."""
    if not _READ or _READ[0][0] is not content or _READ[0][1] != method:
        _READ[:] = [(content, method, method.as_read(_broadcast(method, content)))]
    return _READ[0][2]


def _state(method: FederatedMethod, content: Content) -> Any:
    """The state of a version; raises `BadMessage` where it was not kept, which is so for all but the newest."""
    kind = method.records.state
    names = {part.name for part in wire.arrays(kind)}
    kept = {**content.tables, **content.overall, **content.state}
    return wire.from_arrays(kind, method, {name: part for name, part in kept.items() if name in names})


def _next(method: FederatedMethod, model: Published, aggregate: Any, enrolled: int) -> Content:
    aggregate.enrolled = max(enrolled, aggregate.count)
    state = method.server_update(_state(method, model.content), aggregate)
    content = _content(method, wire.checked(state, method.records.state, method))
    started = {name: part for name, part in model.content.state.items() if name == _STARTED}
    return content._replace(state={**content.state, **started})
