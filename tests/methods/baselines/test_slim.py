"""SLIM's weights: those of scikit-learn's elastic net without negative weights, item by item."""

import numpy as np
import pytest
from tests.worlds import random_world

from federank.errors import ModelError, SettingError
from federank.methods.baselines.slim import SLIM, items_together, weights_of

WORLD = random_world(users=40, items=15, seed=3)


@pytest.mark.parametrize(("l1", "l2"), [(0.5, 2.0), (2.0, 0.5), (0.1, 20.0)])
def test_weights_are_those_of_an_elastic_net(l1, l2):
    from sklearn.linear_model import ElasticNet

    histories = WORLD.matrix().toarray().astype(float)
    n = len(histories)
    solved = weights_of(items_together(WORLD.matrix()), range(WORLD.n_items), l1, l2, 1e-9)
    for item, (others, values) in enumerate(solved):
        without = histories.copy()
        without[:, item] = 0
        net = ElasticNet(
            alpha=(l1 + l2) / n,
            l1_ratio=l1 / (l1 + l2),
            positive=True,
            fit_intercept=False,
            tol=1e-12,
            max_iter=100_000,
        ).fit(without, histories[:, item])
        ours = np.zeros(WORLD.n_items)
        ours[others] = values
        np.testing.assert_allclose(ours, net.coef_, atol=1e-5)


def test_threads_change_nothing_and_more_l1_leaves_fewer_weights():
    from federank.simulation.options import TrainingOptions

    one, two = SLIM(l1=0.5).fit(WORLD), SLIM(l1=0.5).fit(WORLD, training_options=TrainingOptions(threads=2))
    np.testing.assert_array_equal(one.weights.toarray(), two.weights.toarray())
    assert 0 < SLIM(l1=3.0, l2=1.0).fit(WORLD).weights.nnz < SLIM(l1=0.0, l2=1.0).fit(WORLD).weights.nnz


def test_what_cannot_be_is_refused():
    with pytest.raises(SettingError, match="l1 is -1"):
        SLIM(l1=-1.0)
    model = SLIM().fit(WORLD)
    held = model._shared_arrays()
    with pytest.raises(ModelError, match="15"):
        model._restore(held | {"starts": held["starts"][:-1]}, {})
