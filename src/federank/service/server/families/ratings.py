"""Ratings (FedRec) in the world: V, and W for SVD++, stepped after each round by the mean per item of reports.

The recipe, the messages and the fold are the protocol's own, so where everybody reports in every round the model is the
simulation's of batch style. People come when they come: an iteration, with which the learning rate falls, is over once
as many reports were folded as there are devices. Devices are told it with each Broadcast, and which items any Update
has ever had.

The first model is drawn like a simulation's, from the seed; or it is the shared part of a model that was trained
before, and goes on at the rate with which its training ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from federank.arrays import IntVector
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.protocol.draws import IMPLICIT_FACTORS, ITEM_FACTORS
from federank.protocol.ratings.aggregation import SharedFactors
from federank.protocol.ratings.codec import (
    RatingRows,
    decode_rating_update,
    encode_rating_rows,
    rating_update_of_ours,
)
from federank.protocol.ratings.federations import (
    RatingFederationSettings,
    SVDPlusPlusFederationSettings,
    step_of,
)
from federank.protocol.ratings.first_values import uniform_rows
from federank.protocol.ratings.messages import RatingUpdate, rating_update_bytes
from federank.protocol.ratings.plausibility import why_implausible_ratings
from federank.protocol.ratings.recipes import RatingRecipe, rating_recipe
from federank.protocol.ratings.sums import columns_of_gradients, fold_sum_of_gradients
from federank.protocol.sums.charter import GRADIENTS, SumsCharter
from federank.protocol.sums.offer import rating_model_digest
from federank.recommenders.predicting import refuse_bad_ratings
from federank.service.server.families.family import Family, Form, Kind, Promise, SumsOf, SumsPlan, as_promised
from federank.service.server.families.pairs import HEADER_ROOM, known_items
from federank.service.server.families.sealed import SEALED, one_noise
from federank.service.server.federation.published import Content, Published

DEVICE_SETTINGS = (
    *("factors", "learning_rate", "decay", "regulariser", "initial_range", "t_predict", "t_local"),
    *("item_gradients", "filling_start", "local_training", "lowest", "highest", "step", "messages", "clip"),
)
"""What a device must be told to follow the recipe and to know the scale; the iteration comes with each Broadcast."""
FEDERATION_SETTINGS = (*DEVICE_SETTINGS, "filling", "rho", "sampling", "seed")
_ALMOST = 1e-9
"""Shares of an iteration are added up; the last decimal is not to cost one."""


def settle(settings: RatingFederationSettings, data: Interactions, trained: Any) -> RatingFederationSettings:
    """The settings with numbers for all that a device is told."""
    if trained is not None:
        if getattr(trained, "name", None) not in _TRAINED or trained.settings.implicit != settings.implicit:
            raise ModelError(
                "A federation of ratings can start from a trained model of its own method, pmf or svdpp; this one is "
                f"{getattr(trained, 'name', 'something else')}."
            )
        settings = replace(settings, factors=int(trained.settings.factors))
    step = settings.step
    if data.ratings is not None:
        refuse_bad_ratings(data, settings)
        step = step_of(data.ratings, settings.lowest) if step is None else step
    rate = _recipe_alone(settings, data.n_items).learning_rate
    return replace(settings, step=1.0 if step is None else step, learning_rate=rate)


_TRAINED = ("pmf", "svdpp")


def first_content(settings: RatingFederationSettings, data: Interactions, trained: Any) -> Content:
    """First vectors, drawn as a simulation draws them; those of a trained model for the items that it knows."""
    purposes = {"vectors": ITEM_FACTORS} | ({"implicit": IMPLICIT_FACTORS} if settings.implicit else {})
    span, shape = settings.initial_range, (data.n_items, settings.factors)
    tables = {
        name: uniform_rows(*shape, seed=settings.seed, purpose=purpose, span=span) for name, purpose in purposes.items()
    }
    heard, iteration = np.zeros(data.n_items, dtype=np.int8), 0.0
    if trained is not None:
        here, there = known_items(data, trained)
        learnt = {"vectors": "item_vectors", "implicit": "implicit_vectors"}
        for name, table in tables.items():
            table[here] = getattr(trained, learnt[name])[there]
        heard[here], iteration = 1, float(trained.settings.iterations)
    return Content({**tables, "heard": heard}, {"iteration": np.array([iteration])})


def form(settings: RatingFederationSettings, n_items: int, most_norm: float) -> Form:
    """What an upload must look like: at most a row for each item, and for SVD++ two."""
    implicit_rows = n_items if settings.implicit else 0
    longest = rating_update_bytes(n_items, implicit_rows, settings.factors) + HEADER_ROOM
    return Form(settings.factors, n_items, n_items, most_norm, longest)


def recipe(settings: RatingFederationSettings, n_items: int, devices: int) -> RatingRecipe:
    """The recipe that aggregation follows; of people it needs only how many there are."""
    everybody: IntVector = np.broadcast_to(np.int32(0), (devices,))
    return _recipe_alone(settings, n_items)._replace(participants=everybody)


def _recipe_alone(settings: RatingFederationSettings, n_items: int) -> RatingRecipe:
    return rating_recipe(settings, np.ones(1, dtype=np.int64), n_items)


def fold(recipe: RatingRecipe, model: Published, round_number: int, updates: Iterable[RatingUpdate]) -> Content:
    """The next version, by the aggregation of the simulation, at the rate of the iteration."""
    del round_number
    reports, heard = list(updates), model.content.tables["heard"].copy()
    for update in reports:
        heard[update.items] = 1
    shared = _shared(recipe, model)
    shared.aggregate(recipe, reports)
    return _next(recipe, model, shared, heard, len(reports))


def fold_sum(
    settings: RatingFederationSettings,
    charter: SumsCharter,
    model: Published,
    people: int,
    total: IntVector,
    messages: int,
) -> Content:
    """The next version, from the sum of messages that nobody has read, with the noise of both servers."""
    now = recipe(settings, charter.items, people)
    shared = _shared(now, model)
    stepped = fold_sum_of_gradients(now, shared, total, charter.length_of_clip(), charter.noises[0])
    heard = np.maximum(model.content.tables["heard"], stepped.astype(np.int8))
    return _next(now, model, shared, heard, messages)


def _shared(recipe: RatingRecipe, model: Published) -> SharedFactors:
    """What a fold works on."""
    tables, none = model.content.tables, np.zeros((0, recipe.factors), dtype=np.float32)
    return SharedFactors(tables["vectors"], tables.get("implicit", none), iteration_of(model))


def _next(recipe: RatingRecipe, model: Published, shared: SharedFactors, heard: Any, reports: int) -> Content:
    """What follows from a fold of so many reports."""
    implicit = {"implicit": shared.implicit_vectors} if recipe.implicit else {}
    everybody = max(len(recipe.participants), reports, 1)
    passed = float(model.content.overall["iteration"][0]) + reports / everybody
    return Content({"vectors": shared.vectors, **implicit, "heard": heard}, {"iteration": np.array([passed])})


def iteration_of(model: Published) -> int:
    """How many iterations are over."""
    return int(float(model.content.overall["iteration"][0]) + _ALMOST)


def encode_rows(settings: RatingFederationSettings, model: Published, rows: IntVector, round_number: int) -> bytes:
    """Some rows of the model as a Broadcast on the wire."""
    tables = model.rows(rows)
    none = np.zeros((0, settings.factors), dtype=np.float32)
    W = tables.get("implicit", none)
    told = round_number, model.version, iteration_of(model), rows, tables["vectors"], tables["heard"], W
    return encode_rating_rows(RatingRows(*told))


def _judge(body: bytes, form: Form, *, implicit: bool) -> int:
    """Refuse an upload that is no Update of this form; how many of its rows are too long."""
    update = decode_rating_update(body, form.factors, form.n_items, implicit=implicit)
    return sum(int(np.count_nonzero(_lengths(rows) > form.most_norm)) for rows in (update[1], update[3]))


def judge(body: bytes, form: Form) -> int:
    """Of PMF: an Update has rows of V alone."""
    return _judge(body, form, implicit=False)


def judge_implicit(body: bytes, form: Form) -> int:
    """Of SVD++: rows of W too."""
    return _judge(body, form, implicit=True)


def summand(body: bytes, form: Form) -> RatingUpdate:
    """The Update that was judged when it arrived, with no row too long."""
    update = rating_update_of_ours(body, form.factors)
    return update._replace(
        vectors=_shortened(update.vectors, form.most_norm),
        implicit_vectors=_shortened(update.implicit_vectors, form.most_norm),
    )


def _lengths(rows: Any) -> Any:
    return np.linalg.norm(rows.astype(np.float64), axis=1)


def _shortened(rows: Any, most: float) -> Any:
    lengths = _lengths(rows)
    if not np.any(lengths > most):
        return rows
    return (rows * np.minimum(1.0, most / np.maximum(lengths, most))[:, None]).astype(np.float32)


def implausible(settings: RatingFederationSettings, model: Published, body: bytes) -> str | None:
    """Why no device can have sent this Update: its rows do not come from one vector."""
    update = rating_update_of_ours(body, settings.factors)
    return why_implausible_ratings(update, model.vectors, settings.regulariser)


def suggests(settings: RatingFederationSettings) -> dict[str, Any]:
    """What devices are suggested: all ratings, hidden among virtual ones as the federation's settings say."""
    return {
        "sharing": "sticky",
        "pi": 1.0,
        "basis": "shared",
        "filling": settings.filling,
        "rho": settings.rho,
        "sampling": settings.sampling,
    }


def summed_settings(settings: RatingFederationSettings, promise: Promise) -> RatingFederationSettings:
    """The settings of a federation of sums: no virtual ratings, a number of messages, and the bound of each."""
    noisy = bool(promise.sigma) or promise.epsilon is not None
    messages, clip = (20, 8.0) if noisy else (50, 64.0)
    return replace(
        settings,
        filling="none",
        rho=0.0,
        messages=messages if settings.messages is None else settings.messages,
        clip=clip if settings.clip is None else float(settings.clip),
    )


def plan_of(settings: RatingFederationSettings, n_items: int, people: int, promise: Promise) -> SumsPlan:
    """One kind of message, with one noise, as often as was promised."""
    del n_items, people
    assert settings.messages is not None, "a federation of sums has a number of messages"
    assert settings.clip is not None, "and a bound of each"
    columns = columns_of_gradients(settings.factors, implicit=settings.implicit)
    noises = one_noise(promise, settings.messages)
    return SumsPlan(GRADIENTS, settings.factors, columns, settings.clip, noises, 0.0)


def digest_of_model(settings: RatingFederationSettings, model: Published) -> bytes:
    """The digest of the model as devices read it."""
    tables = model.content.tables
    W = tables.get("implicit", np.zeros((0, settings.factors), dtype=np.float32))
    return rating_model_digest(model.version, iteration_of(model), tables["heard"], tables["vectors"], W)


def _every_message_alike(model: Published) -> int:
    """Which of a life's messages a round asks for: all are of one kind."""
    del model
    return 0


def _is_drawn(first: Content) -> bool:
    return float(first.overall["iteration"][0]) == 0


PMF = Family(
    method="pmf",
    settings=RatingFederationSettings,
    federation_settings=FEDERATION_SETTINGS,
    device_settings=DEVICE_SETTINGS,
    defaults={},
    settle=settle,
    first_content=first_content,
    form=form,
    recipe=recipe,
    fold=fold,
    encode=encode_rows,
    kinds={"plain": Kind(judge, summand), "sums": SEALED},
    sums=SumsOf(
        settings=summed_settings,
        plan=plan_of,
        stage=_every_message_alike,
        digest=digest_of_model,
        fold=fold_sum,
        is_drawn=_is_drawn,
        idle=("filling", "rho", "sampling"),
        only=("messages", "clip"),
    ),
    invitations=as_promised,
    implausible=implausible,
    suggests=suggests,
    sharing=("sticky",),
    # A gradient belongs to the version that it was computed from, and to that version's rate.
    modes=("rounds",),
)
SVDPP = replace(
    PMF,
    method="svdpp",
    settings=SVDPlusPlusFederationSettings,
    kinds={"plain": Kind(judge_implicit, summand), "sums": SEALED},
    implausible=Family.implausible,
)
