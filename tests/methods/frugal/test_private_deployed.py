"""A guarantee outside of a simulation: one device's message, and cohorts that play the plan one after the other."""

import numpy as np
import pytest

from federank.errors import BadMessage
from federank.methods.frugal.private import directions_at_home, directions_of, new_scratch, one_message, private_message
from federank.methods.frugal.private_plan import PrivatePlan
from federank.methods.frugal.private_server import (
    PrivateModel,
    fold_histories,
    fold_of_cohort,
    fold_popularity,
    received_from,
)
from federank.secagg.ring import C_INT

ITEMS, FACTORS, STAGES = 30, 5, 3
PLAN = PrivatePlan((0,) * STAGES, FACTORS, 0.3)
JOINED = PrivatePlan((C_INT // 4,) * STAGES, FACTORS, 0.3)
"""With noise to reckon with (none is added here), what all rounds tell is read together."""


def people(count, seed):
    """Two tastes: people have most items of one half of the catalogue."""
    rng = np.random.default_rng(seed)
    half = ITEMS // 2
    return [np.sort(rng.choice(half, 6, replace=False) + half * (who % 2)).astype(np.int32) for who in range(count)]


def model_of_two_tastes(seed=1):
    sums = np.sum([one_message(0, ITEMS, one, None, chances(ITEMS, seed)) for one in people(40, seed)], axis=0)
    return fold_popularity(PLAN, 1, sums / C_INT)


def chances(count, seed=2):
    return np.random.default_rng(seed).integers(0, 2**16, count).astype(np.uint16)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_clients_message_is_the_simulations_but_for_the_last_bits(stage):
    """The kernel may fuse a product and a sum; so a number is the same, or off by one where chance was at its edge."""
    _, weights, vectors = model_of_two_tastes()
    columns = 1 if stage == 0 else FACTORS - 1
    differing = 0
    for user, profile in enumerate(people(20, 3)):
        workspace = new_scratch(ITEMS, columns)
        private_message(directions_of(vectors, weights), profile, 1, user, stage, workspace)
        own = directions_at_home(vectors, weights)
        made = one_message(stage, ITEMS, profile, own, workspace.chances[: ITEMS * columns])
        differing += int((made != workspace.whole).sum())
        assert np.abs(made - workspace.whole).max() <= 1
    assert differing <= 2


def test_a_message_is_never_longer_than_allowed():
    _, weights, vectors = model_of_two_tastes()
    known = directions_at_home(vectors, weights)
    for number, profile in enumerate(people(30, 4)):
        whole = one_message(1, ITEMS, profile, known, chances(ITEMS * (FACTORS - 1), number)).astype(np.int64)
        assert 0 < whole @ whole <= C_INT**2


def test_a_history_without_a_direction_sends_zeros_and_what_is_not_finite_sends_nothing():
    weights = np.ones(ITEMS, dtype=np.float32)
    nowhere = directions_at_home(np.zeros((ITEMS, FACTORS), dtype=np.float32), weights)
    assert not one_message(1, ITEMS, np.array([3], dtype=np.int32), nowhere, chances(ITEMS * 4)).any()
    broken = directions_at_home(np.full((ITEMS, FACTORS), np.nan, dtype=np.float32), weights)
    with pytest.raises(BadMessage, match="not finite"):
        one_message(1, ITEMS, np.array([3], dtype=np.int32), broken, chances(ITEMS * 4))


def begun():
    none = np.zeros((ITEMS, 0))
    zeros = np.zeros(ITEMS)
    first = np.zeros((ITEMS, FACTORS), dtype=np.float32)
    return PrivateModel(first, np.ones(ITEMS, dtype=np.float32), zeros, zeros, none, none, received_from(none))


def played(model, cohort, folds, stages=STAGES):
    """The model after a cohort has played this many stages."""
    for stage in range(stages):
        columns = 1 if stage == 0 else FACTORS - 1
        known = directions_at_home(model.vectors, model.weights) if stage else None
        made = [one_message(stage, ITEMS, one, known, chances(ITEMS * columns, n)) for n, one in enumerate(cohort)]
        sums = np.sum(made, axis=0).reshape(ITEMS, columns) / C_INT
        rounds = 1 + folds // STAGES  # of popularity, whose sums are added up
        sums = sums + model.summed[:, None] if stage == 0 else sums
        model = fold_of_cohort(PLAN, 1, 0.9, folds + stage, model, model.vectors, sums, rounds=rounds)
    return model


@pytest.mark.parametrize("plan", [PLAN, JOINED])
def test_the_first_cohort_folds_as_the_simulation_does(plan):
    cohort = people(40, 5)
    model, heard = begun(), received_from(np.zeros((ITEMS, 0)))
    popularity = weights = vectors = None
    for stage in range(STAGES):
        columns = 1 if stage == 0 else FACTORS - 1
        known = directions_at_home(model.vectors, model.weights) if stage else None
        made = [one_message(stage, ITEMS, one, known, chances(ITEMS * columns, n)) for n, one in enumerate(cohort)]
        sums = np.sum(made, axis=0).reshape(ITEMS, columns) / C_INT
        if stage == 0:
            popularity, weights, vectors = fold_popularity(plan, 1, sums[:, 0])
        else:
            vectors, _, heard = fold_histories(plan, stage, 0.9, popularity, model.vectors, sums, heard)
        model = fold_of_cohort(plan, 1, 0.9, stage, model, model.vectors, sums)
        np.testing.assert_array_equal(model.vectors, vectors)
        np.testing.assert_array_equal(model.weights, weights)


def tells_tastes_apart(model):
    """How much nearer items of one half are to one another than to the other half."""
    placed = model.vectors[:, :-1] * np.sqrt(model.weights)[:, None]
    near = placed @ placed.T
    half = ITEMS // 2
    return near[:half, :half].mean() + near[half:, half:].mean() - 2 * near[:half, half:].mean()


def test_a_small_cohort_does_not_undo_what_a_large_one_has_said():
    known = played(begun(), people(200, 6), 0)
    few = people(3, 7)[::2]  # of one taste alone
    joined = played(known, few, STAGES)
    assert tells_tastes_apart(joined) > 0.5 * tells_tastes_apart(known) > 0


def test_between_cohorts_the_model_stays_what_it_was_but_for_popularity():
    known = played(begun(), people(200, 6), 0)
    begun_again = played(known, people(10, 9), STAGES, stages=1)
    assert tells_tastes_apart(begun_again) == pytest.approx(tells_tastes_apart(known), rel=0.2)
    assert begun_again.summed.sum() > known.summed.sum()


def test_popularity_of_later_cohorts_is_held_against_all_their_noise():
    noisy = PLAN._replace(deviations=(C_INT,) * STAGES)
    summed = np.zeros(ITEMS)
    summed[0] = 100.0
    once, thrice = (fold_popularity(noisy, 1, summed, cohorts)[0][1] for cohorts in (1, 3))
    assert thrice == pytest.approx(np.sqrt(3) * once)
