"""A device's state as values: what device_store.py keeps as rows and bytes, read and written here.

Each reader answers with plain records and arrays; each writer is one transaction, or part of one that its caller began.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import FedeRankError, SettingError
from federank.protocol.ledger import Ledger
from federank.protocol.policy import Policy, default_basis
from federank.service.device.messages import Catalogue, Facts, read_facts
from federank.service.device.store import BadState, DeviceStore


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who this device is: to the server (a random id and a token) and to its own draws (two words nobody else has)."""

    server: str
    device: str
    token: str
    seed: int
    user: int
    facts: Facts
    ca: str | None
    insecure: bool


class Model(NamedTuple):
    """The shared model as last received."""

    version: int
    vectors: FloatMatrix
    biases: FloatVector


class RoundVector(NamedTuple):
    """The vector that a device uses in rounds, and what it was learnt from; nothing where that is not known."""

    values: FloatVector
    basis: str | None
    items: frozenset[int]

    def stands(self, basis: str, profile: IntVector) -> bool:
        """Whether it may go on: its owner has taken back nothing of what it was learnt from."""
        return self.basis == basis and self.items <= set(profile.tolist())


class Pending(NamedTuple):
    """An Update that may have left, without a receipt so far."""

    ticket: str
    round_number: int
    body: bytes


def found(
    sql: sqlite3.Connection,
    identity: Identity,
    told: bytes,
    policy: Policy,
    chosen_by: str,
    profile: IntVector,
    vector: FloatVector,
    catalogue: Catalogue,
) -> None:
    """Write a new device's first state; `told` is the federation's own description, kept as it came."""
    sql.execute(
        "INSERT INTO identity VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            identity.server,
            identity.device,
            identity.token,
            identity.seed,
            identity.user,
            told.decode(),
            identity.ca,
            identity.insecure,
        ),
    )
    sql.execute(
        "INSERT INTO person VALUES (1, ?, ?, ?, NULL, NULL, 0, NULL, NULL)",
        (policy_as_text(policy), chosen_by, vector.tobytes()),
    )
    sql.executemany("INSERT INTO profile VALUES (?)", [(int(item),) for item in profile])
    packed = zlib.compress(json.dumps(catalogue._asdict()).encode())
    sql.execute("INSERT INTO catalogue VALUES (1, ?)", (packed,))


def identity_of(store: DeviceStore) -> Identity:
    """Who this device is."""
    row = _needed(store, "SELECT server, device, token, seed, user, federation, ca, insecure FROM identity")
    server, device, token, seed, user, told, ca, insecure = row
    return Identity(
        server=server,
        device=device,
        token=token,
        seed=seed,
        user=user,
        facts=read_facts(told.encode()),
        ca=ca,
        insecure=bool(insecure),
    )


def policy_of(store: DeviceStore) -> tuple[Policy, str]:
    """What the owner allows, and who chose it: `owner`, or `suggested` by the federation."""
    text, chosen_by = _needed(store, "SELECT policy, chosen_by FROM person")
    return policy_from_text(text, str(store.path)), chosen_by


def set_policy(store: DeviceStore, policy: Policy, chosen_by: str = "owner") -> None:
    """Keep another policy; a device that is running follows it from its next round.

    An Update that waits to be sent again was made under the old policy: it is dropped. It may have left before, and so
    it stays in the ledger.
    """
    with store.transaction() as sql:
        sql.execute("UPDATE person SET policy = ?, chosen_by = ?", (policy_as_text(policy), chosen_by))
        sql.execute("DELETE FROM pending")


def policy_as_text(policy: Policy) -> str:
    """A policy as JSON."""
    return json.dumps(asdict(policy) | {"never_items": sorted(policy.never_items)})


def policy_from_text(text: str, where: str) -> Policy:
    """A policy from JSON; `where` it was found is named if it is none."""
    try:
        return policy_from_values(json.loads(text))
    except (ValueError, TypeError, FedeRankError) as reason:
        raise BadState(f"{where} holds a policy that cannot be followed: {reason}") from reason


def policy_from_values(values: dict[str, Any]) -> Policy:
    """A policy from plain values, with the default basis of its way of sharing where none is named."""
    known = set(Policy.__dataclass_fields__)
    unknown = sorted(set(values) - known)
    if unknown:
        raise SettingError(f"A policy has no {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
    return Policy(
        **{"basis": default_basis(str(values.get("sharing")))}
        | values
        | {"never_items": frozenset(values.get("never_items") or ())}
    )


def profile_of(store: DeviceStore) -> IntVector:
    """The items of the owner's history, ascending."""
    return np.array([item for (item,) in store.rows("SELECT item FROM profile ORDER BY item")], dtype=np.int32)


def keep_profile(store: DeviceStore, profile: IntVector) -> None:
    """Keep another history in the place of the last one; the home vector is learnt anew.

    An Update that waits to be sent again is dropped if anything was taken out of the history that it was made from.
    """
    taken_out = np.setdiff1d(profile_of(store), profile)
    with store.transaction() as sql:
        if len(taken_out):
            sql.execute("DELETE FROM pending")
        sql.execute("DELETE FROM profile")
        sql.executemany("INSERT INTO profile VALUES (?)", [(int(item),) for item in profile])
        sql.execute("UPDATE person SET home = NULL, home_version = NULL")


def vector_of(store: DeviceStore, factors: int) -> FloatVector:
    """The vector that the device uses in rounds."""
    (content,) = _needed(store, "SELECT vector FROM person")
    return _floats(store, content, factors)


def round_vector_of(store: DeviceStore, factors: int) -> RoundVector:
    """The same with what it was learnt from."""
    (text,) = _needed(store, "SELECT learnt_from FROM person")
    values = vector_of(store, factors)
    if text is None:
        return RoundVector(values, None, frozenset())
    try:
        told = json.loads(text)
        return RoundVector(values, told["basis"], frozenset(told["items"]))
    except (ValueError, TypeError, KeyError) as reason:
        raise BadState(f"{store.path} is damaged: it does not say what its vector was learnt from.") from reason


def keep_round_vector(sql: sqlite3.Connection, vector: RoundVector) -> None:
    """Keep a vector in the place of the last one."""
    told = json.dumps({"basis": vector.basis, "items": sorted(vector.items)})
    sql.execute("UPDATE person SET vector = ?, learnt_from = ?", (vector.values.tobytes(), told))


def model_of(store: DeviceStore, n_items: int, factors: int) -> Model | None:
    """The shared model as last received, if any was."""
    row = store.one("SELECT version, vectors, biases FROM model")
    if row is None:
        return None
    version, vectors, biases = row
    return Model(
        version, _floats(store, vectors, n_items * factors).reshape(n_items, factors), _floats(store, biases, n_items)
    )


def version_of(store: DeviceStore) -> int:
    """The version of the shared model as last received; -1 if none was."""
    row = store.one("SELECT version FROM model")
    return -1 if row is None else int(row[0])


def keep_model(sql: sqlite3.Connection, model: Model) -> None:
    """Keep a model in the place of the last one."""
    sql.execute(
        "REPLACE INTO model VALUES (1, ?, ?, ?)", (model.version, model.vectors.tobytes(), model.biases.tobytes())
    )


def home_of(store: DeviceStore, factors: int, version: int) -> FloatVector | None:
    """The home vector, if it was learnt with this version of the model."""
    row = store.one("SELECT home FROM person WHERE home IS NOT NULL AND home_version = ?", version)
    return None if row is None else _floats(store, row[0], factors)


def keep_home(store: DeviceStore, vector: FloatVector, version: int) -> None:
    """Keep a home vector."""
    with store.transaction() as sql:
        sql.execute("UPDATE person SET home = ?, home_version = ?", (vector.tobytes(), version))


def catalogue_of(store: DeviceStore) -> Catalogue:
    """The items' ids, titles and categories."""
    (packed,) = _needed(store, "SELECT packed FROM catalogue")
    try:
        return Catalogue(**json.loads(zlib.decompress(packed)))
    except (zlib.error, ValueError, TypeError) as reason:
        raise BadState(f"{store.path} is damaged: its catalogue cannot be read ({reason}).") from reason


def ledger_of(store: DeviceStore) -> Ledger:
    """All that has left this device."""
    names = ("item", "first_round", "last_round", "times_liked", "times_compared", "real")
    found = store.rows(f"SELECT {', '.join(names)} FROM ledger ORDER BY item")
    return Ledger.from_rows(dict(zip(names, row, strict=True)) for row in found)


def keep_ledger(sql: sqlite3.Connection, ledger: Ledger, items: IntVector) -> None:
    """Keep the ledger's lines for these items."""
    sql.executemany(
        "REPLACE INTO ledger VALUES (:item, :first_round, :last_round, :times_liked, :times_compared, :real)",
        [asdict(ledger.entries[int(item)]) for item in items],
    )


def pending_of(store: DeviceStore) -> Pending | None:
    """The Update without a receipt, if there is one."""
    row = store.one("SELECT ticket, round, body FROM pending")
    return None if row is None else Pending(*row)


def rounds_of(store: DeviceStore) -> int:
    """How many rounds this device has taken part in."""
    (rounds,) = _needed(store, "SELECT rounds FROM person")
    return int(rounds)


def last_ticket_of(store: DeviceStore) -> str | None:
    """The ticket of the last Update that was made; there is never a second one for it."""
    (ticket,) = _needed(store, "SELECT last_ticket FROM person")
    return None if ticket is None else str(ticket)


def _needed(store: DeviceStore, query: str) -> tuple[Any, ...]:
    row = store.one(query)
    if row is None:
        raise BadState(f"{store.path} is damaged: it lacks what `{query}` asks for. Restore it from a copy.")
    return row


def _floats(store: DeviceStore, content: Any, size: int) -> FloatVector:
    if not isinstance(content, bytes) or len(content) != 4 * size:
        raise BadState(f"{store.path} is damaged: {size:,} numbers are needed where it has something else.")
    values = np.frombuffer(content, dtype=np.float32)
    if not np.isfinite(values).all():
        raise BadState(f"{store.path} is damaged: it holds values that are not finite numbers.")
    return values
