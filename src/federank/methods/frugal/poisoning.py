"""Frugal with malicious clients: rounds of few messages, summed as a server sums them, some of them made up.

With alpha = 0 a message says w = p - Y x: the history itself, seen through the model. So all honest messages of a
round are two small matrix products. Malicious clients send:

    loud        a message at the largest norm that pulls the target towards what most people like
    noise       a message of random numbers at the largest norm
    histories   what the protocol gives for a synthetic history: the target beside what many like
    adaptive    the same with a short history, which counts the more

A server that reads single uploads refuses the first two: no history gives them (wire.py). One that has only sums takes
them, at most at the norm that is checked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, LongVector, RealMatrix, RealVector
from federank._numerics.topn import top_n
from federank.audit.poisoning import Measured, N, PoisonSettings, World, make_world, measured
from federank.data.interactions import Profiles
from federank.data.splits import Split
from federank.federation.defences import Defences, Rows, defend
from federank.methods.frugal.bounds import (
    FRUGAL_DEFENCES,
    USUAL_JOINED,
    USUAL_PRIVATE,
    USUAL_SPECTRAL,
    bound_rows,
    hold_back,
    spectral_tastes,
    usual_length,
)
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.private_messages import Directions
from federank.methods.frugal.records import FrugalModel, ItemRows, ServerState, SummedMessages
from federank.methods.frugal.server_update import ridge_of, stepped
from federank.methods.frugal.settings import FrugalSettings
from federank.methods.frugal.simulation import (
    FrugalFederation,
    home_vectors,
    published_sum,
    sum_in_ring,
    vectors_at_home,
)
from federank.secagg.proof.parameters import passing_norm
from federank.secagg.ring import C_INT, centred, in_ring

# Frugal's own recipe where only sums are read, and the norm of each upload is checked.


LIKED = 50
"""This many of the most liked items a saboteur pulls down."""


def checked_sums(
    world: World,
    settings: PoisonSettings,
    method: Frugal,
    round_number: int,
    sent_vectors: FloatMatrix,
    tastes: RealMatrix,
    has: csr_array,
) -> SummedMessages:
    """The sum of a round's uploads, honest and not."""
    strengths = has.toarray() - tastes @ sent_vectors.T
    lengths = 1 + np.einsum("ij,ij->i", tastes, tastes)
    norms = np.sqrt(lengths * (np.einsum("ij,ij->i", strengths, strengths) + lengths))
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -method.user_weight_exponent
    scales = np.minimum(scales, settings.clip / norms)
    loudest, malicious_users = passing_norm() * settings.clip, slice(world.honest, world.people)
    scales[malicious_users] = loudest / norms[malicious_users] if settings.attack == "histories" else 0.0
    vectors = np.column_stack((tastes, np.ones(world.people)))
    weighted = vectors * scales[:, None]
    sums = SummedMessages(strengths.T @ weighted, vectors.T @ weighted, world.people)
    if not world.malicious_users or settings.attack == "histories":
        return sums
    norm = world.malicious_users * loudest
    if settings.attack == "noise":
        return _with_noise(world, settings, round_number, norm, sums)
    if settings.attack == "twin":
        everything = sums.residuals + sent_vectors @ sums.squares[:-1]
        return sums._replace(residuals=pretend(sums.residuals, everything, world, norm))
    common = tastes[: world.honest].mean(axis=0)
    towards = common / max(float(np.linalg.norm(common)), 1e-12)
    part = np.sqrt(0.5) if (settings.attack, settings.aim) == ("adaptive", "push") else 1.0
    pushed = push(np.zeros_like(sums.residuals[:, :-1]), world, settings, part * norm * towards)
    residuals = sums.residuals + np.column_stack((pushed, np.zeros(world.n_items)))
    residuals[world.target, -1] += np.sqrt(1 - part**2) * norm
    return sums._replace(residuals=residuals)


def push(residuals: RealMatrix, world: World, settings: PoisonSettings, regularisation: RealMatrix) -> RealMatrix:
    """The sums with a pull on the target's row, or for sabotage, of the same norm, on what is liked most, backwards."""
    pushed = residuals.copy()
    if settings.aim == "push":
        pushed[world.target] += regularisation
        return pushed
    liked = np.argsort(-world.popularity, kind="stable")[:LIKED]
    pushed[liked] -= regularisation / np.sqrt(len(liked))
    return pushed


def pretend(residuals: RealMatrix, everything: RealMatrix, world: World, norm: float) -> RealMatrix:
    """The sums in which the target seems to be what the most popular item is, as far as this norm reaches."""
    missing = everything[int(np.argmax(world.popularity))] - everything[world.target]
    pretended = residuals.copy()
    pretended[world.target] += missing * min(1.0, norm / max(float(np.linalg.norm(missing)), 1e-12))
    return pretended


def _with_noise(
    world: World, settings: PoisonSettings, round_number: int, norm: float, sums: SummedMessages
) -> SummedMessages:
    """Random numbers everywhere: norms of independent directions add up like a walk."""
    rng = np.random.default_rng([settings.seed, round_number, 5])
    residuals, squares, messages = sums
    each = norm / np.sqrt(world.malicious_users * (residuals.size + squares.size))
    noise = rng.normal(size=squares.shape) * each
    return SummedMessages(
        residuals + rng.normal(size=residuals.shape) * each, squares + (noise + noise.T) / 2, messages
    )


# The recipe of sums with noise (`federank train frugal --epsilon`), with malicious clients whose norm was checked.


def play_private(world: World, settings: PoisonSettings, has: csr_array, *, is_defended: bool) -> Measured:
    """A whole federation of sums, with noise where there is an epsilon."""
    sigma = 0.0 if settings.epsilon is None else None
    simulated = FrugalSettings(
        min_support=1, seed=settings.seed, rounding="mean", sigma=sigma, epsilon=settings.epsilon
    )
    federation = FrugalFederation(simulated, world.profiles, world.n_items)
    if is_defended:
        federation.method = with_exposure_cap(federation.method)
    all_users = np.arange(world.people, dtype=np.int32)
    honest, malicious_users = np.split(all_users, [world.honest])
    for number in range(federation.schedule.rounds):
        shape = world.n_items, federation.method.columns if number else 1
        said = centred(sum_in_ring(federation, honest)).reshape(shape) / C_INT
        if settings.attack == "histories":
            said = said + passing_norm() * centred(sum_in_ring(federation, malicious_users)).reshape(shape) / C_INT
        elif world.malicious_users:
            said = with_malicious(world, settings, number, said, federation.model.directions, has[: world.honest])
        total = in_ring(np.rint(C_INT * said.ravel()).astype(np.int64))
        federation.finish(all_users, published_sum(federation, total, world.people))
    vectors = home_vectors(federation)[: world.honest]
    return measured(world, vectors @ federation.model.vectors.T)


def with_exposure_cap(method: Any) -> Any:
    """A method of sums with noise, with the exposure cap that a federation has by default."""
    return replace(method, most_shown=USUAL_JOINED if method.plan.joined else USUAL_PRIVATE)


def with_malicious(
    world: World, settings: PoisonSettings, number: int, said: RealMatrix, known: Directions, has: csr_array
) -> RealMatrix:
    """What honest people say together, and what the malicious clients add."""
    norm = world.malicious_users * passing_norm()
    if settings.attack == "noise":
        rng = np.random.default_rng([settings.seed, number, 5])
        noisy: RealMatrix = said + rng.normal(size=said.shape) * norm / np.sqrt(world.malicious_users * said.size)
        return noisy
    if settings.attack == "twin":
        return pretend(said, said, world, norm)
    if settings.attack == "adaptive":
        norm = min(norm, float(np.sort(np.linalg.norm(said, axis=1))[-3]))
    towards = np.ones(1) if number == 0 else _common(known, has)
    return push(said, world, settings, norm * towards)


def _common(known: Directions, has: csr_array) -> RealVector:
    """Where most people's tastes point, of length 1."""
    popular = has @ (known.scales * known.popular)
    tastes = has @ (known.scales[:, None] * known.wanted) - np.outer(popular, known.popular @ known.wanted)
    tastes /= np.maximum(np.linalg.norm(tastes, axis=1, keepdims=True), 1e-12)
    mean: RealVector = tastes.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


def play_frugal(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """A whole federation of few messages; without `defences` the server folds in whatever comes."""
    has = histories_of(world.profiles, world.n_items)
    if settings.recipe == "private":
        return play_private(world, settings, has, is_defended=defences is not None)
    simulated = FrugalSettings(min_support=1, seed=settings.seed, item_weights=settings.item_weights)
    federation, all_users = (
        FrugalFederation(simulated, world.profiles, world.n_items),
        np.arange(world.people, dtype=np.int32),
    )
    is_bounded = settings.sees == "checked" and defences is not None
    for number in range(federation.schedule.rounds):
        model, before = federation.model, Rows(federation.state.vectors)
        tastes = solve_all(model, has)
        if settings.sees == "checked":
            sums = checked_sums(world, settings, federation.method, number, model.vectors, tastes, has)
        else:
            sums = _sums(world, settings, federation, tastes, has, defences is not None)
        if is_bounded and settings.bounds != "caps":
            sums = bound_rows(sums, model.vectors)
        federation.finish(all_users, sums)
        if is_bounded and settings.bounds != "rows":
            federation.state = _held_back(federation.state, sums)
        elif defences is not None and not is_bounded:
            vectors = defend(defences, before, Rows(federation.state.vectors)).rows.vectors
            federation.state = replace(federation.state, vectors=vectors)
    model = federation.model
    scores = (solve_all(model, has)[: world.honest] @ model.vectors.T).astype(np.float32)
    if federation.method.item_weights == "ridge":
        method, is_capped = federation.method, is_bounded and settings.bounds != "rows"
        method = replace(method, most_shown=USUAL_SPECTRAL) if is_capped else method
        scores = ridge_of(method, federation.state).scores(has[: world.honest], scores)
    return measured(world, scores)


def _held_back(state: ServerState, sums: SummedMessages) -> ServerState:
    """The state with the exposure cap that a federation of sums has by default."""
    received = float(state.received[0])
    weight = float(sums.squares[-1, -1]) / sums.messages * received
    model = state.vectors, state.weights, float(state.regulariser[0])
    tastes = spectral_tastes(*model, state.counts / received, weight)
    held = hold_back(state.vectors, tastes, USUAL_SPECTRAL, least=usual_length(state.vectors))
    return replace(state, vectors=held)


def _sums(
    world: World,
    settings: PoisonSettings,
    federation: FrugalFederation,
    tastes: RealMatrix,
    has: csr_array,
    defended: bool,
) -> SummedMessages:
    method, sent_vectors = federation.method, federation.model.vectors
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -method.user_weight_exponent
    strengths = has.toarray() - tastes @ sent_vectors.T
    count = world.people
    malicious_users = slice(world.honest, world.people)
    if settings.attack in ("loud", "noise") and defended and settings.sees == "updates":
        strengths[malicious_users], scales[malicious_users], count = (
            0.0,
            0.0,
            world.honest,
        )  # refused: no history gives such a message
    elif world.malicious_users and settings.attack in ("loud", "noise"):
        rng = np.random.default_rng([settings.seed, federation.round_number, 5])
        if settings.attack == "loud":
            strengths[malicious_users] = 0.0
            strengths[malicious_users, world.target] = 1.0 if settings.aim == "push" else -1.0
            tastes[malicious_users] = tastes[: world.honest].mean(axis=0)
        else:
            strengths[malicious_users] = rng.normal(size=strengths[malicious_users].shape)
            tastes[malicious_users] = rng.normal(size=tastes[malicious_users].shape)
        norms = np.array([_norm(strengths[n], tastes[n]) for n in range(world.honest, world.people)])
        # Its scale must be 1 at most, so the numbers themselves are as large as the norm allows.
        lengths = 1 + np.einsum("ij,ij->i", tastes[malicious_users], tastes[malicious_users])
        pulled = np.einsum("ij,ij->i", strengths[malicious_users], strengths[malicious_users])
        workspace = np.maximum(settings.most_norm**2 / lengths - lengths, 0.0)
        strengths[malicious_users] *= np.sqrt(workspace / np.maximum(pulled, 1e-12))[:, None]
        scales[malicious_users] = (
            np.minimum(1.0, settings.most_norm / np.maximum(norms, 1.0)) if not workspace.any() else 1.0
        )
    vectors = np.column_stack((tastes, np.ones(world.people)))
    weighted = vectors * scales[:, None]
    return SummedMessages(strengths.T @ weighted, vectors.T @ weighted, count)


def solve_all(model: FrugalModel, has: csr_array) -> RealMatrix:
    """Everyone's own vector, where all confidences are alike: x = (Y'DY + lambda I)^-1 Y'D p."""
    sides = model.gram + model.regulariser[0] * np.eye(model.vectors.shape[1])
    weighted = model.vectors * model.weights[:, None]
    solved: RealMatrix = np.linalg.solve(sides, (has @ weighted).T.astype(np.float64)).T
    return solved


def _norm(strengths: RealMatrix, vector: RealMatrix) -> float:
    length = 1 + float(vector @ vector)
    return float(np.sqrt(length * (float(strengths @ strengths) + length)))


def histories_of(profiles: Profiles, n_items: int) -> csr_array:
    """Users x items: 1 where a user has an item."""
    ones = np.ones(len(profiles.items))
    return csr_array((ones, profiles.items, profiles.starts), shape=(len(profiles.sizes), n_items))


# A twin that is pushed, with and without the rule that hides items whose predicted audience has jumped. Honest rounds
# come first, then rounds with malicious clients whose norm was checked, in both recipes of secure sums. A round is of
# everyone, or of a `cohort` drawn from everyone. The yardstick is the exposure of genuine items with
# about as many users as there are malicious clients.


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
    rng = np.random.default_rng([settings.seed, 99])
    federation = FrugalFederation(
        FrugalSettings(min_support=1, seed=settings.seed, most_shown=USUAL_SPECTRAL), world.profiles, world.n_items
    )
    method, began = federation.method, np.array([0 if has_rule else NEVER])
    state = replace(federation.state, began=began)
    for number, one in enumerate([calm] * calm_rounds + [world] * rounds):
        model, has = _model(method, state), histories_of(one.profiles, one.n_items)
        part = one if cohort is None else _part(one, rng.choice(one.honest, cohort, replace=False), settings.share)
        has = has if part is one else histories_of(part.profiles, one.n_items)
        sums = checked_sums(part, settings, method, number, model.vectors, solve_all(model, has), has)
        state = stepped(method, state, sums, int((one.profiles.sizes > 0).sum()), cohorts=1, is_strict=True)
    model = _model(method, state)
    return _found(world, solve_all(model, histories_of(world.profiles, world.n_items)), model.vectors)


def _model(method: Frugal, state: ServerState) -> FrugalModel:
    return method.as_read(method.broadcast(state))


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
    simulated = FrugalSettings(
        min_support=1,
        seed=settings.seed,
        rounding="mean",
        sigma=0.0 if settings.epsilon is None else None,
        epsilon=settings.epsilon,
    )
    federations = [FrugalFederation(simulated, one.profiles, one.n_items) for one in (calm, world)]
    method, has = with_exposure_cap(federations[1].method), histories_of(world.profiles, world.n_items)
    state = replace(federations[1].state, began=np.array([0 if has_rule else NEVER]))
    for folds in range(2 * method.messages):
        cycle, stage = divmod(folds, method.messages)
        one, federation = (calm, world)[cycle], federations[cycle]
        federation.method, federation.state, federation.round_number = method, state, stage
        shape = one.n_items, method.columns if stage else 1
        said = centred(sum_in_ring(federation, np.arange(one.honest, dtype=np.int32))).reshape(shape) / C_INT
        if one.malicious_users:
            said = with_malicious(one, settings, stage, said, federation.model.directions, has[: one.honest])
        total = in_ring(np.rint(C_INT * said.ravel()).astype(np.int64))
        federation.round_number = folds  # the noise of each round is its own
        sums = published_sum(federation, total, one.people)
        state = method.server_update(state, ItemRows(rows=sums.residuals, count=sums.messages))
    model = _model(method, state)
    return _found(world, vectors_at_home(method, model, world.profiles), model.vectors)


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


POISONED = {"frugal": play_frugal}
USUAL_DEFENCES = {"frugal": FRUGAL_DEFENCES}
