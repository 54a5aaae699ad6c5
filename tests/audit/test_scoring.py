"""Marks of guesses against formulas written out, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.audit.scoring import Guess, judge

PROFILE = np.array([1, 4, 5], dtype=np.int32)


def marks_of(scores, size, profile=PROFILE, sent=()):
    left = np.zeros((1, len(scores)), dtype=bool)
    left[0, list(sent)] = True
    guess = Guess(np.array([scores], dtype=np.float32), np.array([size]))
    return {name: values[0] for name, values in judge(guess, [profile], left)._asdict().items()}


def test_claimed_items_are_counted_as_right_or_wrong():
    marks = marks_of([9, 8, 1, 7, 6, 0, 0.5, 0.2], size=4)  # claims 0, 1, 3, 4: two of them right
    assert marks["precision"] == pytest.approx(2 / 4)
    assert marks["recall"] == pytest.approx(2 / 3)
    assert marks["f1"] == pytest.approx(2 * 2 / (4 + 3))


def test_tied_items_are_claimed_in_proportion():
    marks = marks_of([1, 1, 0, 1, 1, 0, 0, 0], size=2)  # two of four tied items, of which two are right
    assert marks["precision"] == pytest.approx(0.5)
    assert marks["recall"] == pytest.approx(1 / 3)


def test_an_attack_that_claims_nothing_has_no_precision():
    marks = marks_of([0] * 8, size=0)
    assert np.isnan(marks["precision"])
    assert marks["recall"] == marks["f1"] == 0
    assert marks["auc"] == 0.5


def test_what_was_held_back_is_judged_apart():
    marks = marks_of([0, 9, 0, 0, 9, -1, 0, 0], size=2, sent=[1, 4])
    assert marks["auc_held_back"] == 0
    assert marks["auc"] == pytest.approx(2 / 3)
    assert np.isnan(marks_of([0] * 8, size=0, sent=PROFILE)["auc_held_back"])


@pytest.mark.slow
@given(
    scores=st.lists(st.integers(-3, 3) | st.floats(-1e6, 1e6, width=32), min_size=8, max_size=8),
    profile=st.sets(st.integers(0, 7), min_size=1, max_size=7),
)
def test_the_area_under_the_curve_is_scikit_learns(scores, profile):
    from sklearn.metrics import roc_auc_score

    owned = np.isin(np.arange(8), list(profile))
    marks = marks_of(scores, size=3, profile=np.flatnonzero(owned).astype(np.int32))
    assert marks["auc"] == pytest.approx(roc_auc_score(owned, np.array(scores, dtype=np.float32)))
    assert marks["auc_held_back"] == pytest.approx(marks["auc"])
    assert 0 <= marks["precision"] <= 1
