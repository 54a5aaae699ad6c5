"""Devices: how they are invited, enrol, are known by their tokens, leave and are banned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from federank.service.server.store.database import Connection


def enrol(connection: Connection, device: str, token_hash: bytes, code: bytes | None = None) -> bool:
    """A new device, which uses up the invitation with this hash if one is asked for; whether there was one."""
    if code is not None and not connection.run("DELETE FROM invites WHERE code = ?", code):
        return False
    connection.run("INSERT INTO devices (device, token) VALUES (?, ?)", device, token_hash)
    connection.run("UPDATE tallies SET devices = devices + 1")
    return True


def invite(connection: Connection, codes: Iterable[bytes]) -> None:
    """Keep the hashes of new invitations."""
    for code in codes:
        connection.run("INSERT INTO invites (code) VALUES (?)", code)


class Owner(NamedTuple):
    """Whose token it is."""

    device: str
    banned: bool


def device_of(connection: Connection, token_hash: bytes) -> Owner | None:
    """Whose token this is."""
    row = connection.one("SELECT device, banned FROM devices WHERE token = ?", token_hash)
    return None if row is None else Owner(str(row[0]), bool(row[1]))


def leave(connection: Connection, device: str) -> None:
    """Forget a device; its token dies. One that is banned stays known."""
    if connection.run("DELETE FROM devices WHERE device = ? AND banned = 0", device):
        connection.run("UPDATE tallies SET devices = devices - 1, departures = departures + 1")


def ban(connection: Connection, device: str) -> bool | None:
    """Take no Update of a device any more; whether it was not banned before, None if there is no such device."""
    if connection.run("UPDATE devices SET banned = 1 WHERE device = ? AND banned = 0", device):
        connection.run("UPDATE tallies SET devices = devices - 1, departures = departures + 1")
        return True
    return None if connection.one("SELECT 1 FROM devices WHERE device = ?", device) is None else False


class Tallies(NamedTuple):
    """What is counted as it happens, because to count it anew would take longer the more there is."""

    devices: int
    departures: int
    abandoned: int


def tallies(connection: Connection) -> Tallies:
    """How many devices there are, how many have left, how many rounds were abandoned."""
    row = connection.one("SELECT devices, departures, abandoned FROM tallies")
    assert row is not None, "the migration that makes the table makes its row"
    return Tallies(*map(int, row))
