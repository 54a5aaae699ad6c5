"""Frugal with noise as a method: it learns, tells its guarantee, can be stopped, kept, opened and evaluated."""

import os
import signal

import numpy as np
import pytest

import federank as fr
from federank.methods.frugal.recommender import Frugal
from federank.simulation.options import TrainingOptions
from federank.simulation.training import Stopped

pytestmark = pytest.mark.slow

DATA = fr.city(400, 60, 8_000, seed=3)
SPLIT = fr.split_temporal(DATA, test=0.2)


def test_the_report_tells_the_guarantee_and_the_messages():
    model = Frugal(min_support=1, epsilon=4.0).fit(SPLIT.train)
    assert model.report["epsilon"] == pytest.approx(4, abs=0.01)
    assert model.report["delta"] == 1e-6
    assert model.report["messages"] == 5
    assert Frugal(min_support=1, sigma=0.0).fit(SPLIT.train).report["epsilon"] is None


def test_little_noise_costs_little_and_much_noise_costs_much():
    found = {
        sigma: fr.evaluate(Frugal(min_support=1, sigma=sigma, factors=16).fit(SPLIT.train), SPLIT, at=10).means[
            "precision@10"
        ]
        for sigma in (0.0, 0.05, 40.0)
    }
    assert found[0.05] > 0.9 * found[0.0]
    assert found[40.0] < 0.7 * found[0.0]


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(tmp_path):
    kept = tmp_path / "run.checkpoint"

    def stop(epoch):
        if epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    whole = Frugal(min_support=1, epsilon=8.0).fit(SPLIT.train)
    with pytest.raises(Stopped):
        Frugal(min_support=1, epsilon=8.0).fit(
            SPLIT.train, training_options=TrainingOptions(checkpoint=kept, after_epoch=stop)
        )
    resumed = Frugal(min_support=1, epsilon=8.0).fit(
        SPLIT.train, training_options=TrainingOptions(checkpoint=kept, resume=True)
    )
    np.testing.assert_array_equal(whole.item_vectors, resumed.item_vectors)
