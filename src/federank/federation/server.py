"""What a server must know of a method: one record of functions, found by the name that the federation config has.

    federation config     keeps the method's settings; clients receive `client_settings` of them
    rounds      open, wait, close; give `fold` what was uploaded, in the stated order
    uploads     are bytes of a kind; an `UploadKind` says whether they are right, and what they add to their round's sum
    store       keeps every version's content, and of the newest one also the state that the next `fold` needs
    model       is sent as `encode` writes it, by any worker: from tables and `overall`, not from `state`; it is
                published only once `decode`, which is what clients use, has read it

A method on the interface (method.py) needs no such record: service/server/methods.py derives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.federation.defences import NO_DEFENCES, Defences
from federank.federation.method import low_bias
from federank.federation.wire import Array, encode_parts
from federank.privacy.accountant import mu_for
from federank.secagg.config import SecaggConfig
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import C_INT
from federank.secagg.upload import decode_upload

MAX_HEADER = 1024
"""Bytes that a safetensors header may take beyond what ours takes: other writers order and pad it differently."""

_NOTHING: Mapping[str, Array] = MappingProxyType({})
_OVERALL = "overall."  # marks in the store what is no table


class Content(NamedTuple):
    """The arrays of a model version."""

    tables: Mapping[str, Array]  # one row per item in each
    overall: Mapping[str, Array] = _NOTHING  # what does not belong to one item; sent with any rows
    state: Mapping[str, Array] = _NOTHING  # the server's state for its next step; only the leader reads it

    @property
    def n_items(self) -> int:
        """The number of rows of every table."""
        return len(next(iter(self.tables.values())))


def lowest_rows(content: Content, n_items: int) -> Content:
    """The same content for a catalogue of `n_items`: rows that it lacks start low, so that they are never first.

    A new item has the bias that a tenth of the items stay below, and no vector; where a served has no biases, no vector
    is a score of zero.
    """
    more = n_items - len(content.tables["vectors"])
    if more <= 0:
        return content
    tables: dict[str, Array] = {}
    for name, table in content.tables.items():
        low = np.zeros((more, *table.shape[1:]), dtype=table.dtype)
        if name == "biases":
            low[:] = low_bias(table)
        elif name == "weights":
            low[:] = 1
        tables[name] = np.concatenate((table, low))
    return content._replace(tables=tables)


class Published(NamedTuple):
    """The shared model as of a version."""

    version: int
    changed: LongVector  # per row: the version that changed it last
    content: Content

    @property
    def vectors(self) -> FloatMatrix:
        """The item vectors."""
        return self.content.tables["vectors"]

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.changed)

    def rows_since(self, have: int | None) -> IntVector:
        """The rows that a client with version `have` needs; all of them where that is no version."""
        if have is None or not 0 <= have <= self.version:
            return np.arange(len(self.changed), dtype=np.int32)
        return np.flatnonzero(self.changed > have).astype(np.int32)

    def rows(self, rows: IntVector) -> dict[str, Array]:
        """The tables cut down to some rows."""
        is_full = len(rows) == len(self.changed)
        return {name: table if is_full else table[rows] for name, table in self.content.tables.items()}

    def followed_by(self, content: Content) -> Published:
        """The next version, after a server step."""
        differs = np.zeros(len(self.changed), dtype=np.bool_)
        for name, table in content.tables.items():
            different = table != self.content.tables[name]
            differs |= different if different.ndim == 1 else different.any(axis=1)
        return Published(self.version + 1, np.where(differs, self.version + 1, self.changed), content)

    def stored(self, rows: IntVector, round_number: int) -> bytes:
        """Some rows as the store keeps them."""
        overall = {_OVERALL + name: value for name, value in self.content.overall.items()}
        parts = {"items": rows, **self.rows(rows), **overall}
        return encode_parts(parts, {"round": round_number, "version": self.version})

    def after(self, version: int, stored: bytes) -> Published:
        """A later version, from the rows that it changed."""
        items, rows, overall = read_stored(stored)
        tables, changed = {name: table.copy() for name, table in self.content.tables.items()}, self.changed.copy()
        for name in tables:
            tables[name][items] = rows[name]
        changed[items] = version
        return Published(version, changed, Content(tables, overall))


def read_stored(stored: bytes) -> tuple[IntVector, dict[str, Array], dict[str, Array]]:
    """The items, tables and other arrays that `Published.stored` wrote."""
    parts = load(stored)
    items = parts.pop("items")
    overall = {name.removeprefix(_OVERALL): parts.pop(name) for name in list(parts) if name.startswith(_OVERALL)}
    return items, parts, overall


class Form(NamedTuple):
    """What an upload of this federation must look like."""

    factors: int
    n_items: int
    most_rows: int
    most_norm: float
    most_bytes: int  # the longest upload that can be right
    numbers: int = 0  # sums: how many numbers an upload of the round has; 0 where that is not known
    check: Parameters | None = None  # sums: how a message's norm is proved, where it is
    method: Any = None  # of a method on the interface: with these settings and this catalogue


class UploadKind(NamedTuple):
    """How uploads of one kind are judged and added up.

    A masked or secret-shared upload would be another kind: its `judge` can check sizes only, and its summands make
    sense only added up, which is all that a server step does with them.
    """

    judge: Callable[[bytes, Form], int]
    """Raise `BadMessage` where an upload is out of bounds; else how many of its rows will be shortened."""
    summand: Callable[[bytes, Form], Any]
    """What an accepted upload adds to its round's sum. It was judged when it arrived, and is not checked again."""


class Guarantee(NamedTuple):
    """What sums guarantee of all messages per client, said in one of two ways."""

    sigma: float | None  # each server's noise, in longest messages; 0: none
    epsilon: float | None
    delta: float


class SecurePlan(NamedTuple):
    """What a federation config of sums says about messages."""

    recipe: str
    factors: int
    columns: int
    clip: float
    noises: tuple[int, ...]
    power: float
    most_shown: float | None = None
    """Largest share of users to whom one item may be shown, unless the operator names one; None: no bound."""
    min_support: int = 1
    """Items of fewer users are only in uploads of the first stage."""


class SecureServerMethod(NamedTuple):
    """What a server must know of a method whose messages may be sent as sums that no single server can open."""

    settings: Callable[[Any, Guarantee], Any]
    """(settings, guarantee) -> the settings of a federation of sums that makes it."""
    plan: Callable[[Any, int, int, Guarantee], SecurePlan]
    """(settings, number of items, clients per round, guarantee) -> the plan of a new federation."""
    stage: Callable[[Any, Published], int]
    """(settings, model) -> which of a client's messages a round on it asks for."""
    digest: Callable[[Any, Published], bytes]
    """(settings, model) -> the digest of the model as clients read it."""
    fold: Callable[[Any, SecaggConfig, Published, int, IntVector, int], Content]
    """(settings, config, model, enrolled clients, noisy sum of the uploads, number of uploads) -> the next version.
    """
    is_drawn: Callable[[Content], bool]
    """(first content) -> whether a federation's seed has drawn it, and it is no trained model."""
    rows: Callable[[Any, Published], int | None] = lambda _settings, _model: None
    """(settings, model) -> how many items uploads of a round on it cover; None: all."""
    affordable: Callable[[int, int, float], float | None] = lambda _clients, _items, _delta: None
    """(clients per round, items, delta) -> the epsilon of a federation that names none; None: no noise."""
    next_season: Callable[[SecaggConfig, SecaggConfig, Content], Content] = lambda _before, _now, content: content
    """(config before, config now, content) -> the content at the first stage of a season's plan."""
    idle: tuple[str, ...] = ()
    """Settings that mean nothing where messages are sums."""
    only: tuple[str, ...] = ()
    """Settings that mean nothing elsewhere."""


def as_promised(settings: Any) -> int | None:
    """A client is invited as often as its quota says; without end where there is none."""
    messages: int | None = settings.messages
    return messages


class Exported(NamedTuple):
    """A version of a federation as its method's recommender takes it."""

    settings: Mapping[str, Any]
    arrays: Mapping[str, Array]  # what the model's shared part is made from
    rated: bool = False


@dataclass(frozen=True, kw_only=True)
class ServerMethod:
    """What a server must know of a method."""

    name: str
    """What clients receive, and what the federation config keeps."""
    settings: type[Any]
    """The record of settings."""
    federation_settings: tuple[str, ...]
    """Those that a federation decides."""
    client_settings: tuple[str, ...]
    """Those of them that clients receive."""
    defaults: Mapping[str, Any]
    """Where a federation's defaults are not the record's."""
    settle: Callable[[Any, Interactions, Any], Any]
    """(settings, data, trained model or None) -> settings with nothing left open, as the federation config keeps
    them.
    """
    first_content: Callable[[Any, Interactions, Any], Content]
    """(settings, data, trained model or None) -> what the federation begins with."""
    form: Callable[[Any, int, float], Form]
    """(settings, number of items, longest row) -> what an upload must look like."""
    recipe: Callable[[Any, int, int], Any]
    """(settings, number of items, enrolled clients) -> what the next server step follows."""
    fold: Callable[[Any, Published, int, Iterable[Any]], Content]
    """(recipe, model, round number, summands in the stated order) -> the next version."""
    encode: Callable[[Any, Published, IntVector, int], bytes]
    """(settings, model, rows, round number) -> the Broadcast of these rows, as it is sent."""
    decode: Callable[[Any, bytes, int], Any]
    """(settings, Broadcast, number of items) -> its rows as a client reads them, or `BadMessage`."""
    kinds: Mapping[str, UploadKind]
    """Every kind of upload that it takes; `plain` is one client's update, readable by the server."""
    invitations: Callable[[Any], int | None] = lambda _settings: None
    """(settings) -> how often a client is invited over its lifetime at most; None: in every round."""
    invitations_now: Callable[[Any, Published], int | None] = lambda _settings, _model: None
    """(settings, model) -> a lower bound on that as long as this is the model; None: no other."""
    form_of: Callable[[Any, Form, Published], Form] = lambda _settings, form, model: form._replace(
        n_items=model.n_items
    )
    """(settings, form, model) -> what a plain upload that was made from this model must look like."""
    progress: Callable[[Any, Content], dict[str, int]] = lambda _settings, _content: {}
    """(settings, content) -> figures for the operator of how far learning has come, by name."""
    rounds: Mapping[str, Any] = field(default_factory=dict)
    """Where a federation's defaults of `RoundSettings` are not the record's."""
    sharing: tuple[str, ...] = ("all", "fixed-subset", "randomized-response")
    """The sharing policies that its clients can follow."""
    defences: Defences = NO_DEFENCES
    """What one server step may do to the model, unless the operator says otherwise (defences.py)."""
    implausible: Callable[[Any, Published, bytes], str | None] = lambda _settings, _model, _body: None
    """(settings, model of its round, plain upload) -> why no honest client can have sent it; None if one can."""
    out_of_scale: Callable[[Any, Content, Content], str | None] = lambda _settings, _before, _after: None
    """(settings, content before, content after) -> why an aggregate must not be published; None if it may."""
    received: Callable[[Published], dict[str, Array]] = lambda _model: {}
    """(model) -> how many users it was learnt from and how many have each item, where known; for exports."""
    extend: Callable[[Any, Content, int], Content] = lambda _settings, content, n_items: lowest_rows(content, n_items)
    """(settings, content, number of items) -> the same for a larger catalogue: new rows start low."""
    item_state: Callable[[Any, Content], tuple[str, ...]] = lambda _settings, _content: ()
    """(settings, content) -> the arrays of its state that have one row per item."""
    new_season: Callable[[Any, Content, IntVector], Content] = lambda _settings, content, _begun: content
    """(settings, content, rows of items that begin or return) -> the content that a season begins with."""
    quota: str | None = None
    """The setting that says how many uploads a client makes in a season, where there is one."""
    suggests: Callable[[Any], dict[str, Any] | None] = lambda _settings: None
    """(settings) -> the policy that clients are suggested where the operator names none."""
    exported: Callable[[Mapping[str, Any], Mapping[str, Array]], Exported]
    """(settings, tables of a version) -> the same as a model."""
    sums: SecureServerMethod
    """The same under secure aggregation."""


# Uploads that no single server can read, as every method under secure aggregation takes them in.


def one_noise(guarantee: Guarantee, messages: int) -> tuple[int, ...]:
    """One server's noise on each of a lifetime's uploads, where all of them are alike; 0 without a guarantee."""
    each = guarantee.sigma or 0.0
    if guarantee.epsilon is not None:
        each = math.sqrt(messages) / mu_for(guarantee.epsilon, guarantee.delta)
    return (math.ceil(each * C_INT),) * messages


def judge_sealed(body: bytes, form: Form) -> int:
    """Refuse a secure upload of a wrong form. Its content cannot be read."""
    if form.numbers:
        decode_upload(body, form.numbers, form.check)
    return 0


def _unread(_body: bytes, _form: Form) -> Any:
    """An upload of sums adds nothing by itself: only with the helper's word does its share count."""
    raise AssertionError("uploads of sums are added up by service/server/secure_rounds.py")


SEALED = UploadKind(judge_sealed, _unread)


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
