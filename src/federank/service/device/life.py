"""A person's device: it waits for work, learns at home, sends what its owner allows, and remembers what it sent.

    1. an Update that was interrupted is sent again, the very same bytes
    2. wait for work (a long poll), get a ticket for one round
    3. fetch the rows of the shared model that have changed
    4. play the round (device_round.py)
    5. keep the new vector, the ledger, the model and the Update, all at once, on the disk
    6. send the Update; on a receipt, a definite no or a change of the owner's mind, forget its bytes

Whatever the server says, steps 4 and 5 follow the owner's policy, which only its owner can change. A server that breaks
the protocol ends the device's work with a sentence; a server that is away is asked again with patience.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from urllib.parse import quote

from federank.protocol.messages import encode
from federank.protocol.policy import Outward, outward
from federank.service.device.client import Client
from federank.service.device.messages import Ticket, merged, read_receipt, read_rows, read_ticket
from federank.service.device.round import can_take_part, play
from federank.service.device.settling import settled, settled_again
from federank.service.device.state import (
    Identity,
    Model,
    Pending,
    keep_ledger,
    keep_model,
    keep_round_vector,
    last_ticket_of,
    ledger_of,
    model_of,
    pending_of,
    policy_of,
    profile_of,
    round_vector_of,
    version_of,
)
from federank.service.device.store import DeviceStore
from federank.service.device.transfer import BadAnswer, NoAnswer, Refused, Withdrawn

SECONDS_OF_A_POLL = 30
SECONDS_BETWEEN_POLLS = 1.0
OLDER_IN_A_ROW = 10
"""So often in a row the server may offer a round on an older model than the device has."""
SECONDS_BETWEEN_LOOKS = 5.0
"""How often a paused device looks whether it may go on."""

Note = Callable[[str], None]


def take_part(store: DeviceStore, client: Client, rounds: int | None, note: Note) -> int:
    """Take part in this many rounds (or until stopped); how many of its Updates the server has stored."""
    identity = settled(store, client, note)
    stored, played, older, told = 0, 0, 0, ""
    interrupted = pending_of(store)
    if interrupted is not None:
        note(f"Round {interrupted.round_number}: sending again what was interrupted.")
        stored += send_pending(store, client, interrupted, None, note)
    while rounds is None or played < rounds:
        reason = reason_to_stay_out(store, identity)
        if reason is not None:
            if reason != told:
                note(reason)
            told = reason
            if rounds is not None:
                break
            client.sleep(SECONDS_BETWEEN_LOOKS)
            continue
        try:
            ticket = wait_for_work(client)
            if ticket is None:
                continue
            older = older + 1 if ticket.version < version_of(store) else 0
            if older:
                pass_over(ticket, version_of(store), older, note)
                client.sleep(SECONDS_BETWEEN_POLLS)
                continue
            until = time.monotonic() + ticket.deadline_seconds
            pending = prepare(store, client, identity, ticket, until, note)
            if pending is None:
                client.sleep(SECONDS_BETWEEN_POLLS)  # nothing came of it: a server that offers it again is not rushed
                continue
            stored += send_pending(store, client, pending, until, note)
            played += 1
        except Refused as refusal:
            identity = settled_again(store, client, identity, refusal, note)
    return stored


def reason_to_stay_out(store: DeviceStore, identity: Identity) -> str | None:
    """Why the owner's policy keeps the device from asking for work, if it does."""
    policy, _ = policy_of(store)
    if policy.paused:
        return "This device is paused; `federank device resume` lets it go on."
    if outward_profile(store, identity) is None:
        return "The owner's policy leaves nothing to take part with; the device recommends, and sends nothing."
    return None


def outward_profile(store: DeviceStore, identity: Identity) -> Outward | None:
    """What the device would take part with now, if with anything."""
    policy, _ = policy_of(store)
    n_items = identity.facts.n_items
    taken = outward(policy, identity.seed, identity.user, profile_of(store), n_items, ledger_of(store).really_liked())
    return taken if can_take_part(taken, policy, n_items) else None


def wait_for_work(client: Client) -> Ticket | None:
    """A ticket, or none if there was nothing to do for a while."""
    began = time.monotonic()
    answer = client.ask("GET", f"/work?wait={SECONDS_OF_A_POLL}", wait=SECONDS_OF_A_POLL)
    if answer.status == 200:
        return read_ticket(answer.content)
    if time.monotonic() - began < SECONDS_BETWEEN_POLLS:
        client.sleep(SECONDS_BETWEEN_POLLS)  # a server that answers at once instead of holding the line is not rushed
    return None


def pass_over(ticket: Ticket, have: int, times: int, note: Note) -> None:
    """A round on an older model than the device has is not for it: one of the server's workers may lag behind.

    Only a server that offers nothing else, time after time, has gone back.
    """
    if times == OLDER_IN_A_ROW:
        raise BadAnswer(
            f"The server keeps offering work on version {ticket.version} of its model, and this device has version "
            f"{have} already: versions never go back. Nothing was sent; ask the operator whether a backup was put "
            "back without --restored."
        )
    note(f"Round {ticket.round_number}: it is on an older model than this device has; asking again.")


def prepare(
    store: DeviceStore, client: Client, identity: Identity, ticket: Ticket, until: float, note: Note
) -> Pending | None:
    """Fetch the model, play the round and keep all of it; nothing if the round is over or nothing may leave."""
    facts = identity.facts
    if ticket.ticket == last_ticket_of(store):
        note(f"Round {ticket.round_number}: this device has made its Update already, and makes no other.")
        return None
    have = model_of(store, facts.n_items, facts.settings.factors)
    try:
        path = f"/tasks/{quote(ticket.ticket, safe='')}" + (f"?have={have.version}" if have else "")
        content = client.ask("GET", path, most_bytes=facts.most_model_bytes, until=until).content
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        note(f"Round {ticket.round_number}: not taken part ({reason})")
        return None
    rows = read_rows(content, facts.settings.factors, facts.n_items)
    if (rows.round_number, rows.version) != (ticket.round_number, ticket.version):
        raise BadAnswer(
            f"The server promised round {ticket.round_number} on version {ticket.version} and sent round "
            f"{rows.round_number} on version {rows.version}; nothing was sent."
        )
    model = Model(rows.version, *merged(rows, have, facts.n_items))
    ledger = ledger_of(store)
    with store.transaction() as sql:
        # Inside the transaction: a policy that its owner changes now is either followed here or changed after.
        policy, _ = policy_of(store)
        kept = round_vector_of(store, facts.settings.factors)
        played = play(identity, policy, profile_of(store), kept, model, ledger, ticket.round_number)
        keep_model(sql, model)
        if played is None:
            note(f"Round {ticket.round_number}: the policy leaves nothing to take part with.")
            return None
        if len(played.update.items) > ticket.most_rows:
            raise BadAnswer(
                f"The server takes at most {ticket.most_rows:,} rows and its own recipe makes "
                f"{len(played.update.items):,}; nothing was sent."
            )
        keep_ledger(sql, ledger, played.update.items)
        keep_round_vector(sql, played.vector)
        sql.execute("UPDATE person SET last_ticket = ?, rounds = rounds + 1", (ticket.ticket,))
        pending = Pending(ticket.ticket, ticket.round_number, encode(played.update))
        sql.execute("INSERT INTO pending VALUES (1, ?, ?, ?)", pending)
    return pending


def send_pending(store: DeviceStore, client: Client, pending: Pending, until: float | None, note: Note) -> bool:
    """Send an Update until there is a receipt, a definite no, or no time left; whether the server has stored it.

    Its owner may change the policy meanwhile, from another process. That removes the Update from the file, and so it is
    not tried again.
    """

    def is_still_kept() -> bool:
        kept = pending_of(store)
        return kept is not None and kept.ticket == pending.ticket

    stored = False
    try:
        path = f"/tasks/{quote(pending.ticket, safe='')}/update"
        answer = client.ask("POST", path, pending.body, until=until, still=is_still_kept)
        stored = read_receipt(answer.content) == hashlib.sha256(pending.body).hexdigest()
        if not stored:
            note(f"Round {pending.round_number}: the receipt is not for what was sent.")
        else:
            note(f"Round {pending.round_number}: {len(pending.body):,} bytes sent and stored.")
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        note(f"Round {pending.round_number}: not counted ({reason})")
    except Withdrawn:
        note(f"Round {pending.round_number}: held back, as the policy was changed before it had arrived.")
    with store.transaction() as sql:
        sql.execute("DELETE FROM pending WHERE ticket = ?", (pending.ticket,))
    return stored
