"""Frugal with noise as a method: it learns, tells its guarantee, can be stopped, kept, opened and evaluated."""

import json
import os
import signal

import numpy as np
import pytest
from click.testing import CliRunner

import federank as fr
from federank.cli import federank
from federank.methods.frugal.recommender import Frugal
from federank.methods.model_folder import load_model
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


def test_what_is_kept_is_opened_evaluated_and_takes_in_a_new_user(tmp_path):
    out = tmp_path / "model"
    command = ["train", "frugal", "--data", "city", "--min-interactions", "20", "--epsilon", "4", "--out", str(out)]
    trained = CliRunner().invoke(federank, [*command, "--quiet"])
    assert trained.exit_code == 0, trained.output
    assert "epsilon 4" in trained.output
    told = json.loads(CliRunner().invoke(federank, ["evaluate", str(out), "--json"]).output)
    assert told["epsilon"] == pytest.approx(4, abs=0.01)
    assert (told["delta"], told["messages"]) == (1e-6, 5)
    assert "epsilon 4" in CliRunner().invoke(federank, ["evaluate", str(out)]).output
    model = load_model(out)
    assert len(fr.enrol(model, history=[3, 42, 118]).recommend(3)) == 3
