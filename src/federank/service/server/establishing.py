"""Establishing a federation: its charter and its first model are written into an empty store, once.

The first model is drawn like a simulation's, from the seed, so that a rehearsal begins where the simulation does; or it
is the shared part of a model that was trained before. The operator's token is shown once; its hash is kept.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.protocol.initial import first_items, normal_columns
from federank.protocol.pairs.recipes import FPLSettings
from federank.service.server.catalogue import catalogue_of
from federank.service.server.published import Published
from federank.service.server.settings import RoundSettings
from federank.service.server.store.database import Connection
from federank.service.server.store.statements import get_fact, put_fact
from federank.service.server.store.versions import put_whole
from federank.service.server.tickets import hash_of_token, new_token


def establish(
    connection: Connection,
    settings: FPLSettings,
    data: Interactions,
    rounds: RoundSettings,
    *,
    name: str | None = None,
    trained: Any = None,
) -> str | None:
    """Write a charter and a first model into an empty store; the operator's token, or None if there was one already.

    `trained` is a trained FPL model (recommenders/methods/fpl.py): its items' factors are taken for the items it knows.
    """
    if data.n_items < 2:
        raise SettingError(f"The catalogue of {data.name} has {data.n_items} items; at least two are needed.")
    if trained is not None:
        settings = replace(settings, factors=_factors(trained))
    settings = replace(settings, triples=_triples(settings, data))
    model = first_model(settings, data.n_items) if trained is None else _trained_model(settings, data, trained)
    catalogue = catalogue_of(data)
    token = new_token()
    charter = {
        "name": name or data.name,
        "settings": asdict(settings),
        "items": data.n_items,
        "ticket_key": secrets.token_hex(32),
    }
    with connection.transaction():
        if connection.dialect == "postgresql":
            connection.run("LOCK TABLE facts IN EXCLUSIVE MODE")
        if get_fact(connection, "charter") is not None:
            return None
        put_fact(connection, "charter", charter)
        put_fact(connection, "admin", hash_of_token(token).hex())
        put_fact(connection, "rounds", asdict(rounds))
        connection.run("INSERT INTO facts (name, value) VALUES ('catalogue', ?)", catalogue.content)
        put_whole(connection, 0, model)
    return token


def renew_admin_token(connection: Connection) -> str:
    """A new operator's token; the old one dies."""
    token = new_token()
    with connection.transaction():
        put_fact(connection, "admin", hash_of_token(token).hex())
    return token


def first_model(settings: FPLSettings, n_items: int) -> Published:
    """The first values of vectors and biases, drawn as a simulation draws them; a server compiles nothing to start."""
    vectors, biases = first_items(
        n_items,
        settings.factors,
        seed=settings.seed,
        scale=settings.initial_scale,
        biases=settings.initial_biases,
        draw=normal_columns,
    )
    return Published(0, vectors, biases, np.zeros(n_items, dtype=np.int64))


def _factors(trained: Any) -> int:
    if getattr(trained, "name", None) != "fpl":
        raise ModelError(
            "A federation can start from a trained fpl model; this one is "
            f"{getattr(trained, 'name', 'something else')}."
        )
    return int(trained.settings.factors)


def _trained_model(settings: FPLSettings, data: Interactions, trained: Any) -> Published:
    model = first_model(settings, data.n_items)
    rows = {identity: row for row, identity in enumerate(trained.training.item_ids.tolist())}
    pairs = [(n, rows[identity]) for n, identity in enumerate(data.item_ids.tolist()) if identity in rows]
    if not pairs:
        raise ModelError(
            f"The trained model knows none of the {data.n_items:,} items of {data.name}; start from a model of the "
            "same data."
        )
    here, there = (np.array(column) for column in zip(*pairs, strict=True))
    model.vectors[here], model.biases[here] = trained.item_vectors[there], trained.item_biases[there]
    return model


def _triples(settings: FPLSettings, data: Interactions) -> int:
    if settings.triples == "profile":
        raise SettingError(
            "triples is 'profile', but a server does not know the sizes of histories; give a number, or `mean`."
        )
    if settings.triples == "mean":
        return max(1, len(data) // max(1, data.n_users))
    return int(settings.triples)
