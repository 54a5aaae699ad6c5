"""Few messages (Frugal) in the world: item vectors that follow from two sums, solved again after each cohort.

People come when they come, so a cohort is anyone who reports in a round. What its sums say is added to what is known,
scaled to everyone: to the devices that are enrolled and, where the federation began with a trained model, to the
people whom that model was learnt from. Once as many have spoken as there are, those who speak replace as much as they
add. So a new user's one message counts as much as anyone's (server_steps.py has the rule; with
alpha above 0 the server steps by alternating least squares, and averages with max(1/t, .15) at the t-th cohort).

What the next fold remembers is the sketch of everyone's items, how many people have each, and how many were heard.
The recipe, the messages and the fold are the protocol's own, so the same messages give the simulation's model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector, RealMatrix
from federank.data.interactions import Interactions
from federank.errors import Diverged, ModelError, SettingError
from federank.federation.rng import normal_columns
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
    make_frugal_broadcast,
    message_norm,
    published,
)
from federank.methods.frugal.private_plan import PrivatePlan, planned
from federank.methods.frugal.private_server import PULL, PrivateModel, affordable, fold_of_cohort, received_from
from federank.methods.frugal.server_steps import (
    FRUGAL_DEFENCES,
    USUAL_JOINED,
    USUAL_PRIVATE,
    USUAL_SPECTRAL,
    SummedMessages,
    item_weights,
)
from federank.methods.frugal.server_update import FrugalState, first_shared
from federank.methods.frugal.server_update import fold as fold_summed
from federank.methods.frugal.settings import FrugalRecipe, factors_for, frugal_recipe, frugal_step, shrinkage_for
from federank.methods.frugal.wire import (
    decode_frugal_broadcast,
    decode_frugal_update,
    encode_frugal_broadcast,
    frugal_update_bytes,
    why_implausible_frugal,
)
from federank.secagg.config import PRIVATE, SPECTRAL, SecaggConfig
from federank.secagg.ring import in_units
from federank.secagg.round_config import model_digest

# Few messages as sums that no single server can open: what a server must know of both recipes of them.


def promising(settings: FrugalSettings, guarantee: Guarantee) -> FrugalSettings:
    """The settings with the guarantee among them; where a clip is named, its recipe knows of none."""
    if settings.clip is not None:
        return replace(settings, delta=guarantee.delta)
    return replace(settings, **guarantee._asdict())


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
        )
    plan = planned(settings.mu, settings.messages, people, n_items, settings.factors)
    most_shown = USUAL_JOINED if plan.joined else USUAL_PRIVATE
    return SecurePlan(PRIVATE, plan.factors, plan.factors - 1, 1.0, plan.deviations, plan.power, most_shown)


def stage_of(_settings: FrugalSettings, model: Published) -> int:
    """Which of a lifetime's messages a round on this model asks for."""
    told = model.content.overall.get("stage")
    return 0 if told is None else int(told[0])


def first_private(content: Content) -> Content:
    """What a federation of the private recipe begins with: nothing is remembered, and the first stage comes first."""
    n_items = len(content.tables["vectors"])
    none = np.zeros((n_items, 0))
    state = {name: content.state[name] for name in ("counts", "heard", "folds", "before")}
    state |= {"summed": np.zeros(n_items), "earlier": none, "newest": none, "joined": none}
    return content._replace(overall={**content.overall, "stage": np.array([0])}, state=state)


def fold_private(
    settings: FrugalSettings,
    config: SecaggConfig,
    model: Published,
    told: FloatMatrix,
    total: IntVector,
    messages: int,
) -> Content:
    """The next version, from the sum of a round's messages with the noise of both servers."""
    tables, _, state = model.content
    folds = int(state["folds"][0])
    plan = PrivatePlan(config.noises, config.columns + 1, float(config.power))
    values = in_units(total, config.length_of_clip()).reshape(-1, config.columns_of(folds % config.messages))
    popularity, summed, earlier, newest = (state[name] for name in ("counts", "summed", "earlier", "newest"))
    known = PrivateModel(
        tables["vectors"], tables["weights"], popularity, summed, earlier, newest, received_from(state["joined"])
    )
    most_shown = 1.0 if settings.most_shown is None else settings.most_shown
    now = fold_of_cohort(plan, settings.seed, shrinkage_for(settings), folds, known, told, values, most_shown)
    return Content(
        {"vectors": now.vectors, "weights": now.weights},
        {"regulariser": np.array([PULL]), "stage": np.array([(folds + 1) % config.messages])},
        _state(now, float(state["heard"][0]) + messages, folds + 1),
    )


def _state(now: PrivateModel, heard: float, folds: int) -> dict[str, Any]:
    return {
        "counts": now.popularity,
        "summed": now.summed,
        "earlier": np.ascontiguousarray(now.earlier),
        "newest": np.ascontiguousarray(now.newest),
        "joined": np.ascontiguousarray(now.heard.stored()),
        "heard": np.array([heard]),
        "folds": np.array([folds]),
        "before": np.array([0]),
        "capped": np.array([now.capped]),
    }


DEVICE_SETTINGS = ("factors", "messages", "alpha", "unobserved_weight", "activity", "clip")
"""What a device must be told to follow the recipe; lambda and the items' weights come with each Broadcast."""
FEDERATION_SETTINGS = (
    *("factors", "messages", "alpha", "unobserved_weight", "regulariser", "shrinkage", "activity", "popularity"),
    *("damping", "broadcast", "clip", "initial_scale", "most_shown", "seed"),
)
COHORTS = 10
"""Where the server averages, it does as in a simulation with so many cohorts: max(1/t, 1.5/COHORTS)."""


def settle(settings: FrugalSettings, data: Interactions, trained: Any) -> FrugalSettings:
    """The settings with numbers for all that a device is told."""
    if settings.loss != "squares" or settings.server != "solve" or settings.cohorts != 1:
        raise SettingError(
            "A federation of frugal learns squares, solves from the sums of whole messages, and takes cohorts as "
            "people come; leave loss, server and cohorts out."
        )
    settings = replace(settings, min_support=1)
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
    """First vectors, drawn as a simulation draws them; or a trained model, with what its people have said."""
    now = recipe(settings, data.n_items, 1)
    first = first_shared(now, settings.initial_scale, normal_columns)  # a server compiles nothing to start
    if trained is None:
        return first_private(_content(first, 0)) if settings.guarantees else _content(first, 0)
    here, there = known_items(data, trained)
    report = getattr(trained, "report", {})  # an exported model has no one's history, and says whom it has heard
    people = int(report.get("people", trained.training.n_users))
    counts = report.get("people_with_item")
    if counts is None or len(counts) != len(trained.item_vectors):
        counts = np.bincount(trained.training.items, minlength=len(trained.item_vectors))
    first.counts[here] = np.asarray(counts)[there]
    first.heard, first.regulariser = float(people), trained.regulariser
    first.weights = item_weights(first.counts, settings.popularity or 0.0)
    first.weights[here] = trained.item_weights[there]
    first.vectors = np.zeros_like(first.vectors)  # what no one has been seen with is recommended to no one yet
    first.vectors[here] = trained.item_vectors[there]
    first.sketch[here] = _sketch_of(trained)[there]
    return _content(first, people)


def _sketch_of(trained: Any) -> RealMatrix:
    """V diag(sigma), which a trained model knows of everyone's items: Y = V diag(sqrt(sigma - lambda)), V'DV = I."""
    vectors = trained.item_vectors.astype(np.float64)
    beyond = np.einsum("ij,ij,i->j", vectors, vectors, trained.item_weights.astype(np.float64))  # sigma - lambda
    told = beyond > 0
    scale = np.where(told, (beyond + trained.regulariser) / np.sqrt(np.where(told, beyond, 1.0)), 0.0)
    sketch: RealMatrix = vectors * scale
    return sketch


def form(settings: FrugalSettings, n_items: int, most_norm: float) -> Form:
    """What an upload must look like: a number for every item, and a vector."""
    factors = int(settings.factors or 0)
    return Form(factors, n_items, n_items, most_norm, frugal_update_bytes(n_items, factors) + MAX_HEADER)


def recipe(settings: FrugalSettings, n_items: int, devices: int) -> FrugalRecipe:
    """The recipe that aggregation follows; of people it needs only how many there are."""
    alone = frugal_recipe(settings, np.ones(1, dtype=np.int64), n_items)
    all_users: IntVector = np.broadcast_to(np.int32(0), (devices,))
    return alone._replace(participants=all_users, cohorts=COHORTS)


def fold(recipe: FrugalRecipe, model: Published, _round_number: int, updates: Iterable[FrugalUpdate]) -> Content:
    """The next version, by the aggregation of the simulation; its rounds are those that were folded."""
    return _folded(recipe, model, lambda shared, now: shared.aggregate(now, updates))


def fold_sum(
    settings: FrugalSettings, config: SecaggConfig, model: Published, people: int, total: IntVector, messages: int
) -> Content:
    """The next version, from the sum of messages that no one has read, with the noise of both servers."""
    now = recipe(settings, config.items, people)
    if config.recipe == PRIVATE:
        told = published(now, model.content.tables["vectors"])
        return fold_private(settings, config, model, told, total, messages)
    values = in_units(total, config.length_of_clip())
    residuals, squares = np.split(values.reshape(-1, config.columns), [config.items])  # then the square of a row
    sums = SummedMessages(residuals, squares, messages)
    return _folded(now, model, lambda shared, now: fold_summed(now, shared, sums))


def _folded(recipe: FrugalRecipe, model: Published, act: Callable[[FrugalState, FrugalRecipe], None]) -> Content:
    """What a fold makes of the model, or of its memory alone where no model follows."""
    shared, now, before = _held(recipe, model)
    try:
        act(shared, now)
    except Diverged:
        # A fixed lambda may be too large for the few who have spoken so far: their sums are kept, the model stays.
        tables, overall, state = model.content
        kept = tables["vectors"], tables["weights"], float(overall["regulariser"][0])
        shared.vectors, shared.weights, shared.regulariser = kept
        shared.round_number = int(state["folds"][0]) + 1
    return _content(shared, before)


def digest_of_model(settings: FrugalSettings, model: Published) -> bytes:
    """The digest of the model as devices read it."""
    tables, overall, _ = model.content
    told = published(recipe(settings, len(model.changed), 1), tables["vectors"])
    return model_digest(model.version, float(overall["regulariser"][0]), tables["weights"], told)


def _held(recipe: FrugalRecipe, model: Published) -> tuple[FrugalState, FrugalRecipe, int]:
    """What the fold works on, the recipe scaled to everyone, and whom a trained model was learnt from."""
    tables, overall, state = model.content
    before = int(state["before"][0])
    none = np.zeros((0, recipe.factors), dtype=np.float32)
    shared = FrugalState(
        tables["vectors"],
        float(overall["regulariser"][0]),
        state["sketch"],
        none,
        none,
        tables["weights"],
        state["counts"],
        float(state["heard"][0]),
        int(state["folds"][0]),
    )
    all_users: IntVector = np.broadcast_to(np.int32(0), (max(1, before + len(recipe.participants)),))
    return shared, recipe._replace(participants=all_users), before


def _content(shared: FrugalState, before: int) -> Content:
    """What is published of it, and what the next fold remembers; `before`: whom a trained model was learnt from."""
    return Content(
        {"vectors": shared.vectors, "weights": shared.weights},
        {"regulariser": np.array([shared.regulariser])},
        {
            "sketch": np.ascontiguousarray(shared.sketch),
            "counts": shared.counts,
            "heard": np.array([shared.heard]),
            "folds": np.array([shared.round_number]),
            "before": np.array([before]),
            "capped": np.array([shared.capped]),
        },
    )


def encode_rows(settings: FrugalSettings, model: Published, rows: IntVector, round_number: int) -> bytes:
    """Some rows of the model as a Broadcast on the wire."""
    tables, overall, _ = model.content
    n_items = len(tables["vectors"])
    now, pull = recipe(settings, n_items, 1), float(overall["regulariser"][0])
    broadcast = make_frugal_broadcast(now, round_number, pull, tables["vectors"], tables["weights"], rows)
    return encode_frugal_broadcast(broadcast._replace(version=model.version), n_items)


def decode_rows(settings: FrugalSettings, content: bytes, n_items: int) -> FrugalBroadcast:
    """A Broadcast, as a client reads it."""
    return decode_frugal_broadcast(content, recipe(settings, n_items, 1).factors, n_items)


def judge(body: bytes, form: Form) -> int:
    """Refuse an upload that is no message of this form; 1 where it is too long as a whole, and will be scaled down."""
    update = decode_frugal_update(body, form.factors, form.n_items)
    return int(_length(update) > form.most_norm)


def summand(body: bytes, form: Form) -> FrugalUpdate:
    """The message that was judged when it arrived, at most as long as is allowed."""
    update = decode_frugal_update(body, form.factors, form.n_items)
    length = _length(update)
    if length <= form.most_norm:
        return update
    return update._replace(scale=np.float32(float(update.scale) * form.most_norm / length))


def _length(update: FrugalUpdate) -> float:
    """The L2 norm of all numbers of the message, written out."""
    return float(update.scale) * message_norm(update.strengths, update.vector)


def implausible(settings: FrugalSettings, model: Published, body: bytes) -> str | None:
    """Why no device can have sent this message: it is not what a history gives with this model."""
    tables, overall, _ = model.content
    now = recipe(settings, len(tables["vectors"]), 1)
    update = decode_frugal_update(body, now.factors, len(tables["vectors"]))
    told, gram = _as_devices_see(now, model)
    return why_implausible_frugal(now, update, told, tables["weights"], gram, float(overall["regulariser"][0]))


def _as_devices_see(recipe: FrugalRecipe, model: Published) -> tuple[FloatMatrix, RealMatrix]:
    """The item vectors as published, and their Y'DY; kept for the version at hand, as all of a round ask for it."""
    if not _SEEN or _SEEN[0][0] is not model.content:
        told = published(recipe, model.vectors)
        gram = told.T.astype(np.float64) @ (told * model.content.tables["weights"][:, None])
        _SEEN[:] = [(model.content, told, gram)]
    return _SEEN[0][1], _SEEN[0][2]


_SEEN: list[tuple[Content, FloatMatrix, RealMatrix]] = []


def heard(model: Published) -> dict[str, Array]:
    """How many people a model was learnt from, and how many of them have each item, where that is remembered."""
    state = model.content.state
    if "heard" not in state:
        return {}
    return {"people": state["heard"], "people_with_item": state["counts"]}


def item_state(settings: FrugalSettings, content: Content) -> tuple[str, ...]:
    """What the next fold remembers of each item; without the spectral step the sketch is a square of factors."""
    if "summed" in content.state:
        return "counts", "summed", "earlier", "newest", "joined"
    is_spectral = recipe(settings, content.n_items, 1).step == "spectral"
    return ("counts", "sketch") if is_spectral else ("counts",)


def extend(settings: FrugalSettings, content: Content, n_items: int) -> Content:
    """The same for a catalogue that has grown: no one has been seen with the new items yet."""
    more = n_items - len(content.tables["vectors"])
    extended, state = lowest_rows(content, n_items), dict(content.state)
    if more <= 0 or not state:
        return extended
    for name in item_state(settings, content):
        state[name] = np.concatenate((state[name], np.zeros((more, *state[name].shape[1:]))))
    return extended._replace(state=state)


def next_season(before: SecaggConfig, now: SecaggConfig, content: Content) -> Content:
    """The first stage of a season's plan. What earlier seasons' sums have shown counts as cohorts with its noise."""
    if "summed" not in content.state:
        return content
    folds, n_items = int(content.state["folds"][0]), content.n_items
    cohorts = -(-folds // before.messages)
    if cohorts and now.noises[0]:
        cohorts = max(1, round(cohorts * (before.noises[0] / now.noises[0]) ** 2))
    popularity = content.state["counts"]
    if popularity.any():  # an item that starts low, or has ended, counts as little as the least popular one
        popularity = np.where(popularity > 0, popularity, popularity[popularity > 0].min())
    state = {**content.state, "folds": np.array([cohorts * now.messages]), "joined": np.zeros((n_items, 0))}
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
    defaults={"min_support": 1},  # every item is in every upload: clients cannot be asked for counts yet
    settle=settle,
    first_content=first_content,
    form=form,
    recipe=recipe,
    fold=fold,
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
        affordable=affordable,
        next_season=next_season,
    ),
    invitations=as_promised,
    defences=FRUGAL_DEFENCES,
    implausible=implausible,
    heard=heard,
    extend=extend,
    item_state=item_state,
    quota="messages",
    exported=exported,
    # Anyone who is invited spends a message, so no one is invited to spare; and the sums of a round belong to one
    # version.
    rounds={"over_selection": 1.0},
    sharing=("fixed-subset", "randomized-response"),
)
SERVERS = {FRUGAL_SERVER.name: FRUGAL_SERVER}
