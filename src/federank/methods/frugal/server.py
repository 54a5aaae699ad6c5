"""Frugal in the service: what a federation is, its first model, what is sent, and how uploads are judged.

Clients come when they come, so a cohort is whoever reports in a round. What its sums say is added to what is known,
scaled to all users: to the enrolled clients and, where the federation began with a trained model, to the users whom
that model was learnt from. Once as many uploads have come as there are users, new ones replace as much as they add
(server_steps.py; with alpha above 0 the server steps by alternating least squares, and averages with max(1/t, .15) at
the t-th cohort). server_rounds.py has the server step; the maths are the simulation's, so the same uploads give its
model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector, RealMatrix
from federank.data.interactions import Interactions
from federank.errors import BadMessage, ModelError, SettingError
from federank.federation.rng import normal_columns
from federank.federation.secure import model_digest
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
    lowest_rows,
    one_noise,
)
from federank.federation.wire import Array
from federank.methods.frugal.losses import FrugalSettings
from federank.methods.frugal.method import (
    FrugalBroadcast,
    FrugalUpdate,
    is_count,
    make_frugal_broadcast,
    message_norm,
    published,
    supported_items,
)
from federank.methods.frugal.private_plan import planned
from federank.methods.frugal.private_server import affordable
from federank.methods.frugal.server_rounds import (
    content_of,
    first_private,
    first_support,
    fold_sum,
    fold_uploads,
    new_season,
    next_stage,
    progress,
    recipe,
    rows_of_model,
    stage_of,
)
from federank.methods.frugal.server_steps import (
    FRUGAL_DEFENCES,
    USUAL_JOINED,
    USUAL_PRIVATE,
    USUAL_SPECTRAL,
    item_weights,
)
from federank.methods.frugal.server_update import FEWEST_ITEMS, LEAST_WEIGHT, first_shared
from federank.methods.frugal.settings import (
    DEFAULT_MIN_SUPPORT,
    FrugalRecipe,
    factors_for,
    frugal_recipe,
    frugal_step,
    shrinkage_for,
)
from federank.methods.frugal.wire import (
    decode_any_frugal_update,
    decode_frugal_broadcast,
    decode_frugal_update,
    encode_frugal_broadcast,
    frugal_update_bytes,
    why_implausible_frugal,
)
from federank.secagg.config import PRIVATE, SPECTRAL, SecaggConfig

# Secure aggregation: what a server must know of both recipes.


def promising(settings: FrugalSettings, guarantee: Guarantee) -> FrugalSettings:
    """The settings with the guarantee among them; where a clip is named, its recipe knows of none."""
    if settings.clip is not None:
        if any(one_noise(guarantee, 1)):
            settings = _without_support(settings)
        return replace(settings, delta=guarantee.delta)
    return replace(settings, **guarantee._asdict())


def _without_support(settings: FrugalSettings) -> FrugalSettings:
    """With one noise on all uploads, counts of rare items are noise: all items are in all uploads."""
    if settings.min_support not in (1, DEFAULT_MIN_SUPPORT):
        raise SettingError(
            f"min_support is {settings.min_support}, but with a clip and noise the counts of rare items are noise, and "
            "every item is in every upload; leave min_support out, or the clip."
        )
    return replace(settings, min_support=1)


def plan_of(settings: FrugalSettings, n_items: int, people: int, guarantee: Guarantee) -> SecurePlan:
    """The plan of a new federation whose rounds are to be of this many people."""
    if settings.clip is not None:
        noises = one_noise(guarantee, settings.messages)
        return SecurePlan(
            SPECTRAL,
            int(settings.factors or 0),
            int(settings.factors or 0) + 1,
            settings.clip,
            noises,
            0.0,
            USUAL_SPECTRAL if frugal_step(settings) == "spectral" else 1.0,
            settings.min_support,
        )
    plan = planned(settings.mu, settings.messages, people, n_items, settings.factors)
    most_shown = USUAL_JOINED if plan.joined else USUAL_PRIVATE
    columns = plan.factors - 1
    return SecurePlan(
        PRIVATE, plan.factors, columns, 1.0, plan.deviations, plan.power, most_shown, settings.min_support
    )


DEVICE_SETTINGS = ("factors", "messages", "alpha", "unobserved_weight", "activity", "clip", "min_support")
"""What a device must know to follow the recipe; lambda and the items' weights come with each Broadcast."""
FEDERATION_SETTINGS = (
    *("factors", "messages", "alpha", "unobserved_weight", "regulariser", "shrinkage", "activity", "popularity"),
    *("damping", "broadcast", "clip", "initial_scale", "most_shown", "min_support", "seed"),
)


def settle(settings: FrugalSettings, data: Interactions, trained: Any) -> FrugalSettings:
    """The settings with numbers for all that is sent to a device."""
    if settings.loss != "squares" or settings.server != "solve" or settings.cohorts != 1:
        raise SettingError(
            "A federation of frugal learns squares, solves from the sums of whole messages, and takes cohorts as "
            "people come; leave loss, server and cohorts out."
        )
    if settings.min_support > 1 and data.n_items < FEWEST_ITEMS:
        raise SettingError(
            f"The catalogue has {data.n_items:,} items. With a min_support of {settings.min_support}, at least "
            f"{FEWEST_ITEMS} items with that many users are needed; ask for a min_support of 1."
        )
    if settings.guarantees:
        if trained is not None:
            raise SettingError(
                "Sums with noise are learnt by a recipe of their own, from the first round on; leave --start-from out, "
                "or name a --clip and --sigma 0."
            )
        return replace(settings, shrinkage=shrinkage_for(settings))
    if trained is not None:
        if getattr(trained, "name", None) != "frugal" or not hasattr(trained, "item_weights"):
            raise ModelError(
                "A federation of frugal can start from a frugal model that has learnt squares; this one is "
                f"{getattr(trained, 'name', 'something else')}."
            )
        settings = replace(settings, factors=int(trained.item_vectors.shape[1]))
    settings = replace(settings, factors=factors_for(settings, None, data.n_items))
    known = frugal_recipe(settings, np.ones(1, dtype=np.int64), data.n_items)
    if trained is not None and known.step != "spectral":
        raise SettingError("A federation that starts from a trained model needs alpha 0 and damping 1; leave them out.")
    return replace(
        settings,
        factors=known.factors,
        shrinkage=known.shrinkage,
        activity=known.activity,
        popularity=known.popularity,
    )


def first_content(settings: FrugalSettings, data: Interactions, trained: Any) -> Content:
    """First vectors, drawn as a simulation draws them; or a trained model, with what its users have uploaded."""
    now = recipe(settings, data.n_items, 1)
    first = first_shared(now, settings.initial_scale, normal_columns)  # a server compiles nothing to start
    if trained is None:
        content = content_of(first, 0)
        return next_stage(settings, first_support(settings, first_private(content) if settings.guarantees else content))
    here, there = known_items(data, trained)
    report = getattr(trained, "report", {})  # an exported model has nobody's history; its report has the counts
    people = int(report.get("people", trained.training.n_users))
    counts = report.get("people_with_item")
    if counts is None or len(counts) != len(trained.item_vectors):
        counts = np.bincount(trained.training.items, minlength=len(trained.item_vectors))
    first.counts[here] = np.asarray(counts)[there]
    first.received, first.regulariser = float(people), trained.regulariser
    first.weights = item_weights(first.counts, settings.popularity or 0.0)
    first.weights[here] = trained.item_weights[there]
    if settings.min_support > 1:  # the trained model's own minimum support may have been another
        supported = (first.counts >= settings.min_support) & (first.weights > 0)
        first.weights = np.where(supported, np.maximum(first.weights, LEAST_WEIGHT), 0).astype(np.float32)
        if supported.sum() < FEWEST_ITEMS:
            raise ModelError(
                f"Of the model's items, {int(supported.sum()):,} have {settings.min_support} users or more, and at "
                f"least {FEWEST_ITEMS} are needed; start from a model of more users, or ask for a smaller min_support."
            )
    first.vectors = np.zeros_like(first.vectors)  # an item that no user has had is recommended to no one yet
    first.vectors[here] = trained.item_vectors[there]
    first.sketch[here] = _sketch_of(trained)[there]
    if settings.min_support > 1:
        for rows in (first.vectors, first.sketch, first.counts):
            rows[first.weights == 0] = 0
    return next_stage(settings, first_support(settings, content_of(first, people)))


def _sketch_of(trained: Any) -> RealMatrix:
    """V diag(sigma), which a trained model knows of everyone's items: Y = V diag(sqrt(sigma - lambda)), V'DV = I."""
    vectors = trained.item_vectors.astype(np.float64)
    beyond = np.einsum("ij,ij,i->j", vectors, vectors, trained.item_weights.astype(np.float64))  # sigma - lambda
    is_known = beyond > 0
    scale = np.where(is_known, (beyond + trained.regulariser) / np.sqrt(np.where(is_known, beyond, 1.0)), 0.0)
    sketch: RealMatrix = vectors * scale
    return sketch


def form(settings: FrugalSettings, n_items: int, most_norm: float) -> Form:
    """What an upload must look like: a number per item, and a vector."""
    factors = int(settings.factors or 0)
    longest = frugal_update_bytes(n_items, factors) + MAX_HEADER
    return Form(factors, n_items, n_items, most_norm, longest, method=settings if settings.min_support == 1 else None)


def form_of(settings: FrugalSettings, form: Form, model: Published) -> Form:
    """The same for uploads that are made from this model: they cover its supported items, or carry counts."""
    rows = rows_of_model(settings, model)
    covered = model.n_items if rows is None else rows
    return form._replace(n_items=model.n_items, most_rows=covered, method=settings)


def digest_of_model(settings: FrugalSettings, model: Published) -> bytes:
    """The digest of the model as devices read it."""
    tables, overall, _ = model.content
    sent_vectors = published(recipe(settings, len(model.changed), 1), tables["vectors"])
    return model_digest(model.version, {**tables, "vectors": sent_vectors, "regulariser": overall["regulariser"]})


def encode_rows(settings: FrugalSettings, model: Published, rows: IntVector, round_number: int) -> bytes:
    """Some rows of the model as a Broadcast on the wire."""
    tables, overall, _ = model.content
    n_items = len(tables["vectors"])
    now, regularisation = recipe(settings, n_items, 1), float(overall["regulariser"][0])
    broadcast = make_frugal_broadcast(now, round_number, regularisation, tables["vectors"], tables["weights"], rows)
    return encode_frugal_broadcast(broadcast._replace(version=model.version), n_items)


def decode_rows(settings: FrugalSettings, content: bytes, n_items: int) -> FrugalBroadcast:
    """A Broadcast, as a client reads it."""
    return decode_frugal_broadcast(content, recipe(settings, n_items, 1).factors, n_items)


def judge(body: bytes, form: Form) -> int:
    """Refuse an upload that is not of this form; 1 where its norm is too large, and it will be scaled down."""
    update = _decoded(body, form)
    return int(not is_count(update) and _length(update) > form.most_norm)


def _decoded(body: bytes, form: Form) -> FrugalUpdate:
    if form.method is None:  # the model is not known any more: the upload is late
        return decode_any_frugal_update(body, form.factors, None, form.n_items)
    if form.method.min_support == 1:
        return decode_frugal_update(body, form.factors, form.n_items)
    update = decode_any_frugal_update(body, form.factors, form.most_rows, form.n_items)
    if not form.most_rows and not is_count(update):
        raise BadMessage("No item is supported yet, so uploads carry counts; this one does not.")
    return update


def summand(body: bytes, form: Form) -> FrugalUpdate:
    """The upload that was judged when it arrived, with at most the norm that is allowed."""
    update = _decoded(body, form)
    length = _length(update)
    if is_count(update) or length <= form.most_norm:
        return update
    return FrugalUpdate.of(update.strengths, update.vector, float(update.scale[0]) * form.most_norm / length)


def _length(update: FrugalUpdate) -> float:
    """The L2 norm of all numbers of the message, written out."""
    return float(update.scale[0]) * message_norm(update.strengths, update.vector)


def implausible(settings: FrugalSettings, model: Published, body: bytes) -> str | None:
    """Why no device can have sent this message: it is not what a history gives with this model."""
    tables, overall, _ = model.content
    now = recipe(settings, len(tables["vectors"]), 1)
    items = supported_items(now, tables["weights"])
    update = decode_any_frugal_update(body, now.factors, len(items), len(tables["vectors"]))
    if is_count(update):
        return None
    sent_vectors, gram = _as_devices_see(now, model)
    weights, regularisation = tables["weights"][items], float(overall["regulariser"][0])
    return why_implausible_frugal(now, update, sent_vectors[items], weights, gram, regularisation)


def _as_devices_see(recipe: FrugalRecipe, model: Published) -> tuple[FloatMatrix, RealMatrix]:
    """The item vectors as published, and their Y'DY; kept for the version at hand, as all of a round ask for it."""
    if not _SEEN or _SEEN[0][0] is not model.content:
        sent_vectors = published(recipe, model.vectors)
        gram = sent_vectors.T.astype(np.float64) @ (sent_vectors * model.content.tables["weights"][:, None])
        _SEEN[:] = [(model.content, sent_vectors, gram)]
    return _SEEN[0][1], _SEEN[0][2]


_SEEN: list[tuple[Content, FloatMatrix, RealMatrix]] = []


def invitations_now(settings: FrugalSettings, model: Published) -> int | None:
    """Once, until items are supported: no client's counts come twice."""
    return 1 if rows_of_model(settings, model) == 0 else None


def received(model: Published) -> dict[str, Array]:
    """How many people a model was learnt from, and how many of them have each item, where that is remembered."""
    state = model.content.state
    if "received" not in state:
        return {}
    return {"people": state["received"], "people_with_item": state["counts"]}


def item_state(settings: FrugalSettings, content: Content) -> tuple[str, ...]:
    """What the next fold remembers of each item; without the spectral step the sketch is a square of factors."""
    if "summed" in content.state:
        return "counts", "summed", "earlier", "newest", "joined"
    is_spectral = recipe(settings, content.n_items, 1).step == "spectral"
    counted = ("counted",) if "counted" in content.state else ()
    return ("counts", *counted, "sketch") if is_spectral else ("counts", *counted)


def extend(settings: FrugalSettings, content: Content, n_items: int) -> Content:
    """The same for a catalogue that has grown: no one has been seen with the new items yet."""
    more = n_items - len(content.tables["vectors"])
    extended, state = lowest_rows(content, n_items), dict(content.state)
    if more <= 0 or not state:
        return extended
    for name in item_state(settings, content):
        state[name] = np.concatenate((state[name], np.zeros((more, *state[name].shape[1:]))))
    if settings.min_support > 1:  # new items have no users yet
        tables = dict(extended.tables)
        tables["weights"] = np.concatenate((content.tables["weights"], np.zeros(more, dtype=np.float32)))
        extended = extended._replace(tables=tables)
    return extended._replace(state=state)


def next_season(before: SecaggConfig, now: SecaggConfig, content: Content) -> Content:
    """The first stage of a season's plan. What earlier seasons' sums have shown counts as cohorts with its noise."""
    if "summed" not in content.state:
        is_counting = "counted" in content.state
        return content._replace(overall={**content.overall, "stage": np.array([0])}) if is_counting else content
    folds, n_items = int(content.state["folds"][0]), content.n_items
    cohorts = -(-folds // before.messages)
    if cohorts and now.noises[0]:
        cohorts = max(1, round(cohorts * (before.noises[0] / now.noises[0]) ** 2))
    popularity = content.state["counts"]
    if popularity.any():  # an item that starts low, or has ended, counts as little as the least popular one
        popularity = np.where(popularity > 0, popularity, popularity[popularity > 0].min())
    folds_now = np.array([cohorts * now.messages])
    state = {**content.state, "folds": folds_now, "began": folds_now, "joined": np.zeros((n_items, 0))}
    state["counts"] = popularity
    return content._replace(overall={**content.overall, "stage": np.array([0])}, state=state)


def exported(settings: Mapping[str, Any], tables: Mapping[str, Array]) -> Exported:
    """A version as a model of Frugal: vectors as clients read them."""
    now = recipe(FrugalSettings(**settings), len(tables["vectors"]), 1)
    arrays = {"item_vectors": published(now, tables["vectors"]), "item_weights": tables["weights"]}
    return Exported(settings, arrays | {"regulariser": tables["overall.regulariser"]})


FRUGAL_SERVER = ServerMethod(
    name="frugal",
    settings=FrugalSettings,
    federation_settings=FEDERATION_SETTINGS,
    client_settings=DEVICE_SETTINGS,
    defaults={},
    settle=settle,
    first_content=first_content,
    form=form,
    recipe=recipe,
    fold=fold_uploads,
    encode=encode_rows,
    decode=decode_rows,
    kinds={"plain": UploadKind(judge, summand), "sums": SEALED},
    sums=SecureServerMethod(
        settings=promising,
        plan=plan_of,
        stage=stage_of,
        digest=digest_of_model,
        fold=fold_sum,
        is_drawn=lambda first: int(first.state["before"][0]) == 0,
        rows=rows_of_model,
        affordable=affordable,
        next_season=next_season,
    ),
    invitations=as_promised,
    invitations_now=invitations_now,
    form_of=form_of,
    progress=progress,
    defences=FRUGAL_DEFENCES,
    implausible=implausible,
    received=received,
    extend=extend,
    item_state=item_state,
    new_season=new_season,
    quota="messages",
    exported=exported,
    # Anyone who is invited spends a message, so no one is invited to spare; and the sums of a round belong to one
    # version.
    rounds={"over_selection": 1.0},
    sharing=("fixed-subset", "randomized-response"),
)
SERVERS = {FRUGAL_SERVER.name: FRUGAL_SERVER}
