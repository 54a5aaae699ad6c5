"""Ranking metrics: small lists worked out by hand, random lists against ir-measures, and laws."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from federank.data.interactions import Profiles
from federank.evaluation.metrics import RANKING, find_hits

THEIRS = {"precision": "P", "recall": "R", "ndcg": "nDCG", "map": "AP", "mrr": "RR", "hit_rate": "Success"}
"""Our names and those of ir-measures."""


def one_list(pattern, relevant, n, metric):
    """A metric of one list, written as '-x--x': an x is a hit."""
    hits = np.array([[place == "x" for place in pattern]]).reshape(1, len(pattern))
    return float(RANKING[metric](hits, np.array([relevant]), n)[0])


@st.composite
def judged_lists(draw):
    """Hits in a list of some length, and at least as many relevant items as hits."""
    pattern = draw(st.lists(st.booleans(), min_size=0, max_size=30))
    return np.array([pattern], dtype=bool).reshape(1, -1), np.array([sum(pattern) + draw(st.integers(0, 20)) or 1])


def test_a_list_by_hand():
    assert one_list("-x--x", relevant=4, n=5, metric="precision") == pytest.approx(2 / 5)
    assert one_list("-x--x", relevant=4, n=5, metric="recall") == pytest.approx(2 / 4)
    assert one_list("-x--x", relevant=4, n=5, metric="f1") == pytest.approx(2 * 0.4 * 0.5 / 0.9)
    assert one_list("-x--x", relevant=4, n=5, metric="map") == pytest.approx((1 / 2 + 2 / 5) / 4)
    assert one_list("-x--x", relevant=4, n=5, metric="mrr") == pytest.approx(1 / 2)
    assert one_list("-x--x", relevant=4, n=5, metric="hit_rate") == 1
    perfect = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert one_list("-x--x", relevant=4, n=5, metric="ndcg") == pytest.approx(
        (1 / math.log2(3) + 1 / math.log2(6)) / perfect
    )


@pytest.mark.parametrize("metric", RANKING)
def test_a_user_without_a_list_scores_zero(metric):
    assert RANKING[metric](np.zeros((2, 0), dtype=bool), np.array([3, 1]), 10).tolist() == [0, 0]


@pytest.mark.parametrize("n", [1, 5, 10])
def test_random_lists_get_the_figures_of_ir_measures(n):
    import ir_measures

    rng = np.random.default_rng(7)
    n_users, n_items = 60, 80
    lists = np.array([rng.permutation(n_items)[:20] for _ in range(n_users)], dtype=np.int32)
    chosen = [np.sort(rng.choice(n_items, rng.integers(1, 25), replace=False)) for _ in range(n_users)]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in chosen])))
    hits = find_hits(lists, np.arange(n_users, dtype=np.int32), Profiles(starts, np.concatenate(chosen)))
    relevant = np.diff(starts)

    judgements = {str(user): {str(item): 1 for item in row} for user, row in enumerate(chosen)}
    run = {str(user): {str(item): -float(k) for k, item in enumerate(row)} for user, row in enumerate(lists)}
    for name, their_name in THEIRS.items():
        measure = getattr(ir_measures, their_name)
        theirs = {row.query_id: row.value for row in ir_measures.iter_calc([measure @ n], judgements, run)}
        ours = RANKING[name](hits, relevant, n)
        assert ours.max() > 0
        np.testing.assert_allclose(ours, [theirs[str(user)] for user in range(n_users)], atol=1e-6, err_msg=name)


@given(judged=judged_lists(), n=st.integers(1, 40))
def test_every_metric_lies_between_0_and_1(judged, n):
    for metric in RANKING.values():
        value = metric(*judged, n)[0]
        assert 0 <= value <= 1 + 1e-12


@given(judged=judged_lists(), n=st.integers(1, 39))
def test_a_longer_list_never_lowers_what_it_finds(judged, n):
    for name in ("recall", "map", "mrr", "hit_rate"):
        assert RANKING[name](*judged, n + 1)[0] >= RANKING[name](*judged, n)[0]


@given(judged=judged_lists(), n=st.integers(2, 30), data=st.data())
def test_moving_a_hit_one_place_up_never_lowers_a_metric(judged, n, data):
    hits, relevant = judged
    steps = [k for k in range(1, min(n, hits.shape[1])) if hits[0, k] and not hits[0, k - 1]]
    assume(steps)
    place = data.draw(st.sampled_from(steps))
    better = hits.copy()
    better[0, [place - 1, place]] = True, False
    for name, metric in RANKING.items():
        assert metric(better, relevant, n)[0] >= metric(hits, relevant, n)[0] - 1e-12
        if name in ("ndcg", "map"):
            assert metric(better, relevant, n)[0] > metric(hits, relevant, n)[0]


@given(judged=judged_lists(), n=st.integers(1, 30))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(judged, n):
    p, r = (RANKING[name](*judged, n)[0] for name in ("precision", "recall"))
    assert RANKING["f1"](*judged, n)[0] == pytest.approx(2 * p * r / (p + r) if p + r else 0)


def test_an_ended_list_hits_nothing_even_beside_the_last_item_of_the_user_before():
    # -1 must not be taken for the last item of the user before.
    test = Profiles(np.array([0, 1, 2]), np.array([4, 0], dtype=np.int32))
    hits = find_hits(np.array([[4, -1], [-1, -1]], dtype=np.int32), np.array([0, 1], dtype=np.int32), test)
    assert hits.tolist() == [[True, False], [False, False]]
