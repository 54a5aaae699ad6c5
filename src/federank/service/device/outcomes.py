"""What became of uploads: the server is asked until every round has ended, and the owner is told once for each.

A receipt says that an upload was stored. Whether it is in the model shows only when its round has ended: aggregated, or
discarded. Until then the device sends no other upload; after a discarded round it waits, twice as long after each.

A discarded upload is not charged to the number of messages in a life if the helper's signed record shows that no sum
was ever made of its round. Without that proof it stays charged: where a single server reads uploads there is no such
proof, and the server has read this one. An upload that was left out of its round stays charged too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from federank.errors import NoAnswer, Refused
from federank.service.device.requests.client import Client
from federank.service.device.requests.federation import Outcome, fetch_outcome
from federank.service.device.requests.sums import Pinned, shows_no_sum
from federank.service.device.rules import FIRST_WAIT, LONGEST_WAIT
from federank.service.device.state import ABANDONED, COUNTED, RELEASED, UNKNOWN, WAITING, Identity, Upload
from federank.service.device.store.store import DeviceStore

DISCARDED = {
    RELEASED: "it was discarded. The helper's signed record shows that no sum has its uploads: this one is not charged",
    "unproven": "it was discarded. No record of the helper shows that no sum has its uploads: this one stays charged",
    "read": "it was discarded. The server has read this device's upload, so it stays charged",
    "uncounted": "it was discarded, and this device's upload with it",
}
"""What a discarded round means for an upload of it."""


def ask_outcomes(store: DeviceStore, client: Client, identity: Identity, note: Callable[[str], None]) -> bool:
    """Ask about every upload whose round may have ended; whether one of them is still waited for.

    A server that is away is asked another time.
    """
    waits = False
    for sent in store.uploads():
        if sent.outcome is not None:
            continue
        try:
            found = fetch_outcome(client, sent.ticket)
            word = _word_of(found, sent, identity.sums)
        except NoAnswer as reason:
            note(f"Round {sent.round_number}: what became of the upload is not known yet ({reason})")
            return True
        except Refused as refusal:
            if refusal.status != 404:
                raise
            found, word = Outcome(UNKNOWN, "", ""), UNKNOWN
        if word == WAITING:
            waits = True
            continue
        store.write_outcome(sent.ticket, word, client.clock(), is_charged=word != RELEASED)
        line = line_of(word, identity) or found.message
        if line:
            note(f"Round {sent.round_number}: {line}")
    return waits


def _word_of(found: Outcome, sent: Upload, pinned: Pinned | None) -> str:
    """The server's word, once a discarded round that has a proof is told from one that has none."""
    if found.word != ABANDONED or pinned is None:
        return found.word
    return RELEASED if shows_no_sum(found.record, pinned, sent.offer, sent.round_number) else ABANDONED


def line_of(word: str, identity: Identity) -> str:
    """What is said of an upload that is in the model, or was discarded with its round; nothing of others."""
    if word == COUNTED:
        return "aggregated; this device's upload is in the model."
    if word not in (ABANDONED, RELEASED):
        return ""
    is_charged = identity.facts.rules.counts_messages
    why = "unproven" if identity.sums is not None else "read" if is_charged else "uncounted"
    return DISCARDED[word if word == RELEASED else why] + "."


class Wait(NamedTuple):
    """How long a device waits before it takes part again, after so many discarded rounds in a row."""

    rounds: int
    seconds: float
    left: float  # of these seconds


def wait_after(uploads: list[Upload], now: float) -> Wait:
    """The wait after the last uploads of a device; a round that was aggregated ends it."""
    discarded: list[Upload] = []
    for sent in reversed(uploads):
        if sent.outcome == COUNTED:
            break
        if sent.outcome in (ABANDONED, RELEASED):
            discarded.append(sent)
    ended = discarded[0].ended if discarded else None
    if ended is None:
        return Wait(0, 0.0, 0.0)
    wait = min(FIRST_WAIT * 2.0 ** min(len(discarded) - 1, 30), LONGEST_WAIT)
    return Wait(len(discarded), wait, min(wait, max(0.0, ended + wait - now)))  # no longer, whatever a clock does
