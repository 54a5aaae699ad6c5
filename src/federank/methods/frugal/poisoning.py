"""Frugal with malicious clients: rounds of few messages, summed as a server sums them, some of them made up.

With alpha = 0 a message says w = p - Y x: the history itself, seen through the model. So all honest messages of a
round are two small matrix products. Malicious clients send:

    loud        a message at the largest norm that pulls the target towards what most people like
    noise       a message of random numbers at the largest norm
    histories   what the protocol gives for a synthetic history: the target beside what many like
    adaptive    the same with a short history, which counts the more

A server that reads single messages knows the first two for lies: no history gives them
(secagg/ring.py). One that has only sums takes them. Where a norm is checked, checked.py makes them.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, RealMatrix, RealVector
from federank._numerics.topn import gram_matrix
from federank.audit.poisoning import Measured, PoisonSettings, World, measured
from federank.data.interactions import Profiles
from federank.federation.defences import Defences, Rows, defend
from federank.methods.frugal.private_messages import Directions, directions_of
from federank.methods.frugal.protocol import published
from federank.methods.frugal.server_steps import (
    FRUGAL_DEFENCES,
    USUAL_JOINED,
    USUAL_PRIVATE,
    USUAL_SPECTRAL,
    SummedMessages,
    bound_rows,
    hold_back,
    spectral_tastes,
    usual_length,
)
from federank.methods.frugal.server_update import (
    FrugalState,
    first_shared,
    fold,
    private_columns,
    published_sum,
    ridge_of,
)
from federank.methods.frugal.settings import FrugalRecipe, FrugalSettings, frugal_recipe
from federank.methods.frugal.simulation import FrugalFederation, home_vectors, sum_in_ring
from federank.secagg.proof.parameters import passing_norm
from federank.secagg.ring import C_INT, centred, in_ring

# Frugal's own recipe where only sums are read, and of each message that it is no louder than it may be.


LIKED = 50
"""This many of the most liked items a saboteur pulls down."""


def checked_sums(
    world: World,
    settings: PoisonSettings,
    recipe: FrugalRecipe,
    round_number: int,
    sent_vectors: FloatMatrix,
    tastes: RealMatrix,
    has: csr_array,
) -> SummedMessages:
    """The sum of a round's messages, honest and not."""
    strengths = has.toarray() - tastes @ sent_vectors.T
    lengths = 1 + np.einsum("ij,ij->i", tastes, tastes)
    norms = np.sqrt(lengths * (np.einsum("ij,ij->i", strengths, strengths) + lengths))
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -recipe.activity
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
    method = FrugalSettings(min_support=1, seed=settings.seed, rounding="mean", sigma=sigma, epsilon=settings.epsilon)
    recipe = frugal_recipe(method, world.profiles.sizes, world.n_items)
    assert recipe.private is not None, "sums with a guarantee have a plan"
    if is_defended:
        recipe = recipe._replace(most_shown=USUAL_JOINED if recipe.private.joined else USUAL_PRIVATE)
    federation = FrugalFederation.established(method, recipe, world.profiles)
    all_users = np.arange(world.people, dtype=np.int32)
    honest, malicious_users = np.split(all_users, [world.honest])
    for number in range(recipe.rounds):
        shape = world.n_items, private_columns(recipe, number)
        said = centred(sum_in_ring(federation, honest)).reshape(shape) / C_INT
        if settings.attack == "histories":
            said = said + passing_norm() * centred(sum_in_ring(federation, malicious_users)).reshape(shape) / C_INT
        elif world.malicious_users:
            known = directions_of(published(recipe, federation.item_vectors), federation.weights)
            said = with_malicious(world, settings, number, said, known, has[: world.honest])
        total = in_ring(np.rint(C_INT * said.ravel()).astype(np.int64))
        shared = federation.shared
        fold(recipe, shared, published_sum(recipe, number, total, world.people))
        federation.take(shared)
    vectors = home_vectors(federation)[: world.honest]
    return measured(world, vectors @ published(recipe, federation.item_vectors).T)


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
    method = FrugalSettings(min_support=1, seed=settings.seed, item_weights=settings.item_weights)
    recipe = frugal_recipe(method, world.profiles.sizes, world.n_items)
    shared = first_shared(recipe, method.initial_scale)
    is_bounded = settings.sees == "checked" and defences is not None
    for _ in range(recipe.rounds):
        sent_vectors = published(recipe, shared.vectors)
        before = Rows(shared.vectors)
        if settings.sees == "checked":
            tastes = solve_all(recipe, shared, sent_vectors, has)
            sums = checked_sums(world, settings, recipe, shared.round_number, sent_vectors, tastes, has)
        else:
            sums = _sums(world, settings, recipe, shared, sent_vectors, has, defences is not None)
        if is_bounded:
            _fold_bounded(recipe, shared, sums, settings.bounds)
            continue
        fold(recipe, shared, sums)
        if defences is not None:
            shared.vectors = defend(defences, before, Rows(shared.vectors)).rows.vectors
    sent_vectors = published(recipe, shared.vectors)
    honest = solve_all(recipe, shared, sent_vectors, has)[: world.honest]
    scores = (honest @ sent_vectors.T).astype(np.float32)
    if not recipe.ridge:
        return measured(world, scores)
    if is_bounded and settings.bounds != "rows":
        recipe = recipe._replace(most_shown=USUAL_SPECTRAL)
    return measured(world, ridge_of(recipe, shared).scores(has[: world.honest], scores))


def _fold_bounded(recipe: FrugalRecipe, shared: FrugalState, sums: SummedMessages, bounds: str) -> None:
    """A fold with the bounds that a federation of sums has by default, or with one of the two alone."""
    if bounds != "caps":
        sums = bound_rows(sums, published(recipe, shared.vectors))
    fold(recipe, shared, sums)
    if bounds != "rows":
        weight = float(sums.squares[-1, -1]) / sums.messages * shared.received
        model, having = (shared.vectors, shared.weights, shared.regulariser), shared.counts / shared.received
        tastes, least = spectral_tastes(*model, having, weight), usual_length(shared.vectors)
        shared.vectors = hold_back(shared.vectors, tastes, USUAL_SPECTRAL, least=least)


def _sums(
    world: World,
    settings: PoisonSettings,
    recipe: FrugalRecipe,
    shared: FrugalState,
    sent_vectors: FloatMatrix,
    has: csr_array,
    defended: bool,
) -> SummedMessages:
    tastes = solve_all(recipe, shared, sent_vectors, has)
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -recipe.activity
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
        rng = np.random.default_rng([settings.seed, shared.round_number, 5])
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


def solve_all(recipe: FrugalRecipe, shared: FrugalState, sent_vectors: FloatMatrix, has: csr_array) -> RealMatrix:
    """Everyone's own vector, where all confidences are alike: x = (Y'DY + lambda I)^-1 Y'D p."""
    gram = gram_matrix(sent_vectors, shared.weights)
    sides = gram + shared.regulariser * np.eye(recipe.factors)
    solved: RealMatrix = np.linalg.solve(sides, (has @ (sent_vectors * shared.weights[:, None])).T.astype(np.float64)).T
    return solved


def _norm(strengths: RealMatrix, vector: RealMatrix) -> float:
    length = 1 + float(vector @ vector)
    return float(np.sqrt(length * (float(strengths @ strengths) + length)))


def histories_of(profiles: Profiles, n_items: int) -> csr_array:
    """Users x items: 1 where a user has an item."""
    ones = np.ones(len(profiles.items))
    return csr_array((ones, profiles.items, profiles.starts), shape=(len(profiles.sizes), n_items))


POISONED = {"frugal": play_frugal}
USUAL_DEFENCES = {"frugal": FRUGAL_DEFENCES}
