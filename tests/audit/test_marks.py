"""Marks side by side: means over people, and a gain that gives no credit for a baseline that points the wrong way."""

import numpy as np
import pytest

from federank.audit.scoring import BASELINE, Marks, best_of, means_of


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
