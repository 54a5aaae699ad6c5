"""The audit of a run, and its command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.worlds import two_tastes

from federank import BPR, FPL, MostPopular
from federank.audit.audit import audit_model, audit_training
from federank.audit.scoring import BASELINE
from federank.cli import federank
from federank.errors import ModelError, SettingError

SETTINGS = {"pi": 0.3, "triples": 2, "epochs": 3, "factors": 4}


@pytest.fixture
def data():
    return two_tastes()


def told(*arguments):
    return CliRunner().invoke(federank, [str(part) for part in arguments], catch_exceptions=False).stdout


def test_a_kept_model_is_audited_with_the_same_result_as_its_training(data, tmp_path):
    watched, _ = audit_training(FPL(**SETTINGS), data)
    FPL(**SETTINGS).fit(data).save(tmp_path / "run")
    from_folder = json.loads(told("audit", tmp_path / "run", "--json"))
    assert from_folder["disclosed_share"] == watched[0].disclosed_share
    assert from_folder["attacks"] == watched[0].attacks


def test_watching_changes_nothing_of_the_training(data):
    watched, alone = FPL(**SETTINGS), FPL(**SETTINGS).fit(data)
    audit_training(watched, data, per_epoch=True)
    np.testing.assert_array_equal(watched.item_vectors, alone.item_vectors)
    np.testing.assert_array_equal(watched.user_vectors, alone.user_vectors)


def test_what_has_been_disclosed_never_becomes_less(data):
    found, _ = audit_training(FPL(**SETTINGS), data, per_epoch=True)
    assert [moment.epoch for moment in found] == [1, 2, 3]
    shares = [moment.disclosed_share for moment in found]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]
    for moment in found:
        assert moment.attacks["accumulation"]["recall"] == pytest.approx(moment.disclosed_share)


def test_the_gain_is_counted_from_popularity_or_from_chance_if_that_is_better(data):
    found, _ = audit_training(FPL(**SETTINGS), data)
    known = found[0].attacks[BASELINE]["auc"]
    for marks in found[0].attacks.values():
        assert marks["gain"] == pytest.approx(marks["auc"] - max(known, 0.5))


def test_nothing_is_held_back_when_everything_has_been_sent(data):
    found, _ = audit_training(FPL(**(SETTINGS | {"pi": 1.0, "triples": 60})), data)
    assert found[0].disclosed_share == 1
    assert {marks["auc_held_back"] for marks in found[0].attacks.values()} == {None}


def test_a_sample_of_users_is_drawn_with_the_seed(data):
    one, about = audit_training(FPL(**SETTINGS), data, people=5)
    other, _ = audit_training(FPL(**SETTINGS), data, people=5)
    assert about["people_followed"] == about["people_attacked"] == 5
    assert one == other
    with pytest.raises(SettingError, match="people is 0"):
        audit_model(FPL(**SETTINGS).fit(data), people=0)


def test_what_cannot_be_audited_is_refused(data, tmp_path):
    FPL(**SETTINGS).fit(data).save(tmp_path / "fpl")
    BPR(epochs=1).fit(data).save(tmp_path / "bpr")
    for arguments, kind, words in (
        (["bpr"], SettingError, "bpr"),
        ([tmp_path / "bpr"], ModelError, "bpr"),
        ([tmp_path / "nothing"], ModelError, "is not a model"),
    ):
        with pytest.raises(kind, match=words):
            told("audit", *arguments)


def test_a_kept_model_can_be_audited_epoch_by_epoch(data, tmp_path):
    FPL(**SETTINGS).fit(data).save(tmp_path / "run")
    found = json.loads(told("audit", tmp_path / "run", "--json", "--per-epoch"))
    assert [moment["epoch"] for moment in found["per_epoch"]] == [1, 2, 3]
    assert found["attacks"] == json.loads(told("audit", tmp_path / "run", "--json"))["attacks"]


def test_a_method_that_sends_nothing_is_not_audited(data):
    with pytest.raises(ModelError):
        audit_model(MostPopular().fit(data))
