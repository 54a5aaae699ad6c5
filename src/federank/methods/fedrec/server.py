"""Ratings (FedRec) in the world: V, and W for SVD++, stepped after each round by its share of an iteration.

The recipe, the messages and the step are the protocol's own (protocol/ratings/aggregation.py). Clients come when they
come: an iteration, with which the learning rate falls, is over once as many uploads were aggregated as there are
clients. Clients receive it with each Broadcast, and which items any upload has ever had. How often items were reported
in the last iteration is the server's own state.

The first model predicts every client's mean, or is drawn like a simulation's (`first_prediction`); or it is the shared
part of a model that was trained before, and goes on at the rate with which its training ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS
from federank.federation.server import (
    MAX_HEADER,
    SEALED,
    Content,
    Exported,
    Form,
    Guarantee,
    Published,
    SecurePlan,
    SecureServerMethod,
    ServerMethod,
    UploadKind,
    as_promised,
    known_items,
    one_noise,
)
from federank.federation.wire import Array
from federank.methods.fedrec.method import uniform_rows
from federank.methods.fedrec.settings import (
    RatingFederationSettings,
    RatingRecipe,
    RatingSettings,
    SVDPlusPlusFederationSettings,
    rating_recipe,
    step_of,
)
from federank.methods.fedrec.wire import (
    GradientSums,
    RatingRows,
    RatingUpdate,
    ReportCounts,
    SharedFactors,
    columns_of_gradients,
    decode_rating_rows,
    decode_rating_update,
    encode_rating_rows,
    rating_update_bytes,
    rating_update_of_ours,
    summed_gradients,
    why_implausible_ratings,
)
from federank.methods.predicting import refuse_bad_ratings
from federank.secagg.config import GRADIENTS, SecaggConfig
from federank.secagg.round_config import rating_model_digest

DEVICE_SETTINGS = (
    *("factors", "learning_rate", "decay", "regulariser", "initial_range", "t_predict", "t_local"),
    *("item_gradients", "filling_start", "local_training", "lowest", "highest", "step", "messages", "clip"),
    "first_prediction",
)
"""What a device must be told to follow the recipe and to know the scale; the iteration comes with each Broadcast."""
FEDERATION_SETTINGS = (*DEVICE_SETTINGS, "prior_count", "filling", "rho", "sampling", "seed")
LONGEST_ROW = 4.0
"""Longest item vector that is on the rating scale, as a multiple of the square root of the highest rating."""
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
    return replace(settings, step=1.0 if step is None else step, learning_rate=_rate(settings))


def _rate(settings: RatingFederationSettings) -> float:
    return settings.stable_rate if settings.learning_rate is None else float(settings.learning_rate)


_TRAINED = ("pmf", "svdpp")


def first_content(settings: RatingFederationSettings, data: Interactions, trained: Any) -> Content:
    """First vectors: they predict means, or are drawn as a simulation draws them; or those of a trained model.

    Items that the trained model lacks start as the mean of those that it has.
    """
    purposes = {"vectors": ITEM_FACTORS} | ({"implicit": IMPLICIT_FACTORS} if settings.implicit else {})
    span, shape = settings.initial_range, (data.n_items, settings.factors)
    tables = {
        name: uniform_rows(*shape, seed=settings.seed, purpose=purpose, span=span) for name, purpose in purposes.items()
    }
    if settings.first_prediction == "mean":
        tables["vectors"][:, 0] += np.float32(settings.first_length)
    heard, iteration = np.zeros(data.n_items, dtype=np.int8), 0.0
    if trained is not None:
        here, there = known_items(data, trained)
        learnt = {"vectors": "item_vectors", "implicit": "implicit_vectors"}
        for name, table in tables.items():
            known = getattr(trained, learnt[name])[there]
            table[:] = known.mean(axis=0)
            table[here] = known
        heard[here], iteration = 1, float(trained.settings.iterations)
    implicit = len(tables.get("implicit", ()))
    counts = ReportCounts(0.0, np.zeros(data.n_items), np.zeros(implicit))
    return Content({**tables, "heard": heard}, {"iteration": np.array([iteration])}, _state(counts))


def extend(_settings: RatingFederationSettings, content: Content, n_items: int) -> Content:
    """The same for a catalogue that has grown: new items start as the mean of the others; no one has reported them."""
    before = len(content.tables["vectors"])
    if n_items <= before:
        return content
    rows = {name: np.zeros((n_items - before, *table.shape[1:]), table.dtype) for name, table in content.tables.items()}
    rows["vectors"][:] = content.tables["vectors"].mean(axis=0)
    tables = {name: np.concatenate((table, rows[name])) for name, table in content.tables.items()}
    uploads, *items = _counts(content)
    more = np.zeros(n_items - before)
    extended = [np.concatenate((counts, more)) if len(counts) else counts for counts in items]
    return content._replace(tables=tables, state=_state(ReportCounts(uploads, *extended)))


def item_state(_settings: RatingFederationSettings, content: Content) -> tuple[str, ...]:
    """How often each item was reported lately."""
    return tuple(name for name in ("reports", "implicit_reports") if len(content.state.get(name, ())))


def _counts(content: Content) -> ReportCounts:
    """How often items were reported lately; where that is not known, never."""
    state, tables = content.state, content.tables
    if not state:
        return ReportCounts(0.0, np.zeros(len(tables["vectors"])), np.zeros(len(tables.get("implicit", ()))))
    return ReportCounts(float(state["uploads"][0]), state["reports"], state["implicit_reports"])


def _state(counts: ReportCounts) -> dict[str, Any]:
    return {
        "uploads": np.array([counts.uploads]),
        "reports": counts.items,
        "implicit_reports": counts.implicit_items,
    }


def form(settings: RatingFederationSettings, n_items: int, most_norm: float) -> Form:
    """What an upload must look like: at most a row for each item, and for SVD++ two."""
    implicit_rows = n_items if settings.implicit else 0
    longest = rating_update_bytes(n_items, implicit_rows, settings.factors) + MAX_HEADER
    return Form(settings.factors, n_items, n_items, most_norm, longest)


class ServerRecipe(NamedTuple):
    """What an aggregation follows."""

    recipe: RatingRecipe
    clients: int
    prior_count: float


def recipe(settings: RatingFederationSettings, n_items: int, devices: int) -> ServerRecipe:
    """The recipe that aggregation follows; of the clients it needs only how many there are."""
    worked_out = rating_recipe(replace(settings, learning_rate=_rate(settings)), np.ones(1, dtype=np.int64), n_items)
    return ServerRecipe(worked_out, devices, settings.prior_count)


def fold(recipe: ServerRecipe, model: Published, _round_number: int, updates: Iterable[RatingUpdate]) -> Content:
    """The next version: the round's share of an iteration, at the rate of the iteration."""
    uploads = list(updates)
    shared = _shared(recipe, model)
    return _next(recipe, model, shared, shared.summed(recipe.recipe, uploads), len(uploads))


def fold_sum(
    settings: RatingFederationSettings,
    config: SecaggConfig,
    model: Published,
    people: int,
    total: IntVector,
    messages: int,
) -> Content:
    """The next version, from the sum of messages that no one has read, with the noise of both servers."""
    now = recipe(settings, config.items, people)
    clip, noise = config.length_of_clip(), config.noises[0]
    sums = summed_gradients(total, clip, noise, config.items, implicit=settings.implicit)
    return _next(now, model, _shared(now, model), sums, messages)


def _shared(recipe: ServerRecipe, model: Published) -> SharedFactors:
    """What an aggregation works on."""
    tables, none = model.content.tables, np.zeros((0, recipe.recipe.factors), dtype=np.float32)
    return SharedFactors(tables["vectors"], tables.get("implicit", none), iteration_of(model))


def _next(recipe: ServerRecipe, model: Published, shared: SharedFactors, sums: GradientSums, uploads: int) -> Content:
    """What follows from the sums of a round."""
    clients = max(recipe.clients, uploads, 1)
    counts = _counts(model.content).after(sums, uploads, clients)
    shared.step_by_share(recipe.recipe, sums, counts, clients, recipe.prior_count)
    implicit = {"implicit": shared.implicit_vectors} if recipe.recipe.implicit else {}
    heard = np.maximum(model.content.tables["heard"], (sums.counts > 0).astype(np.int8))
    passed = float(model.content.overall["iteration"][0]) + uploads / clients
    tables = {"vectors": shared.vectors, **implicit, "heard": heard}
    return Content(tables, {"iteration": np.array([passed])}, _state(counts))


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


def decode_rows(settings: RatingFederationSettings, content: bytes, n_items: int) -> RatingRows:
    """A Broadcast, as a client reads it."""
    return decode_rating_rows(content, settings.factors, n_items, implicit=settings.implicit)


def out_of_scale(settings: RatingFederationSettings, before: Content, after: Content) -> str | None:
    """Why an aggregate leads out of the rating scale: it makes a row longer than vectors of ratings can be.

    Vectors of users and items have about the same length, at most sqrt(highest) where predictions are on the scale. A
    row of several times that predicts several times the highest rating.
    """
    longest = LONGEST_ROW * math.sqrt(max(abs(settings.lowest), abs(settings.highest)))
    for name in ("vectors", *(("implicit",) if settings.implicit else ())):
        lengths, earlier = _lengths(after.tables[name]), _lengths(before.tables[name])
        wrong = ~(lengths <= np.maximum(longest, earlier))  # so that what is no number is wrong too
        if wrong.any():
            return f"{np.count_nonzero(wrong)} item vectors are longer than {longest:.3g}, beyond the rating scale"
    return None


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
        "sharing": "fixed-subset",
        "pi": 1.0,
        "basis": "shared",
        "filling": settings.filling,
        "rho": settings.rho,
        "sampling": settings.sampling,
    }


def summed_settings(settings: RatingFederationSettings, guarantee: Guarantee) -> RatingFederationSettings:
    """The settings of a federation of sums: no virtual ratings, a number of messages, and the bound of each."""
    noisy = bool(guarantee.sigma) or guarantee.epsilon is not None
    messages, clip = (20, 8.0) if noisy else (50, 64.0)
    return replace(
        settings,
        filling="none",
        rho=0.0,
        messages=messages if settings.messages is None else settings.messages,
        clip=clip if settings.clip is None else float(settings.clip),
    )


def plan_of(settings: RatingFederationSettings, _n_items: int, _people: int, guarantee: Guarantee) -> SecurePlan:
    """One kind of message, with one noise, as often as was promised."""
    assert settings.messages is not None, "a federation of sums has a number of messages"
    assert settings.clip is not None, "and a bound of each"
    columns = columns_of_gradients(settings.factors, implicit=settings.implicit)
    noises = one_noise(guarantee, settings.messages)
    return SecurePlan(GRADIENTS, settings.factors, columns, settings.clip, noises, 0.0)


def digest_of_model(settings: RatingFederationSettings, model: Published) -> bytes:
    """The digest of the model as devices read it."""
    tables = model.content.tables
    W = tables.get("implicit", np.zeros((0, settings.factors), dtype=np.float32))
    return rating_model_digest(model.version, iteration_of(model), tables["heard"], tables["vectors"], W)


def _every_message_alike(_settings: RatingFederationSettings, _model: Published) -> int:
    """Which of a lifetime's messages a round asks for: all are of one kind."""
    return 0


def _is_drawn(first: Content) -> bool:
    return float(first.overall["iteration"][0]) == 0


def exported(settings: Mapping[str, Any], tables: Mapping[str, Array]) -> Exported:
    """A version as a model of FedRec. A simulation knows no steps of a scale, and SVD++ there has one style."""
    own = {part.name for part in fields(RatingSettings)} - {"style"}
    iterations = max(1, int(float(tables["overall.iteration"][0])))
    W = {"implicit_vectors": tables["implicit"]} if "implicit" in tables else {}
    kept = {name: value for name, value in settings.items() if name in own} | {"iterations": iterations}
    return Exported(kept, {"item_vectors": tables["vectors"], **W}, rated=True)


PMF_SERVER = ServerMethod(
    name="pmf",
    settings=RatingFederationSettings,
    federation_settings=FEDERATION_SETTINGS,
    client_settings=DEVICE_SETTINGS,
    defaults={},
    settle=settle,
    first_content=first_content,
    form=form,
    recipe=recipe,
    fold=fold,
    encode=encode_rows,
    decode=decode_rows,
    kinds={"plain": UploadKind(judge, summand), "sums": SEALED},
    sums=SecureServerMethod(
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
    extend=extend,
    item_state=item_state,
    quota="messages",
    out_of_scale=out_of_scale,
    implausible=implausible,
    suggests=suggests,
    exported=exported,
    sharing=("fixed-subset",),
    # A gradient belongs to the version that it was computed from, and to that version's rate.
)
SVDPP_SERVER = replace(
    PMF_SERVER,
    name="svdpp",
    settings=SVDPlusPlusFederationSettings,
    kinds={"plain": UploadKind(judge_implicit, summand), "sums": SEALED},
    implausible=ServerMethod.implausible,
)
SERVERS = {PMF_SERVER.name: PMF_SERVER, SVDPP_SERVER.name: SVDPP_SERVER}
