"""Metrics of lists, exposure, groups and ratings: by hand, against other libraries, and laws."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import federank as fr
from federank.data.interactions import Profiles
from federank.errors import DataError, SettingError
from federank.evaluation import metrics as exposure
from federank.evaluation.metrics import (
    RANKING,
    activity_groups,
    find_hits,
    group_means,
    mae,
    mean_difference,
    popularity_groups,
    rmse,
    standard_deviation_range,
)

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


def test_users_are_cut_at_quartiles():
    assert activity_groups(np.array([1, 2, 3, 4, 5, 6, 7, 80])).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_equal_users_share_a_group():
    assert len(np.unique(activity_groups(np.array([3, 3, 3, 3, 9])))) == 2


def test_groups_of_items_have_a_quarter_of_the_interactions():
    popularity = np.array([0, 1, 1, 1, 1, 2, 2, 4, 4])
    groups = popularity_groups(popularity)
    assert groups.tolist() == [0, 1, 1, 1, 1, 2, 2, 3, 3]
    assert popularity_groups(np.array([1] * 8 + [8, 8, 8])).tolist() == [1] * 8 + [2] * 3


def test_group_metrics_by_hand():
    train = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (3, 3)]
    split = fr.split_given(train, [(0, 1), (1, 3), (2, 3), (3, 4)])
    lists = {0: [1], 1: [2], 2: [3], 3: []}
    found = fr.evaluate(lists, split, at=1)
    users = found.by_group.filter(by="activity")
    assert users["size"].to_list() == [1, 1, 1, 1]
    assert users["recall"].to_list() == [1, 0, 1, 0]
    assert np.average(users["ndcg"], weights=users["size"]) == pytest.approx(found.means["ndcg@1"])
    items = found.by_group.filter(by="popularity")
    assert items.select("least", "most").rows() == [(1, 2), (3, 3), (4, 4)]
    assert items["recall"].to_list() == [0.5, 1, None]  # the item that training lacks is in no group
    assert group_means(found.by_group)["recall@1/popularity-2"] == 1


pairs = st.lists(st.tuples(st.floats(-10, 10), st.floats(1, 5)), min_size=1, max_size=50).map(np.array)


@given(rows=pairs)
def test_errors_are_those_of_scikit_learn(rows):
    from sklearn.metrics import mean_absolute_error, root_mean_squared_error

    guesses, truths = rows.T
    assert mae(guesses, truths) == pytest.approx(mean_absolute_error(truths, guesses))
    assert rmse(guesses, truths) == pytest.approx(root_mean_squared_error(truths, guesses))


@pytest.mark.slow
@given(rows=pairs)
def test_clipping_to_the_scale_never_makes_an_error_larger(rows):
    guesses, truths = rows.T
    assert mae(guesses, truths, (1, 5)) <= mae(guesses, truths) + 1e-12
    assert rmse(guesses, truths, (1, 5)) <= rmse(guesses, truths) + 1e-12


def test_predictions_beyond_the_scale_count_as_its_end():
    assert mae([7.0, -3.0], [5.0, 2.0], (1, 5)) == pytest.approx(0.5)
    assert rmse([7.0, -3.0], [5.0, 2.0], (1, 5)) == pytest.approx(np.sqrt(0.5))


def test_md_and_stdr_of_folds_worked_out_by_hand():
    federated, unfederated = [0.75, 0.77], [0.70, 0.80]
    assert mean_difference(federated, unfederated) == pytest.approx(0.01 / 0.75 * 100)
    assert standard_deviation_range(federated, unfederated) == pytest.approx((0.01 + 0.05) / 0.75 * 100)


@pytest.mark.parametrize(
    ("guesses", "truths", "scale", "error", "words"),
    [
        ([1.0], [1.0, 2.0], None, DataError, "1 predictions for 2 ratings"),
        ([], [], None, DataError, "no ratings to predict"),
        ([np.nan], [3.0], None, DataError, "not numbers"),
        ([3.0], [3.0], (5, 1), SettingError, "lower end must come first"),
    ],
)
def test_what_cannot_be_measured_is_refused(guesses, truths, scale, error, words):
    with pytest.raises(error, match=words):
        mae(guesses, truths, scale)


counts_of_items = st.lists(st.integers(0, 50), min_size=2, max_size=40).map(np.array).filter(np.any)


def gini_by_all_pairs(counts):
    """The definition: the mean difference of any two, over twice the mean."""
    counts = np.asarray(counts, dtype=float)
    return np.abs(counts[:, None] - counts[None]).mean() / (2 * counts.mean())


@given(counts=counts_of_items)
def test_the_standard_form_is_the_mean_difference_of_all_pairs(counts):
    assert exposure.gini(counts) == pytest.approx(gini_by_all_pairs(counts), abs=1e-9)


@given(counts=counts_of_items)
def test_the_papers_form_is_one_minus_the_formula_they_print(counts):
    n, ascending = len(counts), np.sort(counts)
    printed = sum((2 * k - n - 1) * c for k, c in enumerate(ascending, start=1)) / ((n - 1) * ascending.sum())
    assert exposure.gini_diversity(counts) == pytest.approx(1 - printed, abs=1e-12)


def test_coverage_counts_different_items_and_skips_the_ends_of_short_lists():
    counts = exposure.count_items(np.array([[0, 3, -1], [3, -1, -1]], dtype=np.int32), 5)
    assert counts.tolist() == [1, 0, 0, 2, 0]
    assert exposure.item_coverage(counts) == 2


def test_popularity_and_novelty_are_means_over_the_places_filled():
    training_counts = np.array([10, 0, 4, 2])
    lists = np.array([[0, 2, -1], [3, -1, -1], [-1, -1, -1]], dtype=np.int32)
    np.testing.assert_array_equal(exposure.popularity(lists, training_counts), [7, 2, np.nan])
    np.testing.assert_allclose(exposure.novelty(lists, training_counts, n_users=20), [1 - 7 / 20, 1 - 2 / 20, np.nan])


def test_popularity_lift_compares_lists_with_the_profiles_of_the_same_users():
    profiles = Profiles(np.array([0, 2, 3, 3]), np.array([2, 3, 3], dtype=np.int32))
    of_profiles = exposure.profile_popularity(profiles, np.array([10, 0, 4, 2]))
    np.testing.assert_array_equal(of_profiles, [3, 2, np.nan])
    # The second user has no list and the third no profile: only the first counts, 9 against 3.
    assert exposure.popularity_lift(np.array([9, np.nan, 5.0]), of_profiles) == pytest.approx(2)


@given(counts=counts_of_items, factor=st.integers(2, 9))
def test_lift_of_lists_like_the_profiles_is_zero_and_of_lists_k_times_as_popular_k_minus_1(counts, factor):
    values = counts.astype(float) + 1
    assert exposure.popularity_lift(values, values) == pytest.approx(0)
    assert exposure.popularity_lift(factor * values, values) == pytest.approx(factor - 1)
