import numpy as np
import pytest
from tests.rated_worlds import two_opinions

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import DataError
from federank.evaluation.evaluate import over_folds, prediction_errors
from federank.evaluation.metrics import mean_difference, standard_deviation_range

QUICK = {"factors": 4, "initial_range": 0.5, "learning_rate": 0.05, "decay": 0.98}


def test_fallbacks_count_in_the_errors_and_are_reported():
    data = Interactions.from_columns([1, 1, 1, 2, 3], [1, 2, 3, 1, 9], [4, 2, 5, 3, 1])
    split = fr.split_given(data.take([0, 1, 3]), data.take([2, 4]))
    found = prediction_errors(fr.PMF(**QUICK).fit(split.train), split.test)
    # User 1's mean is 3, and item 3 was rated 5; user 3 is new, all training ratings' mean is 3, and the rating 1.
    assert (found.mae, found.rmse) == (pytest.approx(2), pytest.approx(2))
    assert (found.ratings, found.unrated_items, found.unknown_users) == (2, 1, 1)
    assert len(found.notes) == 2


def test_a_test_part_without_ratings_is_refused():
    data = two_opinions()
    bare = Interactions.from_columns(data.users, data.items)
    with pytest.raises(DataError):
        prediction_errors(fr.PMF(iterations=1).fit(data), bare)


def test_deviations_over_folds_are_those_of_a_population():
    assert over_folds([{"mae": 1.0, "users": 3}, {"mae": 3.0, "users": 3}]) == {
        "mae": 2.0,
        "users": 3.0,
        "mae_std": 1.0,
        "users_std": 0.0,
    }


def test_a_figure_that_a_fold_lacks_is_left_out():
    assert over_folds([{"mae": 1.0, "bias": 2.0}, {"mae": 1.0}]) == {"mae": 1.0, "mae_std": 0.0}


PUBLISHED = {  # MAE and RMSE with rho = 0 on MovieLens 100K (FedRec, 2020, Table 2)
    "batch PMF": (fr.PMF, {"style": "batch"}, 0.7418, 0.9424),
    "stochastic PMF": (fr.PMF, {"style": "stochastic"}, 0.7498, 0.9553),
    "SVD++": (fr.SVDPlusPlus, {}, 0.7221, 0.9233),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_errors_come_out_federated_and_not(name, real_data):
    method, settings, mae, rmse = PUBLISHED[name]
    splits = fr.split_folds(fr.load(real_data / "ml-100k" / "ml-100k.zip"), folds=5, seed=1)
    errors = {
        federated: np.array(
            [prediction_errors(method(federated=federated, **settings).fit(s.train), s.test)[:2] for s in splits[:3]]
        )
        for federated in (True, False)
    }
    for found in errors.values():
        assert found.mean(axis=0) == pytest.approx([mae, rmse], abs=0.006)
    for column in (0, 1):
        pair = errors[True][:, column], errors[False][:, column]
        assert mean_difference(*pair) < standard_deviation_range(*pair)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filling", "mae", "rmse"),
    [({"filling": "average", "rho": 3}, 0.7853, 0.9915), ({"rho": 3, "t_predict": 5, "t_local": 10}, 0.7435, 0.9428)],
    ids=["average", "hybrid"],
)
def test_the_published_errors_come_out_with_virtual_ratings(filling, mae, rmse, real_data):
    splits = fr.split_folds(fr.load(real_data / "ml-100k" / "ml-100k.zip"), folds=5, seed=1)
    errors = [prediction_errors(fr.PMF(**filling).fit(split.train), split.test)[:2] for split in splits[:2]]
    assert np.mean(errors, axis=0) == pytest.approx([mae, rmse], abs=0.006)
