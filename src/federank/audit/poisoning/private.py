"""The recipe of sums with noise (`federank train frugal --epsilon`), with liars whose norm was checked.

Every honest message is of length 1, and a liar's of 2.2: in the first round it says what is popular, in the others it
pulls rows. The attacks are those of checked.py, but for one: an adaptive liar makes its row as long as the third
longest, and no longer. A row far beyond all others would be a direction of its own, which nobody shares.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from federank.arrays import RealMatrix, RealVector
from federank.audit.poisoning.checked import pretend, push
from federank.audit.poisoning.measure import Measured, measured
from federank.audit.poisoning.world import PoisonSettings, World
from federank.engines.squares.compiled import home_vectors
from federank.engines.squares.federation import SquaresFederation
from federank.engines.squares.noisy import sum_in_ring
from federank.protocol.frugal import FrugalSettings
from federank.protocol.squares.aggregation import fold, private_columns, published_sum
from federank.protocol.squares.distribution import published
from federank.protocol.squares.private.message import Directions, directions_of
from federank.protocol.squares.recipes import squares_recipe
from federank.protocol.squares.shown import USUAL_JOINED, USUAL_PRIVATE
from federank.protocol.sums.norm_check.parameters import passing_norm
from federank.protocol.sums.rounding import C_INT, centred, in_ring


def play_private(world: World, settings: PoisonSettings, has: csr_array, *, is_defended: bool) -> Measured:
    """A whole federation of sums, with noise where there is an epsilon."""
    sigma = 0.0 if settings.epsilon is None else None
    method = FrugalSettings(seed=settings.seed, rounding="mean", sigma=sigma, epsilon=settings.epsilon)
    recipe = squares_recipe(method, world.profiles.sizes, world.n_items)
    assert recipe.private is not None, "sums with a promise have a plan"
    if is_defended:
        recipe = recipe._replace(most_shown=USUAL_JOINED if recipe.private.joined else USUAL_PRIVATE)
    federation = SquaresFederation.established(method, recipe, world.profiles)
    everybody = np.arange(world.people, dtype=np.int32)
    honest, liars = np.split(everybody, [world.honest])
    for number in range(recipe.rounds):
        shape = world.n_items, private_columns(recipe, number)
        said = centred(sum_in_ring(federation, honest)).reshape(shape) / C_INT
        if settings.attack == "histories":
            said = said + passing_norm() * centred(sum_in_ring(federation, liars)).reshape(shape) / C_INT
        elif world.liars:
            known = directions_of(published(recipe, federation.item_vectors), federation.weights)
            said = _with_lies(world, settings, number, said, known, has[: world.honest])
        total = in_ring(np.rint(C_INT * said.ravel()).astype(np.int64))
        shared = federation.shared
        fold(recipe, shared, published_sum(recipe, number, total, world.people))
        federation.take(shared)
    vectors = home_vectors(federation)[: world.honest]
    return measured(world, vectors @ published(recipe, federation.item_vectors).T)


def _with_lies(
    world: World, settings: PoisonSettings, number: int, said: RealMatrix, known: Directions, has: csr_array
) -> RealMatrix:
    """What honest people say together, and what the liars add."""
    norm = world.liars * passing_norm()
    if settings.attack == "noise":
        rng = np.random.default_rng([settings.seed, number, 5])
        noisy: RealMatrix = said + rng.normal(size=said.shape) * norm / np.sqrt(world.liars * said.size)
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
