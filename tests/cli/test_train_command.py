"""`federank train` and `federank recommend`, from a first run to an interrupted one."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.commands import refused, told
from tests.worlds import shop_of, two_tastes

from federank.cli.options import SETTINGS, field_texts, settings_options
from federank.errors import ModelError
from federank.methods.fpl.settings import FPLSettings
from federank.methods.model_folder import load_model, load_split
from federank.methods.registry import method_names, recommender_class

QUICK = ("--factors", "4", "--epochs", "2", "--quiet")


@pytest.fixture
def shop(tmp_path):
    """A small file of people with two tastes."""
    return shop_of(tmp_path, two_tastes())


def test_a_trained_model_is_kept_with_its_split(shop, tmp_path):
    out = tmp_path / "run"
    answer = told("train", "fpl", "--data", shop, "--pi", "0.5", "--out", out, *QUICK)
    assert "20 rounds" not in answer
    assert "What was sent" in answer
    assert f"federank recommend {out} --user" in answer
    model, split = load_model(out), load_split(out)
    assert model.settings.pi == 0.5
    assert len(split.train) + len(split.test) == 160
    assert len(split.test) == 20
    assert len(json.loads(told("recommend", out, "--user", "3", "-n", "4", "--json"))) == 4


def test_every_published_configuration_has_a_name(shop, tmp_path):
    for preset, clients in (("sfpl", 1), ("sfpl+", 1), ("pfpl", 20), ("pfpl+", 20)):
        answer = told("train", "fpl", "--data", shop, "--preset", preset, "--out", tmp_path / preset, "--json", *QUICK)
        report = json.loads(answer)
        assert report["communication"]["downloads"] == clients * report["rounds"]
    override = told(
        "train", "fpl", "--data", shop, "--preset", "pfpl", "--triples", "3", "--out", tmp_path / "o", "--json", *QUICK
    )
    assert json.loads(override)["triples"] == 3 * 20 * json.loads(override)["rounds"]


def test_federank_is_fpl_as_its_equations_are_printed(shop, tmp_path):
    common = ["--data", shop, "--triples", "mean", "--pi", "0.5", *QUICK, "--out"]
    told("train", "federank", *common, tmp_path / "method")
    told("train", "fpl", "--preset", "federank", *common, tmp_path / "preset")
    told("train", "fpl", *common, tmp_path / "fpl")
    method, preset, fpl = (load_model(tmp_path / name).item_vectors.tobytes() for name in ("method", "preset", "fpl"))
    assert method == preset != fpl


@pytest.mark.parametrize("name", method_names())
def test_help_shows_at_most_ten_settings(name):
    options = settings_options(recommender_class(name).settings_type, name)
    assert len([option for option in options if option.section == SETTINGS]) <= 10


def test_each_setting_has_a_flag_with_its_own_words():
    shown = "".join(told("train", "fpl", "--help-all").split())
    for name, text in field_texts(FPLSettings).items():
        assert f"--{name.replace('_', '-')}" in shown
        assert "".join(text.split()) in shown


def test_training_holds_out_what_was_asked_for(shop, tmp_path):
    told("data", "split", shop, "--temporal", "0.25", "--out", tmp_path / "parts")
    told("train", "popular", "--split", tmp_path / "parts", "--out", tmp_path / "parts-run")
    assert len(load_split(tmp_path / "parts-run").test) == 40
    told("train", "popular", "--data", shop, "--split", "leave-last-out", "--out", tmp_path / "last")
    assert len(load_split(tmp_path / "last").test) == 20
    told("train", "popular", "--data", shop, "--split", "none", "--out", tmp_path / "all")
    assert len(load_model(tmp_path / "all").training) == 160
    with pytest.raises(ModelError):
        load_split(tmp_path / "all")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pi", "1.5"), "pi is 1.5"),
        (("--pi", "nowhere.csv"), "There is no file nowhere.csv"),
        (("--triples", "0"), "triples is 0"),
        (("--clients-per-round", "21"), "only 20 users can take part"),
        (("--factors", "0"), "factors is 0"),
        (("--learning-rate", "nan"), "learning_rate is nan"),
        (("--learning-rate", "-1"), "learning_rate is -1"),
        (("--split", "sideways"), "--split is 'sideways'"),
        (("--threads", "0"), "threads is 0"),
        (("--resume",), "no checkpoint"),
        (("--learning-rate", "1e20", "--triples", "5"), "stopped being finite"),
    ],
)
def test_bad_settings_are_one_sentence_and_nothing_is_written(shop, tmp_path, words, sentence):
    out = tmp_path / "out" / "run"
    assert sentence in str(refused("train", "fpl", "--data", shop, "--out", out, *QUICK, *words))
    assert not out.exists()


def test_an_earlier_model_is_not_replaced_unasked(shop, tmp_path):
    out = tmp_path / "run"
    told("train", "popular", "--data", shop, "--out", out)
    assert "--overwrite" in str(refused("train", "random", "--data", shop, "--out", out))
    assert load_model(out).name == "popular"
    told("train", "random", "--data", shop, "--out", out, "--overwrite")
    assert load_model(out).name == "random"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep me")
    assert "is not a model" in str(refused("train", "popular", "--data", shop, "--out", tmp_path / "notes"))


@pytest.mark.slow
def test_ctrl_c_keeps_the_run_and_resume_ends_where_it_would_have(tmp_path):
    # The product, but that it writes its checkpoint after every chunk, so that we see when it is training.
    eager = "import federank.simulation.training as t; t._CHECKPOINT_SECONDS = 0; from federank.cli import main; main()"
    words = ["train", "fpl", "--data", "city", "--quiet", "--epochs", "100", "--no-count"]
    words += ["--clients-per-round", "all", "--triples", "mean", "--out"]

    def finished(out, *more):
        command = [sys.executable, "-m", "federank", *words, out, *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert finished("whole").returncode == 0
    running = subprocess.Popen(
        [sys.executable, "-c", eager, *words, "cut"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while running.poll() is None and not (tmp_path / "cut.checkpoint").exists():
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, complaints = running.communicate()
    assert running.returncode == 130
    assert "--resume" in complaints
    assert not (tmp_path / "cut").exists()
    again = finished("cut")
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert finished("cut", "--resume").returncode == 0
    cut, whole = load_model(tmp_path / "cut"), load_model(tmp_path / "whole")
    np.testing.assert_array_equal(cut.item_vectors, whole.item_vectors)
    np.testing.assert_array_equal(cut.user_vectors, whole.user_vectors)
    assert not (tmp_path / "cut.checkpoint").exists()
