"""Defences around aggregation: what a fold may do to the model, and what no device can have sent."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.squares_worlds import lone_method
from tests.worlds import model_of

from federank._numerics.topn import gram_matrix
from federank.data.interactions import Interactions
from federank.federation.defences import LEAST_ITEMS, NO_DEFENCES, Defences, Rows, defend
from federank.methods.fpl.kernels import sum_of_updates, workspace_for_clients
from federank.methods.fpl.settings import FPLSettings, recipe_for
from federank.methods.fpl.simulation import Federation
from federank.methods.frugal.objective import Objective, residuals, solve_user
from federank.methods.frugal.protocol import FrugalUpdate
from federank.methods.frugal.wire import SLACK, why_implausible_frugal

ITEMS = 300


def model(seed=0, items=ITEMS):
    rng = np.random.default_rng(seed)
    return Rows(rng.normal(size=(items, 4)).astype(np.float32), rng.normal(size=items).astype(np.float32))


def moved(before, seed=1, size=0.1):
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(len(before.biases), 5)).astype(np.float32) * np.float32(size)
    return Rows(before.vectors + steps[:, :-1], before.biases + steps[:, -1])


def pushed(after, item, by=100.0):
    vectors, biases = after.vectors.copy(), after.biases.copy()
    vectors[item] += by
    biases[item] += by
    return Rows(vectors, biases)


@given(by=st.floats(0.5, 1e6), item=st.integers(0, ITEMS - 1))
def test_a_pushed_row_ends_no_farther_than_others_and_no_higher_than_its_share(by, item):
    before = model()
    after = pushed(moved(before), item, by)
    found, held, capped = defend(Defences(0.8, 0.9), before, after)
    lengths = np.linalg.norm(found.vectors, axis=1)
    moves = np.linalg.norm(found.vectors - before.vectors, axis=1)
    honest = np.delete(np.arange(ITEMS), item)
    bound = np.quantile(np.linalg.norm(after.vectors - before.vectors, axis=1)[honest], 0.95)
    shortened = lengths[item] < np.linalg.norm(before.vectors[item])  # a row that was long already is cut back
    assert moves[item] <= bound or shortened
    assert found.biases[item] <= np.quantile(after.biases, 0.81)
    assert lengths[item] <= np.quantile(np.linalg.norm(after.vectors, axis=1), 0.82)
    assert held > 0
    assert capped > 0


def test_rows_that_a_fold_has_not_moved_stay_as_they_are():
    before = model()
    after = Rows(before.vectors.copy(), before.biases.copy())
    after.vectors[:50] += 0.1
    found = defend(Defences(), before, after).rows
    assert np.array_equal(found.vectors[50:], before.vectors[50:])
    assert np.array_equal(found.biases[50:], before.biases[50:])


def test_a_row_in_the_midst_of_the_others_is_not_touched():
    before = model()
    after = moved(before)
    found = defend(Defences(), before, after).rows
    lengths = np.linalg.norm(after.vectors, axis=1)
    moves = np.hypot(np.linalg.norm(after.vectors - before.vectors, axis=1), after.biases - before.biases)
    calm = (lengths < np.quantile(lengths, 0.5)) & (after.biases < np.quantile(after.biases, 0.5))
    calm &= moves < np.quantile(moves, 0.5)
    assert calm.any()
    assert np.array_equal(found.vectors[calm], after.vectors[calm])
    assert np.array_equal(found.biases[calm], after.biases[calm])


@pytest.mark.parametrize("defences", [NO_DEFENCES, Defences()])
def test_nothing_is_bounded_where_nothing_is_asked_for_or_the_catalogue_is_small(defences):
    before = model(items=ITEMS if defences.are_off else LEAST_ITEMS - 1)
    after = pushed(moved(before), 3)
    found = defend(defences, before, after)
    assert found.rows is after
    assert (found.held, found.capped) == (0, 0)


def test_a_model_without_biases_is_capped_by_its_lengths():
    before = Rows(model().vectors)
    after = Rows(pushed(moved(model()), 7).vectors)
    found = defend(Defences(0.98, 1.0), before, after)
    assert np.linalg.norm(found.rows.vectors[7]) <= np.quantile(np.linalg.norm(after.vectors, axis=1), 0.98) + 1e-4
    assert found.rows.biases is None


@pytest.mark.parametrize("pi", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("order", ["as-in-code", "as-printed"])
def test_what_clients_send_is_plausible_whatever_they_hold_back(pi, order):
    rng = np.random.default_rng(3)
    users, items = np.repeat(np.arange(20), 9), rng.integers(0, 60, 180)
    data = Interactions.from_columns(users, items)
    settings = FPLSettings(triples=7, clients_per_round=20, order=order, learning_rate=0.5)
    recipe = recipe_for(settings, data.profiles.sizes, data.n_items, np.full(data.n_users, pi))
    federation = Federation.established(settings, recipe, data.profiles, data.n_items)
    method = replace(federation.method, triples=7)
    workspace = workspace_for_clients(*federation.item_vectors.shape)
    for number in range(3):
        for user in range(data.n_users):
            update = sum_of_updates(federation.run, number, np.array([user], dtype=np.int32), workspace)
            method.check(model_of(federation), update)


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_every_number_of_a_message_of_squares_is_checked(alpha):
    rng = np.random.default_rng(1)
    vectors, weights = rng.normal(size=(50, 4)).astype(np.float32), np.ones(50, np.float32)
    recipe = lone_method(50, min_support=1, alpha=alpha, factors=4)
    gram, profile = gram_matrix(vectors, weights), np.array([3, 8, 21, 40], np.int32)
    assert isinstance(recipe.objective, Objective)
    vector = solve_user(recipe.objective, 0.7, vectors, weights, gram, profile)
    honest = FrugalUpdate.of(
        residuals(recipe.objective, vectors, vector, profile), vector, np.float32(4**-recipe.user_weight_exponent)
    )

    def why(update):
        return why_implausible_frugal(recipe, update, vectors, weights, gram, 0.7)

    assert why(honest) is None
    loud = honest.strengths.copy()
    loud[11] += 3.0
    assert "history" in why(replace(honest, strengths=loud))
    assert why(replace(honest, vector=vector * 2)) is not None
    assert why(FrugalUpdate(residuals(recipe.objective, vectors, 2 * vector, profile), 2 * vector, honest.scale))
    assert "counts less" in why(replace(honest, scale=np.array([1.5 * 4**-recipe.user_weight_exponent], np.float32)))
    assert "no item" in why(FrugalUpdate.of(np.zeros(50, np.float32), np.zeros(4, np.float32), np.float32(0.1)))


@pytest.mark.parametrize("regulariser", [0.0, 0.05, 20.0])
def test_a_vector_is_judged_by_its_distance_from_the_solved_one(regulariser):
    """Most are accepted by their residual alone; the decision is the same as if every one were solved for."""
    rng = np.random.default_rng(3)
    vectors, weights = rng.normal(size=(50, 4)).astype(np.float32), np.ones(50, np.float32)
    recipe = lone_method(50, min_support=1, factors=4)
    gram, profile = gram_matrix(vectors, weights), np.array([3, 8, 21, 40], np.int32)
    solved = solve_user(recipe.objective, regulariser, vectors, weights, gram, profile)
    decisions = set()
    for far in (0.0, 1e-4, 0.5, 0.9, 1.1, 3.0):
        for _ in range(10):
            step = rng.normal(size=4)
            step *= far * SLACK * (1 + np.linalg.norm(solved)) / np.linalg.norm(step)
            vector = (solved + step).astype(np.float32)
            strengths = residuals(recipe.objective, vectors, vector, profile)
            update = FrugalUpdate.of(strengths, vector, np.float32(4**-recipe.user_weight_exponent))
            is_near = why_implausible_frugal(recipe, update, vectors, weights, gram, regulariser) is None
            assert is_near == (far < 1)
            decisions.add(is_near)
    assert decisions == {True, False}
