"""What a round of the service makes of the model: plain uploads, secure sums, and secure sums with noise.

A federation with a minimum support of 2 or more begins without supported items: no item has a weight. An item is
supported once the counts that clients have uploaded name `min_support` users of it. Fewer than 50 supported items make
no model, and more counts are asked for.

    plain       a client's first upload carries counts, in whichever round it comes; others cover the supported items
    spectral    secure: a round is of counts or of the supported items (its stage). Every `messages`-th carries counts
    private     secure: the first stage of each cycle carries popularity, from which the (noisy) counts follow
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, RealVector
from federank.errors import Diverged
from federank.federation.rng import ITEM_FACTORS, normal_columns
from federank.federation.server import Content, Published
from federank.federation.wire import Array
from federank.methods.frugal.losses import FrugalSettings
from federank.methods.frugal.method import FrugalUpdate, count_unit, is_count, published, supported_items
from federank.methods.frugal.private_plan import PrivatePlan
from federank.methods.frugal.private_server import (
    REGULARISATION,
    PrivateModel,
    RoundBuffer,
    fold_of_cohort,
    noisy_counts,
    received_from,
)
from federank.methods.frugal.server_steps import CALM_ROUNDS, SummedMessages
from federank.methods.frugal.server_update import (
    FEWEST_ITEMS,
    HALF,
    LEAST_WEIGHT,
    FrugalState,
    first_regulariser,
    fold,
    placed,
)
from federank.methods.frugal.settings import FrugalRecipe, frugal_recipe, shrinkage_for
from federank.secagg.config import PRIVATE, SecaggConfig
from federank.secagg.ring import in_units

COHORTS = 10
"""Where the server averages, it does as in a simulation with so many cohorts: max(1/t, 1.5/COHORTS)."""


def recipe(settings: FrugalSettings, n_items: int, devices: int) -> FrugalRecipe:
    """The recipe that aggregation follows; of users it needs only how many there are."""
    alone = frugal_recipe(settings, np.ones(1, dtype=np.int64), n_items)
    all_users: IntVector = np.broadcast_to(np.int32(0), (devices,))
    return alone._replace(participants=all_users, cohorts=COHORTS)


# Support: which items have enough users.


def rows_of_model(settings: FrugalSettings, model: Published) -> int | None:
    """How many items uploads on this model cover; None: all."""
    return None if settings.min_support == 1 else int(np.count_nonzero(model.content.tables["weights"]))


def first_support(settings: FrugalSettings, content: Content) -> Content:
    """The content before any counts: without supported items, where items need support and none has it yet."""
    if settings.min_support == 1:
        return content
    counted: dict[str, Any] = {} if settings.guarantees else {"counted": np.zeros(content.n_items)}
    content = content._replace(state={**content.state, **counted, "counters": np.zeros(1)})
    if int(content.state["before"][0]):
        return content  # a trained model: its own items are supported
    zeros = {name: np.zeros_like(table) for name, table in content.tables.items()}
    return content._replace(tables=zeros)


def with_counts(recipe: FrugalRecipe, content: Content, counts: RealVector, clients: int) -> Content:
    """The content after more counts: items that have enough users now are supported."""
    state = dict(content.state)
    state["counted"] = state["counted"] + counts
    state["counters"] = state["counters"] + clients
    content = content._replace(state=state)
    vectors, weights = content.tables["vectors"], content.tables["weights"]
    supported = (weights > 0) | (state["counted"] > recipe.min_support - HALF)
    if supported.sum() < FEWEST_ITEMS or np.array_equal(supported, weights > 0):
        return content
    if float(state["received"][0]):  # what is not known of a new item comes with the next uploads
        weights = np.where((weights == 0) & supported, LEAST_WEIGHT, weights)
        return content._replace(tables={"vectors": vectors, "weights": weights})
    drawn = normal_columns(
        recipe.n_items, recipe.factors, seed=recipe.seed, purpose=ITEM_FACTORS, scale=recipe.initial_scale
    )
    weights = supported.astype(np.float32)
    overall = dict(content.overall)
    if recipe.regulariser < 0:
        overall["regulariser"] = np.array([first_regulariser(recipe) * float(supported.mean())])
    return content._replace(tables={"vectors": drawn * weights[:, None], "weights": weights}, overall=overall)


def new_season(settings: FrugalSettings, content: Content, begun: IntVector) -> Content:
    """The content of a new season: its clients count again, and items that begin have no users yet."""
    content = content._replace(state={**content.state, "began": content.state["folds"]})
    if settings.min_support == 1:
        return content
    tables, state = dict(content.tables), dict(content.state)
    for name in tables:
        tables[name] = tables[name].copy()
        tables[name][begun] = 0
    if "counted" in state:
        state["counted"], state["counters"] = np.zeros(content.n_items), np.zeros(1)
    if "summed" in state:
        state["summed"] = state["summed"].copy()
        state["summed"][begun] = 0
    return content._replace(tables=tables, state=state)


def progress(settings: FrugalSettings, content: Content) -> dict[str, int]:
    """How many items are supported, of how many, and how many clients' counts say so."""
    if settings.min_support == 1 or "counters" not in content.state:
        return {}
    return {
        "supported_items": int(np.count_nonzero(content.tables["weights"])),
        "items": content.n_items,
        "supported_items_needed": FEWEST_ITEMS,
        "counted_clients": int(content.state["counters"][0]),
    }


# Rounds of Frugal's own uploads.


def fold_uploads(
    recipe: FrugalRecipe, model: Published, _round_number: int, updates: Iterable[FrugalUpdate]
) -> Content:
    """The next version from plain uploads, by the aggregation of the simulation."""
    counts, clients, others = np.zeros(recipe.n_items), 0, []
    for update in updates:
        if is_count(update):
            counts += update.strengths
            clients += 1
        else:
            others.append(update)
    content = model.content
    if others or not clients:
        content = _stepped(recipe, model, lambda shared, now: shared.aggregate(now, others))
    else:
        content = _without_step(content)
    return with_counts(recipe, content, counts, clients) if clients else content


def stage_of(_settings: FrugalSettings, model: Published) -> int:
    """Which of a lifetime's uploads a round on this model asks for; of the spectral recipe 0: counts, 1: others."""
    stage = model.content.overall.get("stage")
    return 0 if stage is None else int(stage[0])


def next_stage(settings: FrugalSettings, content: Content) -> Content:
    """The content with the stage of the next secure round, where the spectral recipe has two."""
    if settings.min_support == 1 or settings.clip is None:
        return content
    folds = int(content.state["folds"][0])
    is_due = folds > 0 and folds % settings.messages == 0
    stage = 0 if is_due or not content.tables["weights"].any() else 1
    return content._replace(overall={**content.overall, "stage": np.array([stage])})


def fold_sum(
    settings: FrugalSettings, config: SecaggConfig, model: Published, people: int, total: IntVector, messages: int
) -> Content:
    """The next version, from the sum of uploads that no one has read, with the noise of both servers."""
    now = recipe(settings, config.items, people)
    if config.recipe == PRIVATE:
        return fold_private(settings, config, now, model, total, messages)
    if config.is_counting(stage_of(settings, model)):
        counts = total / count_unit(config.items)
        content = with_counts(now, _without_step(model.content), counts, messages)
        return next_stage(settings, content)
    values = in_units(total, config.length_of_clip()).reshape(-1, config.columns)
    residuals, gram = np.split(values, [len(values) - config.columns])  # then the square of a row
    sums = SummedMessages(residuals, gram, messages)
    return next_stage(settings, _stepped(now, model, lambda shared, now: fold(now, shared, sums)))


def _without_step(content: Content) -> Content:
    """The content after a round of counts alone."""
    return content._replace(state={**content.state, "folds": content.state["folds"] + 1})


def _stepped(recipe: FrugalRecipe, model: Published, act: Callable[[FrugalState, FrugalRecipe], None]) -> Content:
    """The content after a server step; where no model follows, the sums are kept and the model stays."""
    shared, now, before = state_of(recipe, model)
    try:
        act(shared, now)
    except Diverged:
        # A fixed lambda may be too large for the few who have uploaded so far.
        tables, overall, state = model.content
        kept = tables["vectors"], tables["weights"], float(overall["regulariser"][0])
        shared.vectors, shared.weights, shared.regulariser = kept
        shared.round_number = int(state["folds"][0]) + 1
    content = content_of(shared, before)
    extra = {name: part for name, part in model.content.state.items() if name not in content.state}
    return content._replace(state={**content.state, **extra})


def state_of(recipe: FrugalRecipe, model: Published) -> tuple[FrugalState, FrugalRecipe, int]:
    """What the step works on, the recipe scaled to all users, and how many users a trained model was learnt from."""
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
        float(state["received"][0]),
        int(state["folds"][0]),
        began=_began(state),
    )
    all_users: IntVector = np.broadcast_to(np.int32(0), (max(1, before + len(recipe.participants)),))
    return shared, recipe._replace(participants=all_users), before


def content_of(shared: FrugalState, before: int) -> Content:
    """What is published of a state, and what the next step needs; `before`: users of the model that it began with."""
    return Content(
        {"vectors": shared.vectors, "weights": shared.weights},
        {"regulariser": np.array([shared.regulariser])},
        {
            "sketch": np.ascontiguousarray(shared.sketch),
            "counts": shared.counts,
            "received": np.array([shared.received]),
            "folds": np.array([shared.round_number]),
            "before": np.array([before]),
            "capped": np.array([shared.capped]),
            "began": np.array([shared.began]),
        },
    )


def _began(state: Mapping[str, Array]) -> int:
    """With how many server steps before it the season began."""
    return int(state["began"][0]) if "began" in state else 0


# Rounds of the plan's own uploads, with noise or without.


def first_private(content: Content) -> Content:
    """What a federation of the private recipe begins with: nothing is remembered, and the first stage comes first."""
    n_items = len(content.tables["vectors"])
    none = np.zeros((n_items, 0))
    state = {name: content.state[name] for name in ("counts", "received", "folds", "before")}
    state |= {"summed": np.zeros(n_items), "earlier": none, "newest": none, "joined": none}
    return content._replace(overall={**content.overall, "stage": np.array([0])}, state=state)


def fold_private(
    settings: FrugalSettings,
    config: SecaggConfig,
    recipe: FrugalRecipe,
    model: Published,
    total: IntVector,
    messages: int,
) -> Content:
    """The next version, from the sum of a round's uploads with the noise of both servers."""
    state = model.content.state
    folds = int(state["folds"][0])
    plan = PrivatePlan(config.noises, config.columns + 1, float(config.power))
    stage, n_items = folds % config.messages, config.items
    values = in_units(total, config.length_of_clip()).reshape(-1, config.columns_of(stage))
    known = _private_model(model)
    received, counters = float(state["received"][0]) + messages, float(state.get("counters", np.zeros(1))[0])
    again, items = int(state["again"][0]) if "again" in state else 0, np.arange(n_items, dtype=np.int32)
    rounds = -(-folds // config.messages) + again  # of popularity: one of each cohort, and those with too few items
    if stage == 0:
        counters, rounds = counters + messages, rounds + 1
        summed = values[:, 0] + known.summed
        if settings.min_support > 1:
            enough = noisy_counts(summed, int(counters)) > settings.min_support - HALF
            items = np.flatnonzero(enough).astype(np.int32)
        if len(items) < FEWEST_ITEMS and settings.min_support > 1:  # more counts are asked for
            waiting = known._replace(summed=summed)
            return _private_content(waiting, stage, received, folds, counters, again + 1, _began(state))
        known, values = known._replace(summed=summed), summed[items, None]
    elif settings.min_support > 1:
        items = supported_items(recipe, known.weights)
    sent = published(recipe, known.vectors)
    now = fold_of_cohort(
        plan,
        settings.seed,
        shrinkage_for(settings),
        folds,
        _restricted(known, items),
        sent[items],
        values,
        1.0 if settings.most_shown is None else settings.most_shown,
        rounds,
        folds >= _began(state) + max(CALM_ROUNDS, config.messages),
    )
    if len(items) < n_items:
        now = _mapped(now, lambda part: placed(part, items, n_items))._replace(summed=known.summed)
    return _private_content(now, (folds + 1) % config.messages, received, folds + 1, counters, again, _began(state))


def _private_model(model: Published) -> PrivateModel:
    tables, _, state = model.content
    summed, earlier, newest = (state[name] for name in ("summed", "earlier", "newest"))
    joined = received_from(state["joined"])
    return PrivateModel(tables["vectors"], tables["weights"], state["counts"], summed, earlier, newest, joined)


def _restricted(known: PrivateModel, items: IntVector) -> PrivateModel:
    """The model of these items alone; what was not known of one of them begins as if it were the least popular."""
    if len(items) == len(known.weights):
        return known
    part = _mapped(known, lambda rows: np.ascontiguousarray(rows[items]))
    had = part.popularity > 0
    least = part.popularity[had].min() if had.any() else 1.0
    return part._replace(popularity=np.where(had, part.popularity, least))


def _mapped(model: PrivateModel, rows: Callable[[NDArray[Any]], NDArray[Any]]) -> PrivateModel:
    """The model with this done to every array that has a row per item."""
    received = RoundBuffer(*map(rows, model.received))
    return PrivateModel(
        vectors=rows(model.vectors),
        weights=rows(model.weights),
        popularity=rows(model.popularity),
        summed=rows(model.summed),
        earlier=rows(model.earlier),
        newest=rows(model.newest),
        received=received,
        capped=model.capped,
    )


def _private_content(
    now: PrivateModel, stage: int, received: float, folds: int, counters: float, again: int, began: int
) -> Content:
    state: dict[str, Any] = {
        "counts": now.popularity,
        "summed": now.summed,
        "earlier": np.ascontiguousarray(now.earlier),
        "newest": np.ascontiguousarray(now.newest),
        "joined": np.ascontiguousarray(now.received.stored()),
        "received": np.array([received]),
        "folds": np.array([folds]),
        "before": np.array([0]),
        "capped": np.array([now.capped]),
        "began": np.array([began]),
        "counters": np.array([counters]),
        "again": np.array([again]),
    }
    tables = {"vectors": now.vectors, "weights": now.weights}
    return Content(tables, {"regulariser": np.array([REGULARISATION]), "stage": np.array([stage])}, state)
