"""Marks of guesses against formulas written out, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.audit.scoring import BASELINE, Guess, Marks, best_of, judge, means_of

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


def marks(auc, held_back=(np.nan,), precision=(0.5,)):
    """Marks with these areas under the curve, one per person; whatever else is judged is of no matter here."""
    others = np.full(len(auc), 0.5)
    hidden = np.resize(np.array(held_back, dtype=float), len(auc))
    return Marks(
        np.resize(np.array(precision, dtype=float), len(auc)), *[others] * 2, np.array(auc), *[others] * 3, hidden
    )


def test_the_gain_is_counted_from_popularity():
    means = means_of({BASELINE: [marks([0.6, 0.8])], "sign": [marks([0.9, 0.9])]})
    assert means["sign"]["gain"] == pytest.approx(0.9 - 0.7)
    assert means[BASELINE]["gain"] == pytest.approx(0.0)


def test_no_attack_gets_credit_for_a_popularity_that_points_the_wrong_way():
    means = means_of(
        {BASELINE: [marks([0.3], held_back=[0.2])], "sign": [marks([0.6], held_back=[0.45])]},
    )
    assert means["sign"]["gain"] == pytest.approx(0.6 - 0.5)
    assert means["sign"]["gain_held_back"] == pytest.approx(0.45 - 0.5)
    assert means[BASELINE]["gain"] == pytest.approx(0.3 - 0.5)


def test_where_nothing_was_held_back_there_is_no_gain_and_no_best():
    means = means_of({BASELINE: [marks([0.6])], "sign": [marks([0.9])]})
    assert means["sign"]["gain_held_back"] is None
    best = best_of(means)
    assert best["by_auc_held_back"] is best["auc_held_back"] is best["gain_held_back"] is None


def test_the_best_attack_has_the_best_order_and_is_never_the_baseline():
    means = means_of(
        {
            BASELINE: [marks([0.99], held_back=[0.99])],
            "sign": [marks([0.9], held_back=[0.6])],
            "vector_recovery": [marks([0.8], held_back=[0.7])],
        }
    )
    best = best_of(means)
    assert (best["by_auc"], best["auc"]) == ("sign", pytest.approx(0.9))
    assert (best["by_auc_held_back"], best["auc_held_back"]) == ("vector_recovery", pytest.approx(0.7))
    assert best["gain"] == pytest.approx(0.9 - 0.99)
