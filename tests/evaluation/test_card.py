"""A model card says what is in the model's folder, and no more."""

from click.testing import CliRunner
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes

import federank as fr
from federank.cli import federank
from federank.evaluation.card import model_card

SPLIT = fr.split_random(two_tastes(), 0.2)


def test_a_card_tells_data_settings_training_metrics_and_privacy(tmp_path):
    model = fr.FPL(factors=3, epochs=2, pi=0.4).fit(SPLIT.train)
    model.save(tmp_path / "model", SPLIT)
    card = model_card(tmp_path / "model", at=5)
    assert f"| Learnt from | {len(SPLIT.train):,} interactions" in card
    assert f"| Fingerprint | {model.training.fingerprint} |" in card
    assert "| pi | **0.4** (usually 1.0) |" in card
    assert f"| precision@5 | {fr.evaluate(model, SPLIT, at=5).means['precision@5']:.5f} |" in card
    assert f"`federank audit {tmp_path / 'model'}`" in card
    assert "uploads" in card


def test_a_centralised_model_says_where_the_histories_lay(tmp_path):
    fr.MostPopular().fit(SPLIT.train).save(tmp_path / "model")
    card = model_card(tmp_path / "model")
    assert "federank audit" not in card


def test_a_model_of_ratings_tells_its_errors(tmp_path):
    split = fr.split_random(two_opinions(), 0.2)
    model = fr.Biases().fit(split.train)
    model.save(tmp_path / "model", split)
    assert f"| rmse | {fr.prediction_errors(model, split.test).rmse:.5f} |" in model_card(tmp_path / "model")


def test_evaluate_writes_a_card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fr.MostPopular().fit(SPLIT.train).save("model", SPLIT)
    answer = CliRunner().invoke(federank, ["evaluate", "model", "--card", "card.md"])
    assert answer.exit_code == 0
    assert (tmp_path / "card.md").read_text() == model_card("model")
