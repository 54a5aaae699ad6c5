"""A twin that is pushed, with and without the rule that hides items whose predicted audience has jumped.

Honest rounds come first, then rounds with malicious clients whose norm was checked, in both recipes of secure sums. A
round is of everyone, or of a `cohort` drawn from everyone (Frugal's own recipe). The yardstick is the exposure of
genuine items with about as many users as there are malicious clients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, LongVector, RealMatrix
from federank._numerics.topn import top_n
from federank.audit.poisoning import N, PoisonSettings, World, make_world, measured
from federank.data.interactions import Profiles
from federank.data.splits import Split
from federank.methods.frugal.poisoning import checked_sums, histories_of, solve_all, with_malicious
from federank.methods.frugal.private_messages import directions_of
from federank.methods.frugal.private_server import (
    REGULARISATION,
    PrivateModel,
    fold_of_cohort,
    received_from,
    values_of,
    with_both_noises,
)
from federank.methods.frugal.protocol import published
from federank.methods.frugal.server_steps import USUAL_JOINED, USUAL_PRIVATE, USUAL_SPECTRAL
from federank.methods.frugal.server_update import first_shared, fold, private_columns
from federank.methods.frugal.settings import FrugalRecipe, FrugalSettings, frugal_recipe
from federank.methods.frugal.simulation import FrugalFederation, sum_in_ring, vectors_at_home
from federank.secagg.ring import C_INT, centred, in_ring

NEVER = 1 << 30
"""A season that begins after all rounds, so that the rule is never on."""
ALIKE = 0.25
"""A genuine item is a yardstick if it has this much more or fewer users than there are malicious clients, at most."""


class Jump(NamedTuple):
    """What malicious clients reach, and what the rule costs."""

    exposure: float  # share of honest users with the target in their top 10
    precision: float
    hidden: int  # items that no client shows, the target among them
    genuine: float  # mean exposure of genuine items with about as many users as there are malicious clients
    genuine_high: float  # its 90th percentile


def rehearse_jump(
    split: Split,
    settings: PoisonSettings,
    *,
    has_rule: bool = True,
    calm_rounds: int = 5,
    rounds: int = 5,
    cohort: int | None = None,
) -> Jump:
    """Play honest rounds, then rounds with malicious clients; the private recipe plays one whole cycle of each."""
    world, calm = make_world(split, settings), make_world(split, settings, malicious_users=False)
    if settings.recipe == "private":
        return _rehearse_private(world, calm, settings, has_rule)
    method = FrugalSettings(min_support=1, seed=settings.seed)
    rng, shared = np.random.default_rng([settings.seed, 99]), None
    for one in [calm] * calm_rounds + [world] * rounds:
        recipe = _recipe(method, one)
        shared = first_shared(recipe, method.initial_scale) if shared is None else shared
        shared.began = 0 if has_rule else NEVER
        sent_vectors, has = published(recipe, shared.vectors), histories_of(one.profiles, one.n_items)
        part = one if cohort is None else _part(one, rng.choice(one.honest, cohort, replace=False), settings.share)
        has = has if part is one else histories_of(part.profiles, one.n_items)
        users = solve_all(recipe, shared, sent_vectors, has)
        fold(recipe, shared, checked_sums(part, settings, recipe, shared.round_number, sent_vectors, users, has))
    assert shared is not None, "at least one round is played"
    recipe = _recipe(method, world)
    sent_vectors = published(recipe, shared.vectors)
    users = solve_all(recipe, shared, sent_vectors, histories_of(world.profiles, world.n_items))
    return _found(world, users, sent_vectors)


def _recipe(method: FrugalSettings, world: World) -> FrugalRecipe:
    return frugal_recipe(method, world.profiles.sizes, world.n_items)._replace(most_shown=USUAL_SPECTRAL)


def _part(world: World, honest: LongVector, share: float) -> World:
    """A cohort of these honest users and the same share of malicious clients as there are in the world."""
    malicious = round(len(honest) * share) if world.malicious_users else 0
    users = np.concatenate((honest, world.honest + np.arange(malicious)))
    items = [world.profiles.of(int(user)) for user in users]
    starts = np.concatenate(([0], np.cumsum([len(one) for one in items])))
    profiles = Profiles(starts, np.concatenate(items))
    rest = world.test, len(honest), malicious, world.n_items, world.target, world.popularity
    return World(profiles, *rest)


def _rehearse_private(world: World, calm: World, settings: PoisonSettings, has_rule: bool) -> Jump:
    """Two cycles of all stages: an honest one, and one with malicious clients."""
    method = FrugalSettings(
        min_support=1,
        seed=settings.seed,
        rounding="mean",
        sigma=0.0 if settings.epsilon is None else None,
        epsilon=settings.epsilon,
    )
    recipe = frugal_recipe(method, world.profiles.sizes, world.n_items)
    plan, has = recipe.private, histories_of(world.profiles, world.n_items)
    assert plan is not None, "the private recipe has a plan"
    zeros, none = np.zeros(world.n_items), np.zeros((world.n_items, 0))
    first = first_shared(recipe, method.initial_scale)
    model = PrivateModel(first.vectors, first.weights, zeros, zeros, none, none, received_from(none))
    most_shown = USUAL_JOINED if plan.joined else USUAL_PRIVATE
    for folds in range(2 * recipe.rounds):
        cycle, stage = divmod(folds, recipe.rounds)
        one = world if cycle else calm
        now = frugal_recipe(method, one.profiles.sizes, one.n_items)
        federation = FrugalFederation.established(method, now, one.profiles)
        federation.item_vectors, federation.weights, federation.round_number = model.vectors, model.weights, stage
        shape = one.n_items, private_columns(now, stage)
        said = centred(sum_in_ring(federation, np.arange(one.honest, dtype=np.int32))).reshape(shape) / C_INT
        sent_vectors = published(now, model.vectors)
        if one.malicious_users:
            known = directions_of(sent_vectors, model.weights)
            said = with_malicious(one, settings, stage, said, known, has[: one.honest])
        total = in_ring(np.rint(C_INT * said.ravel()).astype(np.int64))
        values = values_of(with_both_noises(plan, settings.seed + 1000 * cycle, stage, total), shape[1])
        if stage == 0:
            model = model._replace(summed=model.summed + values[:, 0])
            values = model.summed[:, None]
        steps = plan, settings.seed, now.shrinkage, folds, model, sent_vectors, values, most_shown, cycle + 1
        model = fold_of_cohort(*steps, is_calm=has_rule and cycle > 0)
    sent_vectors = published(recipe, model.vectors)
    users = vectors_at_home(recipe, sent_vectors, model.weights, REGULARISATION, world.profiles)
    return _found(world, users, sent_vectors)


def _found(world: World, users: RealMatrix | FloatMatrix, vectors: FloatMatrix) -> Jump:
    """What honest users are shown: items without a vector are not."""
    is_hidden = ~vectors.any(axis=1)
    scores = np.where(is_hidden, np.float32(-1e9), users[: world.honest] @ vectors.T).astype(np.float32)
    found = measured(world, scores)
    has_users = np.where(world.popularity > 0, scores, -np.inf).astype(np.float32)
    honest = np.arange(world.honest, dtype=np.int32)
    items, _ = top_n(has_users, honest, world.profiles, N)
    exposure = np.bincount(items[items >= 0], minlength=world.n_items) / world.honest
    near = np.abs(world.popularity / max(world.malicious_users, 1) - 1) <= ALIKE
    genuine = (float(exposure[near].mean()), float(np.quantile(exposure[near], 0.9))) if near.any() else (0.0, 0.0)
    known = is_hidden & ((world.popularity > 0) | (np.arange(world.n_items) == world.target))
    return Jump(found.exposure, found.precision, int(known.sum()), *genuine)
