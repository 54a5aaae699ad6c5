"""What became of messages that no single server can read: asked of the leader, told to the owner, once each.

A receipt says that a message was stored; whether it counts shows only when both servers have looked at it. One that is
left out (its proof does not hold, the helper could not open it) stays spent: it has left, and the ledger keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

from federank.errors import NoAnswer, Refused
from federank.service.device.requests.client import Client
from federank.service.device.requests.federation import fetch_outcome
from federank.service.device.store.store import DeviceStore

WAITING, UNKNOWN = "waiting", "unknown"


def ask_outcomes(store: DeviceStore, client: Client, note: Callable[[str], None]) -> None:
    """Ask about every message whose outcome is not known yet; a server that is away is asked another time."""
    for sent in store.unsettled():
        try:
            told = fetch_outcome(client, sent.ticket)
        except NoAnswer:
            return
        except Refused as refusal:
            if refusal.status != 404:
                return  # whatever it is, the next request for work meets it too, and deals with it
            store.write_outcome(sent.number, UNKNOWN)
            continue
        if told.word == WAITING:
            continue
        store.write_outcome(sent.number, told.word)
        if told.message:
            note(f"Round {sent.round_number}: {told.message}")
