"""Few messages as sums that no single server can open: what a server must know of both recipes of them.

private     the plan of a promise (protocol/squares/private/): every message of a life has its stage, and each stage
            its noise. Cohorts play the plan one after the other, and a round's stage is how many folds its cohort
            has had. The first cohort's models are the simulation's (`federank train frugal --epsilon`)
spectral    Frugal's own message, clipped to a length, with one noise for all of a life: chosen by giving a clip
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.protocol.frugal import FrugalSettings
from federank.protocol.squares.private.cohorts import PrivateModel, fold_of_cohort
from federank.protocol.squares.private.fold import PULL
from federank.protocol.squares.private.joined import heard_from
from federank.protocol.squares.private.plan import PrivatePlan, planned
from federank.protocol.squares.recipes import shrinkage_for, squares_step
from federank.protocol.squares.shown import USUAL_JOINED, USUAL_PRIVATE, USUAL_SPECTRAL
from federank.protocol.sums.charter import PRIVATE, SPECTRAL, SumsCharter
from federank.protocol.sums.rounding import in_units
from federank.service.server.families.family import Promise, SumsPlan
from federank.service.server.families.sealed import one_noise
from federank.service.server.federation.published import Content, Published


def promising(settings: FrugalSettings, promise: Promise) -> FrugalSettings:
    """The settings with the promise among them; where a clip is named, its recipe knows of none."""
    if settings.clip is not None:
        return replace(settings, delta=promise.delta)
    return replace(settings, **promise._asdict())


def plan_of(settings: FrugalSettings, n_items: int, people: int, promise: Promise) -> SumsPlan:
    """The plan of a new federation whose rounds are to be of so many people."""
    if settings.clip is not None:
        noises = one_noise(promise, settings.messages)
        return SumsPlan(
            SPECTRAL,
            int(settings.factors or 0),
            int(settings.factors or 0) + 1,
            settings.clip,
            noises,
            0.0,
            USUAL_SPECTRAL if squares_step(settings) == "spectral" else 1.0,
        )
    plan = planned(settings.mu, settings.messages, people, n_items, settings.factors)
    most_shown = USUAL_JOINED if plan.joined else USUAL_PRIVATE
    return SumsPlan(PRIVATE, plan.factors, plan.factors - 1, 1.0, plan.deviations, plan.power, most_shown)


def stage_of(model: Published) -> int:
    """Which of a life's messages a round on this model asks for."""
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
    settings: FrugalSettings, charter: SumsCharter, model: Published, told: FloatMatrix, total: IntVector, messages: int
) -> Content:
    """The next version, from the sum of a round's messages with the noise of both servers."""
    tables, _, state = model.content
    folds = int(state["folds"][0])
    plan = PrivatePlan(charter.noises, charter.columns + 1, float(charter.power))
    values = in_units(total, charter.length_of_clip()).reshape(-1, charter.columns_of(folds % charter.messages))
    popularity, summed, earlier, newest = (state[name] for name in ("counts", "summed", "earlier", "newest"))
    known = PrivateModel(
        tables["vectors"], tables["weights"], popularity, summed, earlier, newest, heard_from(state["joined"])
    )
    most_shown = 1.0 if settings.most_shown is None else settings.most_shown
    now = fold_of_cohort(plan, settings.seed, shrinkage_for(settings), folds, known, told, values, most_shown)
    return Content(
        {"vectors": now.vectors, "weights": now.weights},
        {"regulariser": np.array([PULL]), "stage": np.array([(folds + 1) % charter.messages])},
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
    }
