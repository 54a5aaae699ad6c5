"""Founding a federation: what it is, written into an empty store once and read from it ever after.

The charter holds what no worker may decide for itself: the recipe, the catalogue, the key of the tickets. The first
model is drawn like a simulation's, from the seed, so that a rehearsal begins where the simulation does; or it is the
shared part of a model that was trained before. The operator's token is shown once; its hash is kept.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.protocol.draws import ITEM_BIASES, ITEM_FACTORS, WORDS, words, words_wrap_around
from federank.protocol.pairs.recipes import FPLSettings, Recipe, recipe_for
from federank.service.server.catalogue import Catalogue, catalogue_of, read_catalogue
from federank.service.server.published import Published
from federank.service.server.settings import RoundSettings
from federank.service.server.store.database import Connection
from federank.service.server.store.statements import get_fact, put_fact
from federank.service.server.store.versions import put_whole
from federank.service.server.tickets import hash_of_token, new_token

RECIPE_FIELDS = (
    "factors",
    "learning_rate",
    "user_regulariser",
    "positive_regulariser",
    "negative_regulariser",
    "order",
    "triples",
    "initial_scale",
)
"""What a device needs to know of the settings."""


class Charter(NamedTuple):
    """What a federation is: the same for every worker and every restart."""

    name: str
    settings: FPLSettings
    catalogue: Catalogue
    n_items: int
    ticket_key: bytes
    admin_hash: bytes
    suggested_policy: dict[str, Any] | None
    noun: dict[str, str] | None  # what an item is called, one and many of them: place and places

    @property
    def most_rows(self) -> int:
        """A device that trains on T pairs touches 2 T items at most."""
        return min(2 * int(self.settings.triples), self.n_items)

    @property
    def founding(self) -> str:
        """Which federation this is: another word for each founding, worked out from its key, which it does not betray.

        A federation begun anew at the same address has another one, whatever else is the same.
        """
        return hashlib.blake2b(b"founding", digest_size=16, key=self.ticket_key).hexdigest()

    @property
    def recipe(self) -> Recipe:
        """The recipe that aggregation follows; a server needs nothing of it that is about users."""
        return recipe_for(self.settings, np.ones(1, dtype=np.int64), self.n_items, np.zeros(1))

    def told_recipe(self) -> dict[str, Any]:
        """The recipe as devices are told it."""
        return {name: getattr(self.settings, name) for name in RECIPE_FIELDS}


def read_charter(connection: Connection) -> Charter | None:
    """The charter in the store; None where there is none yet."""
    told = get_fact(connection, "charter")
    if told is None:
        return None
    row = connection.one("SELECT value FROM facts WHERE name = 'catalogue'")
    assert row is not None, "charter and catalogue are written together"
    return Charter(
        name=told["name"],
        settings=FPLSettings(**told["settings"]),
        catalogue=read_catalogue(bytes(row[0])),
        n_items=told["items"],
        ticket_key=bytes.fromhex(told["ticket_key"]),
        admin_hash=bytes.fromhex(get_fact(connection, "admin")),
        suggested_policy=get_fact(connection, "suggested_policy"),
        noun=get_fact(connection, "noun"),
    )


def found(
    connection: Connection,
    settings: FPLSettings,
    data: Interactions,
    rounds: RoundSettings,
    *,
    name: str | None = None,
    trained: Any = None,
) -> str | None:
    """Write a charter and a first model into an empty store; the operator's token, or None if there was one already.

    `trained` is a trained FPL model (recommenders/fpl.py): its items' factors are taken for the items it knows.
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
    """The first values of vectors and biases, drawn as a simulation draws them."""
    scale, seed = settings.initial_scale, settings.seed
    vectors = _normal_rows(n_items, settings.factors, seed, ITEM_FACTORS, scale)
    biases = (
        _normal_rows(n_items, 1, seed, ITEM_BIASES, scale)[:, 0].copy()
        if settings.initial_biases == "normal"
        else np.zeros(n_items, dtype=np.float32)
    )
    return _version_zero(vectors, biases)


def _normal_rows(rows: int, columns: int, seed: int, purpose: int, scale: float) -> FloatMatrix:
    """The numbers of `protocol.initial.normal_rows`, whole columns at a time: a server compiles nothing to start."""
    everyone = np.arange(rows, dtype=np.uint32)
    table = np.zeros((rows, 4 * ((columns + 3) // 4)), dtype=np.float32)
    for block in range((columns + 3) // 4):
        with words_wrap_around():
            drawn = words(seed, everyone, purpose, 0, block)
        for pair in (0, 2):
            radius = np.sqrt(-2.0 * np.log((drawn[pair].astype(np.float64) + 0.5) / WORDS))
            angle = 2.0 * np.pi * drawn[pair + 1].astype(np.float64) / WORDS
            table[:, 4 * block + pair] = scale * (radius * np.cos(angle))
            table[:, 4 * block + pair + 1] = scale * (radius * np.sin(angle))
    return np.ascontiguousarray(table[:, :columns])


def _version_zero(vectors: FloatMatrix, biases: FloatVector) -> Published:
    return Published(0, vectors, biases, np.zeros(len(biases), dtype=np.int64))


def _factors(trained: Any) -> int:
    if getattr(trained, "name", None) != "fpl":
        raise ModelError(
            "A federation can start from a trained fpl model; this one is "
            f"{getattr(trained, 'name', 'something else')}."
        )
    return int(trained.settings.factors)


def _trained_model(settings: FPLSettings, data: Interactions, trained: Any) -> Published:
    model = first_model(settings, data.n_items)
    places = {identity: place for place, identity in enumerate(trained.training.item_ids.tolist())}
    pairs = [(n, places[identity]) for n, identity in enumerate(data.item_ids.tolist()) if identity in places]
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
