"""Establishing a federation: its charter and its first model are written into an empty store, once.

The operator's token is shown once; its hash is kept.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, replace
from typing import Any

from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.service.server.families.family import Family
from federank.service.server.families.pairs import PAIRS
from federank.service.server.federation.catalogue import catalogue_of
from federank.service.server.federation.charter import founding_of, why_unreadable
from federank.service.server.federation.published import first_model, stored_content
from federank.service.server.settings import RoundSettings
from federank.service.server.store.actions import note_action
from federank.service.server.store.database import Connection
from federank.service.server.store.statements.facts import get_fact, lock_facts, put_content, put_fact
from federank.service.server.store.versions import put_whole
from federank.service.server.sums.agreeing import SumsDemand, agree, put_agreement, summable
from federank.service.server.tickets import hash_of_token, new_token


def establish(
    connection: Connection,
    settings: Any,
    data: Interactions,
    rounds: RoundSettings,
    *,
    family: Family = PAIRS,
    name: str | None = None,
    trained: Any = None,
    sums: SumsDemand | None = None,
) -> str | None:
    """Write a charter and a first model into an empty store; the operator's token, or None if there was one already.

    `settings` are the family's. `trained` is a trained model of its method: its items' factors are taken for the items
    it knows. With `sums` uploads are such that no single server can read one, and the helper is asked first.
    """
    if data.n_items < 2:
        raise SettingError(f"The catalogue of {data.name} has {data.n_items} items; at least two are needed.")
    if sums is None and getattr(settings, "promises", False):
        raise SettingError(
            "A promise of noise needs two servers: name a helper (--helper), or leave epsilon and sigma out."
        )
    plan = None
    if sums is not None:
        method = summable(family)
        sums = sums.for_size(rounds.target, data.n_items, method.affordable)
        settings = family.settle(method.settings(settings, sums.promise), data, trained)
        plan = method.plan(settings, data.n_items, rounds.target, sums.promise)
        settings = replace(settings, factors=plan.factors)
        if plan.most_shown is not None and settings.most_shown is None:
            settings = replace(settings, most_shown=plan.most_shown)
    else:
        settings = family.settle(settings, data, trained)
    model = first_model(family.first_content(settings, data, trained))
    why = why_unreadable(family, settings, model, model.rows_since(None), 0)
    if why is not None:
        raise ModelError(f"A federation cannot begin with this model, because {why} Start from another, or from none.")
    catalogue = catalogue_of(data)
    token, ticket_key = new_token(), secrets.token_bytes(32)
    agreement = None
    if sums is not None and plan is not None:
        agreement = agree(sums, plan, settings, founding_of(ticket_key), catalogue.content, data.n_items)
    charter = {
        "name": name or data.name,
        "method": family.method,
        "settings": asdict(settings),
        "items": data.n_items,
        "ticket_key": ticket_key.hex(),
    }
    with connection.transaction():
        lock_facts(connection)
        if get_fact(connection, "charter") is not None:
            return None
        put_fact(connection, "charter", charter)
        put_fact(connection, "admin", hash_of_token(token).hex())
        put_fact(connection, "rounds", asdict(rounds))
        put_fact(connection, "trained", trained is not None)
        put_content(connection, "catalogue", catalogue.content)
        if agreement is not None:
            put_agreement(connection, agreement)
            put_content(connection, "first content", stored_content(model.content))
        put_whole(connection, 0, model)
        note_action(connection, "established", name=charter["name"], items=data.n_items)
    return token


def renew_admin_token(connection: Connection) -> str:
    """A new operator's token; the old one dies."""
    token = new_token()
    with connection.transaction():
        put_fact(connection, "admin", hash_of_token(token).hex())
        note_action(connection, "rotate-token")
    return token
