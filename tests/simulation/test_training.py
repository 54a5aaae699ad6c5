"""Training: watched, stopped, resumed, and refused when it makes no sense."""

import os
import signal

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.worlds import federation, random_world

from federank.errors import Diverged, ModelError, SettingError
from federank.methods.fpl.recommender import FPL
from federank.simulation.options import TrainingOptions
from federank.simulation.training import Stopped, save_checkpoint, train

DATA = random_world()


def vectors(model):
    return model.item_vectors, model.item_biases, model.user_vectors


@pytest.mark.parametrize("server", ["plain", "adam"])
def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(server, tmp_path):
    settings = {"factors": 4, "pi": 0.5, "epochs": 6, "clients_per_round": 5, "server": server}
    kept = tmp_path / "run.checkpoint"

    def stop_in_the_third_epoch(epoch):
        if epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    whole = FPL(**settings).fit(DATA)
    with pytest.raises(Stopped):
        FPL(**settings).fit(
            DATA, training_options=TrainingOptions(checkpoint=kept, after_epoch=stop_in_the_third_epoch)
        )
    resumed, last = FPL(**settings), []
    how = TrainingOptions(checkpoint=kept, resume=True, after_epoch=lambda _: last.append(resumed.item_vectors.copy()))
    resumed.fit(DATA, training_options=how)
    np.testing.assert_array_equal(last[-1], whole.item_vectors)  # what is evaluated after an epoch is current
    for a, b in zip(vectors(whole), vectors(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_handler_of_ctrl_c_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    FPL(factors=4, epochs=1).fit(DATA)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_progress_tells_every_epoch_and_ends_at_the_last_round(engine):
    seen, epochs = [], []
    training_options = TrainingOptions(engine=engine, progress=seen.append, after_epoch=epochs.append)
    model = FPL(factors=4, epochs=3).fit(DATA, training_options=training_options)
    assert epochs == [1, 2, 3]
    assert {progress.epoch for progress in seen} == {1, 2, 3}
    assert seen[-1].round_number == seen[-1].rounds == model.report["rounds"] == 3 * len(DATA)
    assert all(progress.triples_per_second > 0 for progress in seen)


def test_a_checkpoint_of_another_run_is_not_resumed(tmp_path):
    kept = tmp_path / "run.checkpoint"
    established = federation(DATA)
    save_checkpoint(established, kept, "someone else's")
    with pytest.raises(ModelError):
        FPL(factors=4).fit(DATA, training_options=TrainingOptions(checkpoint=kept, resume=True))


@pytest.mark.parametrize("damage", ["missing", "garbage", "truncated", "foreign", "wrong shape", "not finite"])
def test_a_checkpoint_that_cannot_be_trusted_is_refused(tmp_path, damage):
    kept = tmp_path / "run.checkpoint"
    established = federation(DATA)
    save_checkpoint(established, kept, "run")
    if damage == "missing":
        kept.unlink()
    elif damage == "garbage":
        kept.write_bytes(b"not a checkpoint")
    elif damage == "truncated":
        kept.write_bytes(kept.read_bytes()[:-10])
    elif damage == "foreign":
        save_file({"item_vectors": np.zeros(3)}, kept)
    elif damage == "wrong shape":
        save_checkpoint(federation(random_world(items=20)), kept, "run")
    else:
        broken = federation(DATA)
        broken.item_vectors[0, 0] = np.nan
        save_checkpoint(broken, kept, "run")
    with pytest.raises(ModelError):
        train(established, 1, TrainingOptions(checkpoint=kept, resume=True), "run")
    assert established.round_number == 0


def test_a_run_that_diverges_says_where_and_why_and_leaves_the_last_good_state(tmp_path):
    kept = tmp_path / "run.checkpoint"
    established = federation(DATA, learning_rate=1e18, triples=3)
    save_checkpoint(established, kept, "run")
    good = kept.read_bytes()
    with pytest.raises(Diverged, match=r"1.*learning_rate.*18"):
        train(established, 5, TrainingOptions(checkpoint=kept), "run")
    assert kept.read_bytes() == good


def test_a_large_learning_rate_does_not_overflow():
    model = FPL(factors=4, learning_rate=0.5, epochs=20, triples="mean").fit(DATA)
    assert all(np.isfinite(table).all() for table in vectors(model))


@pytest.mark.parametrize(
    ("training_options", "complaint"),
    [
        ({"engine": "steam"}, "engine is 'steam'"),
        ({"threads": 0}, "threads is 0"),
        ({"resume": True}, "resume needs a checkpoint"),
    ],
)
def test_invalid_training_options_are_refused(training_options, complaint):
    with pytest.raises(SettingError, match=complaint):
        FPL(factors=4).fit(DATA, training_options=TrainingOptions(**training_options))
