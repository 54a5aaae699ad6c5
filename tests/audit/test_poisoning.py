"""Hiding items whose predicted audience has jumped: what it stops, what it does not, and what it costs."""

import numpy as np
import pytest

import federank as fr
from federank.audit.poisoning import PoisonSettings
from federank.methods.frugal.bounds import Tastes, without_jumps
from federank.methods.frugal.poisoning import rehearse_jump

SPLIT = fr.split_temporal(fr.city(people=400, places=300, checkins=16_000, seed=2), test=0.2)


def rehearsed(share=0.05, recipe="spectral", **options):
    settings = PoisonSettings(method="frugal", attack="twin", sees="checked", share=share, seed=1, recipe=recipe)
    return rehearse_jump(SPLIT, settings, **options)


@pytest.mark.parametrize("recipe", ["spectral", "private"])
def test_a_twin_that_comes_later_is_hidden(recipe):
    free = rehearsed(recipe=recipe, has_rule=False)
    found = rehearsed(recipe=recipe)
    assert free.exposure > 0.1
    assert free.exposure > 2 * free.genuine_high
    assert found.exposure == 0
    assert found.precision == pytest.approx(free.precision, abs=0.02)


def test_malicious_clients_from_the_start_are_not_hidden():
    assert rehearsed(calm_rounds=0).exposure == rehearsed(calm_rounds=0, has_rule=False).exposure > 0.1


def test_honest_rounds_hide_nothing():
    assert rehearsed(0.0) == rehearsed(0.0, has_rule=False)


def test_rounds_of_few_uploads_hide_nothing():
    """Eight uploads do not show how many of all users would see an item."""
    few = {"rounds": 40, "cohort": 8}
    assert rehearsed(0.0, **few) == rehearsed(0.0, has_rule=False, **few)


def test_an_item_is_hidden_for_as_long_as_its_audience_would_jump():
    rng = np.random.default_rng(1)
    before = rng.normal(size=(300, 4)).astype(np.float32)
    tastes = Tastes(np.ones(4), np.eye(4) / 100)
    before[7], jumped = -1, before.copy()
    jumped[7] = 9
    assert not without_jumps(before, tastes, jumped, tastes)[7].any()
    hidden = without_jumps(before, tastes, jumped, tastes)
    assert not without_jumps(hidden, tastes, jumped, tastes)[7].any()
    np.testing.assert_array_equal(without_jumps(jumped, tastes, jumped, tastes), jumped)
    np.testing.assert_array_equal(np.delete(hidden, 7, 0), np.delete(jumped, 7, 0))
