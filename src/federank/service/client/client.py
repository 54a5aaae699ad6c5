"""A person's client: it waits for work, learns at home, sends what its owner allows, and remembers what it sent.

    1. an Update that was interrupted is sent again, the very same bytes
    2. wait for work (a long poll), get a ticket for one round
    3. fetch the rows of the shared model that have changed
    4. play the round
    5. keep the new vector, the ledger, the model and the Update, all at once, on the disk
    6. send the Update; on a receipt, a definite no or a change of the owner's mind, forget its bytes
    7. ask until its round has ended: aggregated or discarded. Only then may another Update leave, at most one per
       period of the federation, and after discarded rounds only after a wait that grows each time

Whatever the server says, steps 4 and 5 follow the owner's policy, which only its owner can change, and the number of
messages that was promised: a client that has sent them sends no more, and still fetches models to recommend from. A
server that breaks the protocol ends the client's work with a sentence; a server that is away is asked again with
patience.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadAnswer, NoAnswer, Refused, Withdrawn
from federank.federation.client import History, Model, Played, RoundVector, Terms, User, can_afford, spent_of
from federank.privacy.accountant import MOST_ANSWERS, SQUARED, answered
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, SharedProfile, shared_profile
from federank.secagg.config import is_over
from federank.secagg.upload import id_of
from federank.service.client.enrolment import settle, settle_again
from federank.service.client.federation import (
    FederationInfo,
    Ticket,
    fetch_info,
    fetch_model,
    fetch_rows,
    helper_is_away,
    merged,
    send_update,
    wait_for_work,
)
from federank.service.client.http import Client
from federank.service.client.outcomes import ask_outcomes, wait_after, wait_line
from federank.service.client.rules import BETWEEN_POLLS, LONG_POLL, MOST_OLDER_OFFERS
from federank.service.client.seasons import follow_season, has_new_season, season_policy, within_cap
from federank.service.client.secure import NOTHING_CAN_BE_SENT, fetch_offer
from federank.service.client.state import REFUSED, UNCHARGED, Identity, Pending
from federank.service.client.store import ClientStore

# A client's part of one round: what it takes part with, computation, transmission, the ledger; nothing is sent yet.


def can_take_part(taken: SharedProfile, policy: Policy, info: FederationInfo) -> bool:
    """Whether its owner lets the client, and with something: neither paused, nor nothing, nor everything to show."""
    most = info.n_items - 1 if info.rules.needs_others else info.n_items
    return not policy.paused and 0 < len(taken.profile) <= most


def shared_profile_of(
    identity: Identity, policy: Policy, history: IntVector, ledger: Ledger, ended: Sequence[int] = ()
) -> SharedProfile:
    """What the client would take part with now."""
    info = identity.info
    kept = info.rules.sharing_policy(policy)
    taken = shared_profile(kept, identity.seed, identity.user, history, info.n_items, ledger.really_liked())
    if not len(ended):
        return taken
    stays = ~np.isin(taken.profile, ended)  # nor are decoys of items that are there no more
    return taken._replace(profile=taken.profile[stays], real=taken.real[stays], allowed=taken.allowed[stays])


def messages_left(identity: Identity, policy: Policy, ledger: Ledger) -> int | None:
    """How many messages may still leave this client in this season; None where no number was promised."""
    allowed = identity.info.rules.messages(season_policy(policy, ledger))
    return None if allowed is None else max(0, allowed - ledger.spent)


def play(
    identity: Identity,
    policy: Policy,
    history: History,
    kept: RoundVector,
    model: Model,
    ledger: Ledger,
    round_number: int,
    terms: Terms | None = None,
    ended: Sequence[int] = (),
) -> Played | None:
    """Play a round and record it in the ledger; nothing where the owner's policy leaves nothing to take part with.

    `terms` are those on which a message is split, where no single server may read it.
    """
    info = identity.info
    taken = shared_profile_of(identity, policy, history.items, ledger, ended)
    if not can_take_part(taken, policy, info) or messages_left(identity, policy, ledger) == 0:
        return None
    allowed = season_policy(policy, ledger)
    person = User(identity.seed, identity.user, allowed, taken, kept, terms)
    person = person._replace(ratings=history.ratings_of(taken.profile))
    return info.rules.play(person, model, ledger, round_number)


# Federated evaluation: one item is held back. Whether the federation would have recommended it is reported, with
# randomized response.


FIRST = 10
_CHANCE = random.SystemRandom().random


def found(store: ClientStore, identity: Identity, model: Model, held_back: int) -> bool:
    """Whether the held-back item is among the first ten that this client would recommend without knowing it."""
    info, history = identity.info, store.training_history()
    vector = info.rules.home_vector(identity.seed, identity.user, history, model)
    scores = info.rules.scores(model, vector)
    scores[history.items] = -np.inf
    scores[list(store.catalogue().ended)] = -np.inf
    return bool(held_back in np.argsort(-scores, kind="stable")[:FIRST])


def near(
    store: ClientStore, identity: Identity, model: Model, held_back: int, chance: float, *, is_squared: bool = False
) -> bool:
    """Whether the held-back rating is predicted well, rounded at random: surely where it is met, never a scale off."""
    info, history, ratings = identity.info, store.training_history(), store.history()
    assert info.scale is not None, "ratings are held back where items are rated"
    vector = info.rules.home_vector(identity.seed, identity.user, history, model)
    predicted = float(info.rules.scores(model, vector)[held_back])
    reported = predicted if math.isfinite(predicted) else float(history.ratings.mean())
    low, high = info.scale.lowest, info.scale.highest
    actual = float(ratings.ratings[np.searchsorted(ratings.items, held_back)])
    off = abs(min(max(reported, low), high) - actual) / (high - low)
    return chance >= (off * off if is_squared else off)


def send_evaluation(
    store: ClientStore,
    client: Client,
    identity: Identity,
    ticket: Ticket,
    note: Callable[[str], None],
    chance: Callable[[], float] = _CHANCE,
) -> bool:
    """Answer once about the model of a ticket, where the owner agreed and answers are left; whether it was counted."""
    held_back, version = store.held_back(), store.model_version()
    if held_back is None or version != ticket.version or not store.may_answer(version, MOST_ANSWERS):
        return False
    model = store.model(identity.info)
    if model is None:
        return False
    is_rating = identity.info.scale is not None
    is_squared = is_rating and chance() < 0.5
    truth = (
        near(store, identity, model, held_back, chance(), is_squared=is_squared)
        if is_rating
        else found(store, identity, model, held_back)
    )
    reported = {"ticket": ticket.ticket, "hit": answered(truth, chance())} | (
        {"measure": SQUARED} if is_squared else {}
    )
    store.write_answer(version)  # counted before it leaves: what may have left has left
    body = json.dumps(reported).encode()
    try:
        client.request("POST", "/hits", body, attempts=1, headers={"Content-Type": "application/json"})
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        note(f"The answer about version {version} was not counted ({reason})")
        return False
    how = "how near it predicts the rating that is held back" if is_rating else "whether it finds the item held back"
    note(f"Reported on version {version} with randomized response, {how}.")
    return True


SECONDS_BETWEEN_LOOKS = 5.0
"""How often a client that takes no part looks whether it may go on."""
SECONDS_BETWEEN_MODELS = 600.0
"""How often such a client, unless it is paused, asks whether there is a newer model."""
SECONDS_BETWEEN_CHECKS = 3600.0
"""How often a client that waits for its next upload asks for the model and the period again."""
LOOKS_BETWEEN_OUTCOMES = 6
"""How many such looks there are between two questions about an upload whose round has not ended."""

UNINVITED = (
    "The server has invited this client as often as it will in this season; the client sends nothing more, and still "
    "gets models, and recommends from them."
)
WAITS_FOR_HELPER = f"{NOTHING_CAN_BE_SENT}; the client goes on by itself when the server is back."
Note = Callable[[str], None]


def take_part(store: ClientStore, client: Client, rounds: int | None, note: Note) -> int:
    """Take part in this many rounds (or until stopped); how many of its Updates the server has stored."""
    identity = settle(store, client, note)
    stored, played, older, polls, looks, noted, fetched = 0, 0, 0, 0, 0, "", -math.inf
    interrupted = store.pending()
    if interrupted is not None:
        note(f"Round {interrupted.round_number}: sending again what was interrupted.")
        stored += send_pending(store, client, interrupted, None, note)
    ask_last_outcomes(store, client, identity, note)
    uninvited: str | None = None
    while rounds is None or played < rounds:
        reason = uninvited or reason_to_stay_out(store, identity)
        if reason is not None:
            if reason != noted:
                note(reason)
            noted = reason
            if not store.policy().policy.paused and time.monotonic() - fetched >= SECONDS_BETWEEN_MODELS:
                fetched, season = time.monotonic(), identity.info.season
                identity = refresh_model(store, client, identity, note)
                if identity.info.season != season:
                    uninvited = None
                    continue
            if rounds is not None:
                break
            looks += 1
            if looks % LOOKS_BETWEEN_OUTCOMES == 0:
                ask_last_outcomes(store, client, identity, note)
            client.sleep(SECONDS_BETWEEN_LOOKS)
            continue
        try:
            if ask_outcomes(store, client, identity, note):
                noted = note_absent_helper(client, identity, noted, note)
                client.sleep(min(BETWEEN_POLLS * 2**polls, LONG_POLL))
                polls = min(polls + 1, 10)
                continue
            polls = 0
            wait = wait_after(store.uploads(), client.clock(), identity.info.upload_period)
            if wait.left > 0:
                if wait_line(wait) != noted:
                    note(wait_line(wait))
                noted = wait_line(wait)
                client.sleep(min(wait.left, SECONDS_BETWEEN_CHECKS))
                if time.monotonic() - fetched >= SECONDS_BETWEEN_MODELS:
                    fetched = time.monotonic()
                    identity = refresh_model(store, client, identity, note)
                continue
            ticket = wait_for_work(client)
            if ticket is None:
                noted = note_absent_helper(client, identity, noted, note)
                continue
            older = older + 1 if ticket.version < store.model_version() else 0
            if older:
                pass_over(ticket, store.model_version(), older, note)
                client.sleep(BETWEEN_POLLS)
                continue
            deadline = time.monotonic() + ticket.deadline_seconds
            if ticket.season > identity.info.season:
                identity = follow_season(store, client, identity, note)
                if ticket.version < store.model_version():
                    continue  # its round has ended meanwhile
            pending = prepare(store, client, identity, ticket, deadline, note)
            if pending is None:
                client.sleep(BETWEEN_POLLS)  # nothing came of it: a server that offers it again is not rushed
                continue
            stored += send_pending(store, client, pending, deadline, note)
            send_evaluation(store, client, identity, ticket, note)
            played += 1
        except Refused as refusal:
            if refusal.slug == "spent":
                uninvited = UNINVITED
                continue
            identity = settle_again(store, client, identity, refusal, note)
    if ask_last_outcomes(store, client, identity, note):
        note("A round that this client took part in has not ended yet; its outcome is asked for at the next start.")
    return stored


def note_absent_helper(client: Client, identity: Identity, noted: str, note: Note) -> str:
    """Note once why a client waits where two servers take part and one does not answer; what was noted last."""
    if identity.sums is None or not helper_is_away(client):
        return ""
    if noted != WAITS_FOR_HELPER:
        note(WAITS_FOR_HELPER)
    return WAITS_FOR_HELPER


def ask_last_outcomes(store: ClientStore, client: Client, identity: Identity, note: Note) -> bool:
    """Ask about uploads of a client that takes no part now; what is refused is met again when it does."""
    try:
        return ask_outcomes(store, client, identity, note)
    except Refused:
        return True


def reason_to_stay_out(store: ClientStore, identity: Identity) -> str | None:
    """Why the owner's policy keeps the client from asking for work, if it does."""
    if store.policy().policy.paused:
        return "This client is paused; `federank client resume` lets it go on."
    ledger, policy, until = store.ledger(), store.policy().policy, identity.info.until
    if is_over(until, time.strftime("%Y-%m-%d", time.gmtime(time.time()))):
        return f"The season has ended on {until}; the client recommends, and waits for another."
    if messages_left(identity, policy, ledger) == 0:
        uploads = store.uploads()
        waits = identity.sums is not None and any(sent.outcome is None for sent in uploads)
        return spent_line(ledger.spent, sum(sent.outcome in UNCHARGED for sent in uploads), waits=waits)
    if shared_items(store, identity) is None:
        return "The owner's policy leaves nothing to take part with; the client recommends, and sends nothing."
    return None


def spent_line(spent: int, released: int = 0, *, waits: bool = False) -> str:
    """What a client says that sends nothing more, unless the round of its last message is discarded."""
    sent = f"sent {spent} {'message' if spent == 1 else 'messages'}" if spent else "sent no message"
    sent += f" (and {released} that are in no sum, not charged)" if released else ""
    if waits:
        return f"This client has {sent}, all that it may; the last round has not ended yet."
    return f"This client has {sent} and may send no more this season; it still gets models, and recommends from them."


def refresh_model(store: ClientStore, client: Client, identity: Identity, note: Note) -> Identity:
    """Fetch the newest model, to recommend from, and who the client is then; a server that is away is asked later.

    The operator may have changed the upload period meanwhile, or begun another season.
    """
    try:
        now = fetch_info(client, attempts=1)
        if has_new_season(identity.info, now):
            return follow_season(store, client, identity, note)
        identity = replace(identity, info=replace(identity.info, upload_period=now.upload_period))
        try:
            model = fetch_model(client, identity.info, attempts=1)
        except BadAnswer:
            # A season that begins between the two answers has another catalogue.
            client.sleep(BETWEEN_POLLS)
            if not has_new_season(identity.info, fetch_info(client, attempts=1)):
                raise
            return follow_season(store, client, identity, note)
    except (Refused, NoAnswer) as reason:
        note(f"The newest model could not be fetched ({reason})")
        return identity
    if model.version > store.model_version():
        store.write_model(model)
        note(f"Version {model.version} of the model was fetched, to recommend from.")
    return identity


def shared_items(store: ClientStore, identity: Identity) -> SharedProfile | None:
    """What the client would take part with now, if with anything."""
    policy = store.policy().policy
    ended = store.catalogue().ended
    taken = shared_profile_of(identity, policy, store.training_history().items, store.ledger(), ended)
    return taken if can_take_part(taken, policy, identity.info) else None


def pass_over(ticket: Ticket, have: int, times: int, note: Note) -> None:
    """A round on an older model than the client has is not for it: one of the server's workers may lag behind.

    Only a server that offers nothing else, time after time, has gone back.
    """
    if times == MOST_OLDER_OFFERS:
        raise BadAnswer(
            f"The server keeps offering work on version {ticket.version} of its model, and this client has version "
            f"{have} already: versions never go back. Nothing was sent; ask the operator whether a backup was put "
            "back without --restored."
        )
    note(f"Round {ticket.round_number}: it is on an older model than this client has; asking again.")


def prepare(
    store: ClientStore, client: Client, identity: Identity, ticket: Ticket, deadline: float, note: Note
) -> Pending | None:
    """Fetch the model, play the round and keep all of it; nothing if the round is over or nothing may leave."""
    info = identity.info
    if ticket.ticket == store.last_ticket():
        note(f"Round {ticket.round_number}: this client has made its upload already, and makes no other.")
        return None
    have = store.model(info)
    try:
        rows = fetch_rows(client, info, ticket, None if have is None else have.version, deadline)
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        note(f"Round {ticket.round_number}: not taken part ({reason})")
        return None
    model = merged(rows, have, info.n_items)
    terms = None
    if identity.sums is not None:
        try:
            offer = fetch_offer(client, info, identity.sums, model, ticket.round_number, deadline)
        except (Refused, NoAnswer) as reason:
            note(f"Round {ticket.round_number}: not taken part ({reason})")
            return None
        terms = Terms(identity.sums.config, offer)
    with store.transaction():
        ledger = store.ledger()
        if terms is not None and not can_afford(terms.config, terms.offer, spent_of(ledger)):
            store.write_model(model)
            note(f"Round {ticket.round_number}: its upload would disclose more than was guaranteed; not taken part.")
            return None
        # Inside the transaction: a policy that its owner changes now is either followed here or changed after.
        policy, kept = store.policy().policy, store.round_vector(info.state_size)
        if terms is not None and not within_cap(policy, ledger, terms):
            store.write_model(model)
            note(f"Round {ticket.round_number}: its message would exceed your lifetime cap; not taken part.")
            return None
        history, ended = store.training_history(), store.catalogue().ended
        played = play(identity, policy, history, kept, model, ledger, ticket.round_number, terms, ended)
        store.write_model(model)
        if played is None:
            note(f"Round {ticket.round_number}: the policy leaves nothing to take part with.")
            return None
        if played.rows > ticket.most_rows:
            raise BadAnswer(
                f"The server takes at most {ticket.most_rows:,} rows and its own recipe makes "
                f"{played.rows:,}; nothing was sent."
            )
        pending = Pending(ticket.ticket, ticket.round_number, played.body)
        digest = None if terms is None else terms.offer.digest().hex()
        identifier = None if terms is None else id_of(played.body).hex()
        store.write_round(pending, played.vector, ledger, played.recorded, client.clock(), digest, identifier)
    return pending


def send_pending(store: ClientStore, client: Client, pending: Pending, deadline: float | None, note: Note) -> bool:
    """Send an Update until there is a receipt, a definite no, or no time left; whether the server has stored it.

    Its owner may change the policy meanwhile, from another process. That removes the Update from the file, and so it is
    not tried again.
    """

    def is_still_kept() -> bool:
        kept = store.pending()
        return kept is not None and kept.ticket == pending.ticket

    stored, is_secure = False, store.identity().sums is not None
    try:
        stored = send_update(client, pending.ticket, pending.body, deadline, is_still_kept)
        if stored:
            note(f"Round {pending.round_number}: {len(pending.body):,} bytes sent and stored.")
        else:
            note(f"Round {pending.round_number}: the receipt is not for what was sent.")
    except (Refused, NoAnswer) as reason:
        if isinstance(reason, Refused) and reason.status == 401:
            raise
        # An upload that is too late is asked about again: the helper's record will show that it is in no sum.
        if isinstance(reason, Refused) and not (is_secure and reason.slug == "late"):
            store.write_outcome(pending.ticket, REFUSED, client.clock())
        note(f"Round {pending.round_number}: not counted ({reason})")
    except Withdrawn:
        note(f"Round {pending.round_number}: held back, as the policy was changed before it had arrived.")
    store.drop_pending(pending.ticket)
    return stored
