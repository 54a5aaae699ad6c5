"""Errors of predicted ratings, against scikit-learn; MD and STDR worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.errors import DataError, SettingError
from federank.evaluation.metrics import mae, mean_difference, rmse, standard_deviation_range

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
