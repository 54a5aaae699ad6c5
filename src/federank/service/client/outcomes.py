"""What became of uploads, and when the next one may leave.

The server is asked until every round has ended, and the owner is informed once for each. A client uploads at most
once per period of its federation; after discarded rounds it waits longer, twice as long after each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from federank.errors import NoAnswer, Refused
from federank.service.client.federation import Outcome, fetch_outcome
from federank.service.client.http import Client
from federank.service.client.rules import FIRST_WAIT, LONGEST_WAIT, MOST_PERIODS
from federank.service.client.secure import Pinned, shows_absence, shows_no_sum
from federank.service.client.state import (
    ABANDONED,
    ABSENT,
    COUNTED,
    LATE,
    RELEASED,
    UNCHARGED,
    UNKNOWN,
    WAITING,
    Identity,
    Upload,
)
from federank.service.client.store import ClientStore

DISCARDED = {
    RELEASED: "it was discarded. The helper's signed record shows that no sum has its uploads: this one is not charged",
    "unproven": "it was discarded. No record of the helper shows that no sum has its uploads: this one stays charged",
    "read": "it was discarded. The server has read this client's upload, so it stays charged",
    "uncounted": "it was discarded, and this client's upload with it",
    LATE: "this client's upload came too late. The helper's signed record shows that no sum has it: it is not charged",
}
"""What it means for an upload that its round was discarded, or had ended."""


def ask_outcomes(store: ClientStore, client: Client, identity: Identity, note: Callable[[str], None]) -> bool:
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
        store.write_outcome(sent.ticket, word, client.clock(), is_charged=word not in UNCHARGED)
        line = line_of(word, identity) or found.message
        if line:
            note(f"Round {sent.round_number}: {line}")
    return waits


def _word_of(found: Outcome, sent: Upload, pinned: Pinned | None) -> str:
    """The server's word, once an upload that is proven to be in no sum is distinguished from one that is not."""
    about = sent.offer, sent.round_number
    if found.word == ABANDONED and pinned is not None:
        return RELEASED if shows_no_sum(found.record, pinned, *about) else ABANDONED
    if found.word == ABSENT and pinned is not None:
        if shows_no_sum(found.record, pinned, *about):
            return RELEASED
        is_late = shows_absence(found.record, found.members, pinned, *about, sent.identifier)
        return LATE if is_late else UNKNOWN
    return UNKNOWN if found.word == ABSENT else found.word


def line_of(word: str, identity: Identity) -> str:
    """What is said of an upload that is in the model, or was discarded with its round; nothing of others."""
    if word == COUNTED:
        return "aggregated; this client's upload is in the model."
    if word not in (ABANDONED, *UNCHARGED):
        return ""
    is_charged = identity.info.rules.counts_messages
    why = "unproven" if identity.sums is not None else "read" if is_charged else "uncounted"
    return DISCARDED[word if word in UNCHARGED else why] + "."


class Wait(NamedTuple):
    """How long a client waits before it takes part again."""

    rounds: int  # in a row that were discarded
    seconds: float  # after the last of them, or after the last upload where none was
    left: float  # of these seconds


def wait_after(uploads: list[Upload], now: float, period: float = 0.0) -> Wait:
    """The wait after the last uploads of a client: one upload per period, and longer after discarded rounds.

    Each further discarded round doubles the wait; a round that was aggregated ends that.
    """
    discarded: list[Upload] = []
    for sent in reversed(uploads):
        if sent.outcome == COUNTED:
            break
        if sent.outcome in (ABANDONED, RELEASED):
            discarded.append(sent)
    since_upload = Wait(0, period, _left(uploads[-1].sent, period, now)) if uploads else Wait(0, 0.0, 0.0)
    ended = discarded[0].ended if discarded else None
    if ended is None:
        return since_upload
    longest = max(LONGEST_WAIT, MOST_PERIODS * period)
    wait = min(max(FIRST_WAIT, period) * 2.0 ** min(len(discarded) - 1, 30), longest)
    left = _left(ended, wait, now)
    return Wait(len(discarded), wait, left) if left >= since_upload.left else since_upload


def _left(since: float, wait: float, now: float) -> float:
    """What is left of a wait: no more than all of it, whatever a clock does."""
    return min(wait, max(0.0, since + wait - now))


def wait_line(wait: Wait) -> str:
    """What a client says that waits for its next upload."""
    if not wait.rounds:
        return f"This federation takes one upload per {wait.seconds:,.0f} s; the client waits that long for the next."
    rounds = "The last round was" if wait.rounds == 1 else f"The last {wait.rounds} rounds were"
    return f"{rounds} discarded; this client waits {wait.seconds:,.0f} s before it takes part again."
