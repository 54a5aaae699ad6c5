"""Hiding items whose predicted audience has jumped: what it stops, and what it does not."""

import pytest

import federank as fr
from federank.audit.poisoning import PoisonSettings
from federank.methods.frugal.poisoning import rehearse_jump

SPLIT = fr.split_temporal(fr.city(people=400, places=300, checkins=16_000, seed=2), test=0.2)


def rehearsed(share, calm_rounds):
    settings = PoisonSettings(method="frugal", attack="twin", sees="checked", share=share, seed=1)
    return rehearse_jump(SPLIT, settings, calm_rounds=calm_rounds)


def test_a_twin_that_comes_later_is_hidden():
    found = rehearsed(0.05, 4)
    assert found.exposure > 0.1
    assert found.exposure_hidden == 0
    assert found.exposure > 2 * found.genuine_high
    assert found.precision_hidden == pytest.approx(found.precision, abs=0.02)


def test_in_the_first_versions_genuine_items_jump_too():
    found = rehearsed(0.05, 0)
    assert found.hidden > 10
    assert found.precision_hidden < 0.8 * found.precision


def test_honest_rounds_hide_nothing():
    assert rehearsed(0.0, 4).hidden == 0
