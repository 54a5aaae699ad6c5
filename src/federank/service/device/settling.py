"""Settling: is the federation at this address still the one that the device enrolled in?

    the same                        the device goes on
    begun anew, the same catalogue  the device enrols in it: history, policy and ledger stay, and so do the words that
                                    name its draws, so that what was chosen once for life stays chosen; its token, the
                                    model, the vector of rounds and an Update on its way were the old federation's
    another catalogue               nothing goes on: the numbers of the history and of the ledger mean other items

A federation says which one it is by a word that is another for every founding (`founding` of GET /federation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from federank.service.device.client import Client
from federank.service.device.messages import Facts, merged, read_enrolment, read_facts, read_rows
from federank.service.device.round import first_vector
from federank.service.device.state import Identity, Model, identity_of, keep_model
from federank.service.device.store import BadState, DeviceStore
from federank.service.device.transfer import BadAnswer, Refused


def settled(store: DeviceStore, client: Client, note: Callable[[str], None]) -> Identity:
    """Who this device is in the federation that is at its address now."""
    identity = identity_of(store)
    if not identity.token:
        raise BadState(f"The device of {store.path} has left its federation; enrol anew with another --state.")
    told = client.ask("GET", "/federation").content
    now = read_facts(told)
    refuse_another_catalogue(identity.facts, now)
    if identity.facts.founding and now.founding and now.founding != identity.facts.founding:
        note(
            "The federation was begun anew: this device enrols in the new one. Its history, policy and ledger stay; "
            "the old model and what was on its way to the old federation are dropped."
        )
        return enrol_again(store, client, identity, now, told)
    if replace(now, version=identity.facts.version) != identity.facts:
        with store.transaction() as sql:
            sql.execute("UPDATE identity SET federation = ?", (told.decode(),))
    return replace(identity, facts=now)


def settled_again(
    store: DeviceStore, client: Client, identity: Identity, refusal: Refused, note: Callable[[str], None]
) -> Identity:
    """Who this device is after its token was refused: another, if the federation was begun anew; else it is refused."""
    if refusal.status != 401:
        raise refusal
    renewed = settled(store, client, note)
    if renewed.token == identity.token:
        raise refusal
    return renewed


def refuse_another_catalogue(before: Facts, now: Facts) -> None:
    """A catalogue or vectors of another shape make a federation that this device can take no part in."""
    if (now.catalogue, now.n_items, now.settings.factors) != (
        before.catalogue,
        before.n_items,
        before.settings.factors,
    ):
        raise BadAnswer(
            "The server's federation is not the one that this device enrolled in: its catalogue or the size of its "
            "vectors has changed. Enrol anew with another --state."
        )


def enrol_again(store: DeviceStore, client: Client, identity: Identity, facts: Facts, told: bytes) -> Identity:
    """Enrol in a federation that was begun anew; everything of the old one is replaced at once, or nothing is."""
    content = client.ask("GET", "/model", most_bytes=facts.most_model_bytes).content
    rows = read_rows(content, facts.settings.factors, facts.n_items)
    model = Model(rows.version, *merged(rows, None, facts.n_items))
    vector = first_vector(facts, identity.seed, identity.user)
    client.token = None  # the old federation's is nobody's business here
    headers = {"Content-Type": "application/json"}
    device, token = read_enrolment(client.ask("POST", "/devices", b"{}", headers=headers).content)
    with store.transaction() as sql:
        sql.execute("UPDATE identity SET device = ?, token = ?, federation = ?", (device, token, told.decode()))
        sql.execute("DELETE FROM pending")
        sql.execute(
            "UPDATE person SET vector = ?, learnt_from = NULL, home = NULL, home_version = NULL, rounds = 0,"
            " last_ticket = NULL",
            (vector.tobytes(),),
        )
        keep_model(sql, model)
    client.token = token
    return replace(identity, device=device, token=token, facts=facts)
