"""A family as the server sees it: one record of functions, looked up by the method that the federation config names.

To serve another method, write a file beside pairs.py that fills this record in, and add it to registry.py. The store,
the rounds, the endpoints and the workers stay as they are:

    federation config     keeps the family's settings; devices are told `device_settings` of them
    rounds      open, wait, close; hand the family's `fold` what was uploaded, in the stated order; a device is invited
                at most as often as `invitations` says
    uploads     are bytes of a kind; a `Kind` says whether they are right, and what they add to their round's sum
    store       keeps every version's content, and of the newest one also what the next `fold` has to remember
    model       is sent as the family's `encode` writes it, by any worker: from tables and `overall`, not from `state`;
                it is published only once `decode`, which is what clients use, has read it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from federank._numerics.arrays import IntVector
from federank.data.interactions import Interactions
from federank.federation.defences import NO_DEFENCES, Defences
from federank.federation.wire import Array
from federank.privacy.accountant import mu_for
from federank.secagg.config import SecaggConfig
from federank.secagg.forms import upload_from
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import C_INT
from federank.service.server.model_versions import Content, Published, lowest_rows


class Form(NamedTuple):
    """What an upload of this federation must look like."""

    factors: int
    n_items: int
    most_rows: int
    most_norm: float
    most_bytes: int  # the longest upload that can be right
    numbers: int = 0  # sums: how many numbers an upload of the round has; 0 where that is not known
    check: Parameters | None = None  # sums: how a message's norm is proved, where it is


class Kind(NamedTuple):
    """How uploads of one kind are judged and added up.

    A masked or secret-shared upload would be another kind: its `judge` can check sizes only, and its summands make
    sense only added up, which is all that a fold does with them.
    """

    judge: Callable[[bytes, Form], int]
    """Raise `BadMessage` where an upload is out of bounds; else how many of its rows will be shortened."""
    summand: Callable[[bytes, Form], Any]
    """What an accepted upload adds to its round's sum. It was judged when it arrived, and is not checked again."""


class Guarantee(NamedTuple):
    """What sums guarantee of all messages of a lifetime, said in one of two ways."""

    sigma: float | None  # each server's noise, in longest messages; 0: none
    epsilon: float | None
    delta: float


class SumsPlan(NamedTuple):
    """What a federation config of sums says about messages."""

    recipe: str
    factors: int
    columns: int
    clip: float
    noises: tuple[int, ...]
    power: float
    most_shown: float | None = None
    """The share of people to whom one item may be shown where the operator names none; None: there is no bound."""


def _no_forecast(people: int, items: int, delta: float) -> float | None:
    """Noise is not chosen without being asked for."""
    del people, items, delta
    return None


class SumsOf(NamedTuple):
    """What a server must know of a method whose messages may be sent as sums that no single server can open."""

    settings: Callable[[Any, Guarantee], Any]
    """(settings, guarantee) -> the settings of a federation of sums that makes it."""
    plan: Callable[[Any, int, int, Guarantee], SumsPlan]
    """(settings, number of items, people a round, guarantee) -> the plan of a new federation."""
    stage: Callable[[Published], int]
    """(model) -> which of a lifetime's messages a round on it asks for."""
    digest: Callable[[Any, Published], bytes]
    """(settings, model) -> the digest of the model as devices read it."""
    fold: Callable[[Any, SecaggConfig, Published, int, IntVector, int], Content]
    """(settings, federation config, model, people, the noisy sum of all messages, how many they are) -> the next
    version.
    """
    is_drawn: Callable[[Content], bool]
    """(first content) -> whether a federation's seed has drawn it, and it is no trained model."""
    affordable: Callable[[int, int, float], float | None] = _no_forecast
    """(people a round, items, delta) -> the epsilon of a federation that names none; None: no noise."""
    idle: tuple[str, ...] = ()
    """Settings that mean nothing where messages are sums."""
    only: tuple[str, ...] = ()
    """Settings that mean nothing elsewhere."""


def _never(settings: Any, model: Published, body: bytes) -> str | None:
    """Whatever is of the right form may have been sent."""
    del settings, model, body
    return None


def _any_scale(settings: Any, before: Content, after: Content) -> str | None:
    """Scores have no scale that they could leave."""
    del settings, before, after
    return None


def _none_counted(model: Published) -> dict[str, Array]:
    """A model that does not remember whom it was learnt from."""
    del model
    return {}


def _low(settings: Any, content: Content, n_items: int) -> Content:
    """Rows that a larger catalogue needs start low; what the next fold remembers is not about items."""
    del settings
    return lowest_rows(content, n_items)


def _without_end(settings: Any) -> int | None:
    """A device may be invited to every round."""
    del settings
    return None


def as_promised(settings: Any) -> int | None:
    """A device is invited as often as it was promised messages; without end where none were."""
    messages: int | None = settings.messages
    return messages


def _nothing_suggested(settings: Any) -> dict[str, Any] | None:
    """Only what the operator suggests."""
    del settings
    return None


@dataclass(frozen=True, kw_only=True)
class Family:
    """What a server must know of a method."""

    method: str
    """What devices are told, and what the federation config keeps."""
    settings: type[Any]
    """The record of settings."""
    federation_settings: tuple[str, ...]
    """Those that a federation decides."""
    device_settings: tuple[str, ...]
    """Those of them that devices are told."""
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
    """(settings, number of items, number of devices) -> the recipe that the next fold follows."""
    fold: Callable[[Any, Published, int, Iterable[Any]], Content]
    """(recipe, model, round number, summands in the stated order) -> the next version."""
    encode: Callable[[Any, Published, IntVector, int], bytes]
    """(settings, model, rows, round number) -> the Broadcast of these rows, as it is sent."""
    decode: Callable[[Any, bytes, int], Any]
    """(settings, Broadcast, number of items) -> its rows as a client reads them, or `BadMessage`."""
    kinds: Mapping[str, Kind]
    """Every kind of upload that it takes; `plain` is one device's Update, readable by the server."""
    invitations: Callable[[Any], int | None] = _without_end
    """(settings) -> how often a device is invited in its lifetime at most; None: as often as there are rounds."""
    rounds: Mapping[str, Any] = field(default_factory=dict)
    """Where a federation's defaults of `RoundSettings` are not the record's."""
    sharing: tuple[str, ...] = ("all", "fixed-subset", "randomized-response")
    """The ways of sharing that its devices can follow."""
    defences: Defences = NO_DEFENCES
    """What one fold may do to the model, unless the operator says otherwise (protocol/defences.py)."""
    implausible: Callable[[Any, Published, bytes], str | None] = _never
    """(settings, model that it was computed from, plain upload) -> why no device can have sent it; None if one can."""
    out_of_scale: Callable[[Any, Content, Content], str | None] = _any_scale
    """(settings, content before, content after) -> why an aggregate must not be published; None if it may."""
    heard: Callable[[Published], dict[str, Array]] = _none_counted
    """(model) -> how many people it was learnt from and have each item, where it remembers; an export tells it."""
    extend: Callable[[Any, Content, int], Content] = _low
    """(settings, content, number of items) -> the same for a catalogue that has grown: new rows start low."""
    suggests: Callable[[Any], dict[str, Any] | None] = _nothing_suggested
    """(settings) -> the policy that devices are suggested where the operator names none."""
    sums: SumsOf | None = None
    """Where messages may be sent as sums."""


# Uploads that no single server can read, as every family that may be sent as sums takes them in.


def one_noise(guarantee: Guarantee, messages: int) -> tuple[int, ...]:
    """One server's noise on each of a lifetime's messages where all of them are alike; where nothing is promised,
    none.
    """
    each = guarantee.sigma or 0.0
    if guarantee.epsilon is not None:
        each = math.sqrt(messages) / mu_for(guarantee.epsilon, guarantee.delta)
    return (math.ceil(each * C_INT),) * messages


def judge_sealed(body: bytes, form: Form) -> int:
    """Refuse an upload of sums that has not the one form of them; what is in it no one can tell."""
    if form.numbers:
        upload_from(form.check, body, form.numbers)
    return 0


def _unread(body: bytes, form: Form) -> Any:
    """An upload of sums adds nothing by itself: only with the helper's word does its share count."""
    del body, form
    raise AssertionError("uploads of sums are added up by service/server/sums")


SEALED = Kind(judge_sealed, _unread)
