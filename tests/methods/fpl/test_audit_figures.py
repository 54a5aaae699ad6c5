"""What the published protocols reveal on real data: the figures of independent measurements, on the engine's traffic.

Data as the papers prepare them: users with 20 interactions or more, each one's newest fifth held out. Everyone trains,
and where that says the same a sample of them is attacked, drawn with the seed.
"""

import pytest

from federank import FPL, load
from federank.audit.audit import audit_training
from federank.data.splits import split_temporal

pytestmark = pytest.mark.slow

ALL_USERS, SOME = 10_000, 300


def findings_by_epoch(path, people=SOME, **settings):
    train = split_temporal(load(str(path)).keep_users(20)).train
    findings, _ = audit_training(FPL(**settings), train, people=people, per_epoch=settings["epochs"] < 20)
    return {found.epoch: found for found in findings}


@pytest.fixture(scope="module")
def movielens(real_data):
    return real_data / "ml-100k" / "ml-100k.zip"


@pytest.fixture(scope="module")
def amazon(real_data):
    return real_data / "amazon-digital-music" / "AmazonDigitalMusic.tsv.gz"


def test_at_pi_a_tenth_most_positives_are_sent_with_one_pair_a_round(amazon):
    found = findings_by_epoch(amazon, pi=0.1, triples=1, epochs=20)[20]
    assert found.disclosed_share == pytest.approx(0.886, abs=0.01)


def test_at_pi_a_tenth_all_positives_are_sent_with_33_pairs_a_round(amazon):
    found = findings_by_epoch(amazon, pi=0.1, triples="mean", epochs=20)[20]
    assert found.disclosed_share == pytest.approx(0.9999, abs=0.0005)


def test_at_pi_zero_absence_gives_the_complete_history_away_within_five_epochs(movielens):
    found = findings_by_epoch(movielens, pi=0.0, triples="mean", epochs=5)
    first, last = found[1].attacks["absence"], found[5].attacks["absence"]
    assert first["precision"] == pytest.approx(0.76, abs=0.02)
    assert last["precision"] == pytest.approx(1.0, abs=0.005)
    assert first["recall"] == last["recall"] == 1
    assert found[5].disclosed_share == 0
    assert found[5].attacks["fused"]["auc"] == pytest.approx(1.0, abs=0.001)
    assert found[2].attacks["vector_recovery"]["auc"] == pytest.approx(0.834, abs=0.02)
    assert found[2].attacks["popularity"]["auc"] == pytest.approx(0.72, abs=0.02)


@pytest.mark.parametrize(
    ("triples", "epochs", "vector", "popularity"), [(1, 20, 0.936, 0.86), ("mean", 2, 0.910, 0.15)]
)
def test_one_negative_row_tells_more_than_popularity(movielens, triples, epochs, vector, popularity):
    found = findings_by_epoch(movielens, pi=0.1, triples=triples, epochs=epochs)[epochs]
    assert found.attacks["vector_recovery"]["auc"] == pytest.approx(vector, abs=0.02)
    assert found.attacks["popularity"]["auc"] == pytest.approx(popularity, abs=0.02)


def test_the_pull_of_negatives_towards_zero_is_what_hides_the_signs_of_vectors(movielens):
    asked = {"pi": 0.3, "triples": "mean", "epochs": 5}
    as_published = findings_by_epoch(movielens, **asked)[5].attacks["vector_signs"]
    without_pull = findings_by_epoch(movielens, **asked, negative_regulariser=0.0)[5].attacks["vector_signs"]
    assert as_published["precision"] < 0.1
    assert without_pull["precision"] == pytest.approx(1.0, abs=0.001)
    assert without_pull["recall"] == pytest.approx(0.41, abs=0.03)
