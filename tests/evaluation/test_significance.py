"""Paired tests: figures by hand and from SciPy's own paired form, Holm's correction, and what happens at the edges."""

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from federank.errors import DataError, SettingError
from federank.evaluation.evaluate import Evaluation
from federank.evaluation.significance import bootstrap_interval, compare, effect_size, holm, paired_tests

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def evaluation(values, users=None, metric="ndcg@10"):
    users = list(range(len(values))) if users is None else users
    table = pl.DataFrame({"user": users, metric: pl.Series(values, dtype=pl.Float64)})
    return Evaluation({}, table, None, (), (10,))


def compared(*values, **how):
    runs = {f"run {place}": evaluation(row) for place, row in enumerate(values)}
    return compare(runs, metrics=["ndcg@10"], **how)


rng = np.random.default_rng(3)
LOW = rng.random(80)
HIGH = LOW + 0.05 + 0.1 * rng.standard_normal(80)


def test_the_tests_are_those_of_scipy_on_pairs():
    (one,) = compared(HIGH, LOW)
    assert one.t_test == pytest.approx(scipy.stats.ttest_rel(HIGH, LOW).pvalue)
    assert one.wilcoxon == pytest.approx(scipy.stats.wilcoxon(HIGH, LOW).pvalue)
    assert one.difference == pytest.approx(HIGH.mean() - LOW.mean())
    assert one.effect_size == pytest.approx((HIGH - LOW).mean() / (HIGH - LOW).std(ddof=1))


def test_the_interval_lies_around_the_difference_and_is_the_same_for_the_same_seed():
    (one,) = compared(HIGH, LOW, seed=4)
    assert one.low < one.difference < one.high
    assert compared(HIGH, LOW, seed=4) == [one]
    assert compared(HIGH, LOW, seed=5) != [one]


def test_the_interval_is_about_as_wide_as_theory_says():
    differences = rng.standard_normal(400)
    low, high = bootstrap_interval(differences, resamples=4_000, seed=1)
    error = differences.std(ddof=1) / np.sqrt(400)
    assert low == pytest.approx(differences.mean() - 1.96 * error, abs=0.3 * error)
    assert high == pytest.approx(differences.mean() + 1.96 * error, abs=0.3 * error)


def test_swapping_the_two_turns_the_signs_and_keeps_the_p_values():
    (forth,), (back,) = compared(HIGH, LOW), compared(LOW, HIGH)
    assert back.difference == pytest.approx(-forth.difference)
    assert back.effect_size == pytest.approx(-forth.effect_size)
    assert back.t_test == pytest.approx(forth.t_test)
    assert back.wilcoxon == pytest.approx(forth.wilcoxon)


def test_only_common_users_are_compared_each_with_themselves():
    one = evaluation([0.1, 0.2, 0.3, 0.4], users=[1, 2, 3, 4])
    other = evaluation([0.4, 0.3, 0.3, 0.9], users=[4, 3, 2, 9])
    (found,) = compare({"one": one, "other": other}, metrics=["ndcg@10"])
    assert found.users == 3
    assert found.difference == pytest.approx(((0.2 - 0.3) + (0.3 - 0.3) + (0.4 - 0.4)) / 3)


def test_every_user_better_by_the_same_amount_leaves_no_doubt():
    differences = np.full(20, 0.25)
    t_test, wilcoxon = paired_tests(differences)
    assert t_test == 0
    assert wilcoxon < 0.001
    assert effect_size(differences) == np.inf
    assert effect_size(-differences) == -np.inf


def test_every_two_of_three_runs_are_compared_and_corrected_together():
    found = compared(HIGH, LOW, LOW**2)
    assert [(one.first, one.second) for one in found] == [("run 0", "run 1"), ("run 0", "run 2"), ("run 1", "run 2")]
    assert [one.t_test_holm for one in found] == holm([one.t_test for one in found])
    assert [one.wilcoxon_holm for one in found] == holm([one.wilcoxon for one in found])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1, 1])


@given(values=p_values)
def test_holm_never_lowers_a_p_value_and_never_goes_further_than_bonferroni(values):
    for before, after in zip(values, holm(values), strict=True):
        assert before <= after <= min(1, len(values) * before) + 1e-12


def test_runs_without_two_common_users_are_refused():
    with pytest.raises(DataError, match="1"):
        compare({"a": evaluation([1.0, 2.0], [1, 2]), "b": evaluation([1.0, 2.0], [2, 3])}, metrics=["ndcg@10"])


def test_a_metric_that_users_do_not_have_is_refused():
    with pytest.raises(SettingError, match=r"'gini_diversity@10'.*10"):
        compare({"a": evaluation([1.0, 2.0]), "b": evaluation([1.0, 2.0])}, metrics=["gini_diversity@10"])
