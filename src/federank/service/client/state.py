"""A client's state as values: who it is, the Update on its way, what its owner allows.

The store (store.py) keeps them and gives them back; a round (client.py) works on them. What a federation hands out has
its records in federation.py.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from federank.errors import BadState, FedeRankError, SettingError
from federank.files import PRIVATE
from federank.privacy.policy import Policy, default_basis
from federank.service.client.federation import FederationInfo
from federank.service.client.secure import Pinned

# A file of its owner alone: written completely or not at all, refused if others can open it, locked by one process.
#
# Faults of the disk and of the file come out as sentences for the owner.


SECONDS_TO_WAIT = 10.0
"""How long a file that another process writes to is waited for."""


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty file under another name, to be filled inside the `with`; it gets its own name once it is complete."""
    if path.exists():
        raise BadState(f"{path} is there already; a new client needs another --state.")
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    try:
        yield unfinished
        try:
            os.link(unfinished, path)  # unlike a rename, it never replaces a client that another process enrolled
        except FileExistsError:
            raise BadState(
                f"{path} was made by another process in the meantime; a new client needs another --state."
            ) from None
    finally:
        for left in (unfinished, unfinished.with_name(f"{unfinished.name}-journal")):
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """A lock on a file that the system releases with the process."""
    try:
        import fcntl
    except ImportError:
        raise BadState("Taking part needs a system that can lock files for a process: Linux or macOS.") from None
    refuse_absence(path)
    # Not one of SQLite's own locks (those are fcntl's, these flock's), so looking into the file stays possible.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadState(
                f"Another process takes part with {path} already; stop that one first, or give each client a --state "
                "of its own."
            ) from None
        yield
    finally:
        os.close(file)


def refuse_absence(path: Path) -> None:
    """A client that is not there must be enrolled first."""
    if not path.is_file():
        raise BadState(
            f"There is no client at {path}. `federank client --server ... --profile ...` enrols one; --state names its "
            "file."
        )


def refuse_other_readers(path: Path) -> None:
    """A history that others on the machine can open is not used until they cannot."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise BadState(
            f"{path} holds a person's history and can be opened by others on this machine; make it its owner's alone "
            f"with `chmod 600 {path}`."
        )


@contextlib.contextmanager
def faults_as_sentences(path: Path) -> Iterator[None]:
    """Faults of the disk and of the file, as sentences for the owner."""
    try:
        yield
    except sqlite3.Error as fault:
        raise BadState(_sentence(path, str(fault))) from fault
    except OSError as fault:
        reason = "disk is full" if fault.errno == errno.ENOSPC else str(fault)
        raise BadState(_sentence(path, reason)) from fault


def _sentence(path: Path, reason: str) -> str:
    if "full" in reason:
        return f"The disk that holds {path} is full; nothing of this step was kept or sent. Free space and try again."
    if "locked" in reason:
        return f"{path} is busy: another process has held it for {SECONDS_TO_WAIT:.0f} seconds. Try again."
    if "readonly" in reason or "unable to open" in reason or "Errno" in reason or "I/O" in reason:
        return f"{path} cannot be read and written ({reason}); look at the folder's permissions and disk."
    return (
        f"{path} is damaged ({reason}). Restore it from a copy, or enrol again with another --state; what the damaged "
        "file recorded as sent stays sent."
    )


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who this client is: to the server (a random id and a token) and to its own draws (two words no one else has)."""

    server: str
    client_id: str
    token: str
    seed: int
    user: int
    info: FederationInfo
    ca: str | None
    insecure: bool
    sums: Pinned | None = None  # where uploads are such that no single server can read one


class Pending(NamedTuple):
    """An Update that may have left, without a receipt so far."""

    ticket: str
    round_number: int
    body: bytes


COUNTED, ABANDONED, WAITING = "counted", "abandoned", "waiting"
"""What a server says became of an upload; any other word says why it was left out of its round."""
RELEASED, LATE, REFUSED, UNKNOWN = "released", "late", "refused", "unknown"
"""What a client concludes besides: discarded with its round or too late for it, both proven to be in no sum; refused;
not known."""
UNCHARGED = RELEASED, LATE
ABSENT = "absent"
"""What a server says of an upload that its round has ended without."""


class Upload(NamedTuple):
    """An upload that has left this client, and what became of it; None while its round has not ended."""

    ticket: str
    round_number: int
    offer: str | None  # digest of the offer that it was made for, under secure aggregation
    outcome: str | None
    ended: float | None  # when this client learnt of that, in seconds since 1970
    sent: float = 0.0  # when it was made, to be sent at once
    identifier: str | None = None  # the random id of the upload, under secure aggregation


class KeptSeason(NamedTuple):
    """What a season that the client was in has promised."""

    number: int  # of the client's own seasons, from 1
    season: int  # of its federation's
    config: str  # digest of the federation config, under secure aggregation
    uploads: int | None
    mu: float | None  # of the noise on all of its uploads; None without noise
    until: str


class ChosenPolicy(NamedTuple):
    """A policy, and who chose it: the `owner`, or it was `suggested` by the federation and the owner named none."""

    policy: Policy
    chosen_by: str


def policy_as_text(policy: Policy) -> str:
    """A policy as JSON."""
    return json.dumps(asdict(policy) | {"never_items": sorted(policy.never_items)})


def policy_from_text(text: str, where: str) -> Policy:
    """A policy from JSON; `where` it was kept is named if it is none."""
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


def suggested_policy(info: FederationInfo) -> ChosenPolicy:
    """The federation's suggestion, for an owner who named no policy."""
    if info.suggested_policy is None:
        raise SettingError(
            "What may leave this client? This federation suggests nothing; say it with --pi, from 0 (no liked item) to "
            "1 (all of them), and --sharing fixed-subset so that it holds for its lifetime."
        )
    values: dict[str, Any] = {name: value for name, value in info.suggested_policy.items() if value is not None}
    try:
        return ChosenPolicy(policy_from_values(values), "suggested")
    except (FedeRankError, TypeError, OverflowError) as reason:
        raise SettingError(
            f"This federation suggests a policy that cannot be followed ({reason}); choose your own, with --pi."
        ) from reason
