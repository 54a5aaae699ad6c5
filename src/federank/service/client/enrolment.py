"""Joining a federation, finding it changed, and leaving it.

**Enrolling.** Everything is read and checked before the server is asked for an id, and the client's file gets its name
only once it is complete: an enrolment that fails leaves nothing behind. The server learns that there is one more
client, and nothing else; the words that name the client's draws are made here and never sent (anyone who knows them
could replay its choices).

**Settling.** Is the federation at this address still the one that the client enrolled in? The
`federation_id` of GET /federation says which one it is.

    the same                        the client goes on; a season that has begun meanwhile is followed (seasons.py)
    begun again, the same catalogue  the client enrols in it: history, policy and ledger stay, and so do the words that
                                    name its draws, so that what was chosen once for its lifetime stays chosen; its
                                    token, the
                                    model, the vector of rounds and an Update on its way were the old federation's
    another catalogue or method     nothing goes on: the numbers of the history and of the ledger mean other things

A number of messages is promised once: messages that were sent count for its lifetime, in a federation begun again
too, and a
server that asks for more than it promised gets nothing.

**Leaving.** The server is asked to forget the token; then it is removed here too, so that no one can take part with the
file any more. The ledger stays: what has left cannot be called back, and its owner may want to know.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from federank.errors import BadAnswer, BadState, Refused, SettingError
from federank.service.client.federation import (
    Catalogue,
    FederationInfo,
    fetch_catalogue,
    fetch_info,
    fetch_model,
    register,
    unregister,
)
from federank.service.client.http import Client
from federank.service.client.owner import Matched, read_profile
from federank.service.client.seasons import follow_season, has_new_season
from federank.service.client.secure import pin, pin_again, refuse_another_list
from federank.service.client.state import ChosenPolicy, Identity
from federank.service.client.store import ClientStore, created, taking_part

_ATTEMPTS = 5


def enrol(
    client: Client,
    path: Path,
    profile: Path,
    choose: Callable[[FederationInfo, Catalogue], ChosenPolicy],
    *,
    ca: str | None = None,
    insecure: bool = False,
    helper_ca: str | None = None,
    evaluates: bool = False,
    random_bits: Callable[[int], int] = secrets.randbits,
) -> tuple[Matched, ChosenPolicy, FederationInfo]:
    """Make a client of this history at this path; what of the history the federation knows, and the policy.

    `random_bits` makes the secret words that name its draws: a rehearsal that must come out the same gives its own.
    """
    if path.exists():
        raise BadState(f"{path} is there already; a new client needs another --state.")
    info = fetch_info(client, _ATTEMPTS)
    catalogue = fetch_catalogue(client, info, _ATTEMPTS)
    matched = read_profile(profile, catalogue, info.scale)
    refuse_empty(profile, matched, info)
    if evaluates and len(matched.profile) < 2:
        raise SettingError(f"{profile} names one item that is known here; to hold one back, two are needed.")
    chosen = choose(info, catalogue)
    info.rules.sharing_policy(chosen.policy)  # what the method cannot keep is refused before anything begins
    pinned = pin(client, info, helper_ca) if info.is_summed else None
    if pinned is not None:
        refuse_another_list(pinned.config, catalogue.sha256)
    model = fetch_model(client, info, _ATTEMPTS)
    seed, user = random_bits(32), random_bits(31)
    vector = np.zeros(info.state_size, dtype=np.float32)
    with created(path) as store:
        client_id, token = register(client, _ATTEMPTS)
        identity = Identity(
            server=client.address,
            client_id=client_id,
            token=token,
            seed=seed,
            user=user,
            info=info,
            ca=ca,
            insecure=insecure,
            sums=pinned,
        )
        store.write_first(identity, chosen, matched.history, vector, catalogue)
        if evaluates:
            store.write_agreement(int(matched.profile[random_bits(31) % len(matched.profile)]))
        store.write_model(model)
    client.token = token
    return matched, chosen, info


def refuse_empty(profile: Path, matched: Matched, info: FederationInfo) -> None:
    """A history that says nothing cannot be learnt from."""
    if len(matched.profile) == 0:
        raise SettingError(
            f"None of the {matched.named:,} items in {profile} is in this federation's catalogue of "
            f"{info.n_items:,}; the first is {matched.unknown[0]!r}. Ids or titles of the catalogue are needed."
            if matched.unknown
            else f"{profile} names no item; a column `item` with ids or titles is needed."
        )
    if len(matched.profile) == info.n_items and info.rules.needs_others:
        left = (
            "compare with or recommend" if info.scale is None else "predict, and nothing to hide what was rated among"
        )
        raise SettingError(f"{profile} names the full catalogue; there is nothing left to {left}.")


def settle(store: ClientStore, client: Client, note: Callable[[str], None]) -> Identity:
    """Who this client is in the federation that is at its address now."""
    identity = store.identity()
    if not identity.token:
        raise BadState(f"The client of {store.path} has left its federation; enrol again with another --state.")
    now = fetch_info(client)
    if has_new_season(identity.info, now):
        identity = follow_season(store, client, identity, note)
        now = identity.info
    refuse_another_catalogue(identity.info, now)
    if identity.info.federation_id and now.federation_id and now.federation_id != identity.info.federation_id:
        note(
            "The federation was begun again: this client enrols in the new one. Its history, policy and ledger stay; "
            "the old model and what was on its way to the old federation are dropped."
        )
        return enrol_again(store, client, identity, now)
    if replace(now, version=identity.info.version) != identity.info:
        store.write_info(now.document)
    return replace(identity, info=now)


def settle_again(
    store: ClientStore, client: Client, identity: Identity, refusal: Refused, note: Callable[[str], None]
) -> Identity:
    """Who this client is after its token was refused: another, if the federation was begun again or has forgotten it.

    A server whose store was restored from a backup does not know the clients that came since. It is the same
    federation: the client enrols again and keeps what it has, its vector, its ledger and what it chose for its
    lifetime. It
    does so once.
    """
    if refusal.status != 401:
        raise refusal
    renewed = settle(store, client, note)
    if renewed.token != identity.token:
        return renewed
    if refusal.slug != "unknown-client" or client.has_enrolled_again:
        raise refusal
    note("The server does not know this client any more (its store was restored, perhaps): it enrols again.")
    client.token = None
    client_id, token = register(client)
    client.has_enrolled_again = True
    renewed = replace(renewed, client_id=client_id, token=token)
    store.write_new_token(renewed)
    client.token = token
    return renewed


def refuse_another_catalogue(before: FederationInfo, now: FederationInfo) -> None:
    """A catalogue or vectors of another shape make a federation that this client can take no part in."""
    if (now.method, now.is_summed, now.catalogue, now.n_items, now.state_size) != (
        before.method,
        before.is_summed,
        before.catalogue,
        before.n_items,
        before.state_size,
    ):
        raise BadAnswer(
            "The server's federation is not the one that this client enrolled in: its method, its catalogue or the "
            "size of its vectors has changed. Enrol again with another --state."
        )
    if before.is_summed and before.federation_id == now.federation_id and before.settings != now.settings:
        raise BadAnswer(
            "The server's settings are not those of the federation config that this client has pinned. Nothing was "
            "sent; ask the "
            "operator."
        )
    promised, asked = (info.settings.uploads_per_client for info in (before, now))
    if asked > promised:
        raise BadAnswer(
            f"The server asks for {asked} uploads per client, and this client enrolled with a quota of "
            f"{promised}. Nothing was sent; ask the operator, or enrol again with another --state."
        )


def enrol_again(store: ClientStore, client: Client, identity: Identity, info: FederationInfo) -> Identity:
    """Enrol in a federation that was begun again; everything of the old one is replaced at once, or nothing is."""
    pinned = None if identity.sums is None else pin_again(identity.sums, client, info)
    model = fetch_model(client, info)
    vector = np.zeros(info.state_size, dtype=np.float32)
    client.token = None  # the old federation's is no one's business here
    client_id, token = register(client)
    renewed = replace(identity, client_id=client_id, token=token, info=info, sums=pinned)
    store.write_new_federation(renewed, vector, model)
    client.token = token
    return renewed


def leave(path: Path, note: Callable[[str], None]) -> None:
    """Ask the server to forget this client; one that it does not know any more has left already."""
    with taking_part(path) as store:
        identity = store.identity()
        if not identity.token:
            return
        with client_of(identity, note) as client:
            try:
                unregister(client, _ATTEMPTS)
            except Refused as reason:
                if reason.status not in (401, 404):
                    raise
        store.drop_token()


def client_of(identity: Identity, note: Callable[[str], None]) -> Client:
    """An HTTP client for the server that this client is enrolled at."""
    return Client(identity.server, ca=identity.ca, insecure=identity.insecure, token=identity.token, note=note)
