"""Pair-wise learning (FPL) in the world: vectors and biases, Updates of item gradients, a fold that adds them up.

The first model is drawn like a simulation's, from the seed, so that a rehearsal begins where the simulation does; or it
is the shared part of a model that was trained before. The recipe, the messages and the fold are the protocol's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.data.interactions import Interactions
from federank.errors import BadMessage, ModelError, SettingError
from federank.federation.defences import Defences
from federank.federation.rng import first_items, normal_columns
from federank.federation.server import (
    MAX_HEADER,
    Content,
    Exported,
    Form,
    Published,
    ServerMethod,
    UploadKind,
    known_items,
    lowest_rows,
)
from federank.federation.wire import Array
from federank.methods.fpl.method import Shared
from federank.methods.fpl.settings import (
    DEVICE_SETTINGS,
    FEDERATION_SETTINGS,
    FPLSettings,
    Recipe,
    most_pairs,
    recipe_for,
)
from federank.methods.fpl.wire import (
    Broadcast,
    Update,
    decode_broadcast,
    decode_update,
    encode,
    is_short,
    shortened,
    squared_norms,
    update_bytes,
    update_of_ours,
    why_implausible,
)


def settle(settings: FPLSettings, data: Interactions, trained: Any) -> FPLSettings:
    """The settings with numbers in the place of words."""
    if trained is not None:
        if getattr(trained, "name", None) not in ("fpl", "federank"):
            raise ModelError(
                "A federation can start from a trained fpl model; this one is "
                f"{getattr(trained, 'name', 'something else')}."
            )
        settings = replace(settings, factors=int(trained.settings.factors))
    if settings.triples == "profile":
        raise SettingError(
            "triples is 'profile', but a server does not know the sizes of histories; give a number, or `mean`."
        )
    if settings.triples == "mean" and not len(data):
        raise SettingError(
            f"triples is 'mean', but {data.name} has items and no one's history to take a mean of; give a number with "
            "--triples, such as 20."
        )
    if settings.triples == "mean":
        return replace(settings, triples=max(1, len(data) // max(1, data.n_users)))
    return replace(settings, triples=int(settings.triples))


def first_content(settings: FPLSettings, data: Interactions, trained: Any) -> Content:
    """First vectors and biases, drawn as a simulation draws them; those of a trained model for the items it knows.

    Items that the trained model lacks start low.
    """
    vectors, biases = first_items(
        data.n_items,
        settings.factors,
        seed=settings.seed,
        scale=settings.initial_scale,
        biases=settings.initial_biases,
        draw=normal_columns,  # a server compiles nothing to start
    )
    if trained is not None:
        here, there = known_items(data, trained)
        known = Content({"vectors": trained.item_vectors[there], "biases": trained.item_biases[there]})
        # Items that the model lacks start low: a drawn bias would put them first, beside those that were learnt.
        low = lowest_rows(known, len(here) + 1).tables
        vectors[:], biases[:] = low["vectors"][-1], low["biases"][-1]
        vectors[here], biases[here] = known.tables["vectors"], known.tables["biases"]
    return Content({"vectors": vectors, "biases": biases})


def form(settings: FPLSettings, n_items: int, most_norm: float) -> Form:
    """What an upload must look like: a device that trains on T pairs touches 2 T items at most."""
    most_rows = min(2 * most_pairs(settings), n_items)
    return Form(settings.factors, n_items, most_rows, most_norm, update_bytes(most_rows, settings.factors) + MAX_HEADER)


def recipe(settings: FPLSettings, n_items: int, _devices: int) -> Recipe:
    """The recipe that aggregation follows; a server needs nothing of it that is about users."""
    return recipe_for(settings, np.ones(1, dtype=np.int64), n_items, np.zeros(1))


def fold(recipe: Recipe, model: Published, round_number: int, updates: Iterable[Update]) -> Content:
    """The next version, by the aggregation of the simulation."""
    shared = Shared(model.vectors, model.content.tables["biases"], round_number)
    shared.aggregate(recipe, updates)
    return Content({"vectors": shared.vectors, "biases": shared.biases})


def encode_rows(_settings: FPLSettings, model: Published, rows: IntVector, round_number: int) -> bytes:
    """Some rows of the model as a Broadcast on the wire."""
    tables = model.rows(rows)
    return encode(Broadcast(round_number, model.version, rows, tables["vectors"], tables["biases"]))


def decode_rows(settings: FPLSettings, content: bytes, n_items: int) -> Broadcast:
    """A Broadcast, as a client reads it."""
    return decode_broadcast(content, settings.factors, n_items)


def judge(body: bytes, form: Form) -> int:
    """Refuse an upload that is no Update of this form; how many of its rows are too long."""
    update = decode_update(body, form.factors, form.n_items)
    if len(update.items) > form.most_rows:
        raise BadMessage(f"The Update has {len(update.items)} rows; the task allows {form.most_rows} at most.")
    if is_short(update, form.most_norm):
        return 0
    return int(np.count_nonzero(squared_norms(update) > np.float64(form.most_norm) ** 2))


def summand(body: bytes, form: Form) -> Update:
    """The Update that was judged when it arrived, with no row too long."""
    return shortened(update_of_ours(body), form.most_norm)


def implausible(settings: FPLSettings, _model: Published, body: bytes) -> str | None:
    """Why no device can have sent this Update: its biases are not those of pairs."""
    return why_implausible(update_of_ours(body), most_pairs(settings))


def exported(settings: Mapping[str, Any], tables: Mapping[str, Array]) -> Exported:
    """A version as a model of FPL."""
    return Exported(settings, {"item_vectors": tables["vectors"], "item_biases": tables["biases"]})


FPL_SERVER = ServerMethod(
    name="fpl",
    settings=FPLSettings,
    federation_settings=FEDERATION_SETTINGS,
    client_settings=DEVICE_SETTINGS,
    defaults={"triples": "mean"},
    settle=settle,
    first_content=first_content,
    form=form,
    recipe=recipe,
    fold=fold,
    encode=encode_rows,
    decode=decode_rows,
    kinds={"plain": UploadKind(judge, summand)},
    defences=Defences(),
    implausible=implausible,
    exported=exported,
)
SERVERS = {FPL_SERVER.name: FPL_SERVER}
