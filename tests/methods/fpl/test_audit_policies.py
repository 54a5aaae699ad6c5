"""What policies change for an attacker: fixed-subset sharing, shared profiles, decoys."""

import numpy as np
import pytest
from tests.worlds import two_tastes

from federank import FPL
from federank.audit.audit import audit_model
from federank.audit.scoring import Guess, judge_shares, shares_of, table_of
from federank.data.interactions import Categories
from federank.methods.fpl.attacks import _fit

SETTINGS = {"triples": 6, "factors": 4, "epochs": 40}


@pytest.fixture(scope="module")
def findings():
    data = two_tastes(people=40, items=60, seen=12)
    policies = {
        "history": {"sharing": "fixed-subset", "pi": 0.5, "basis": "history"},
        "shared": {"sharing": "fixed-subset", "pi": 0.5, "basis": "shared"},
        "randomized-response": {"sharing": "randomized-response", "pi": 0.5, "item_epsilon": 1.0},
    }
    return {name: audit_model(FPL(**SETTINGS, **policy).fit(data))[0][0] for name, policy in policies.items()}


def test_fixed_subset_sharing_discloses_its_share_and_no_more(findings):
    for name in ("history", "shared"):
        assert findings[name].disclosed_share == pytest.approx(0.5)
        assert findings[name].attacks["accumulation"]["precision"] == 1


def test_negatives_that_avoid_the_history_give_away_what_was_held_back(findings):
    assert findings["history"].attacks["absence"]["auc_held_back"] == pytest.approx(1)
    assert findings["history"].attacks["fused"]["auc_held_back"] == pytest.approx(1)


def test_negatives_outside_the_shared_profile_do_not(findings):
    assert findings["shared"].attacks["absence"]["auc_held_back"] == pytest.approx(0.5, abs=0.01)
    assert findings["shared"].best["auc_held_back"] < findings["history"].best["auc_held_back"]


def test_decoys_make_signs_wrong(findings):
    for name in ("sign", "accumulation"):
        assert findings["randomized-response"].attacks[name]["precision"] < 0.7


def test_the_attack_on_everything_does_not_lose_to_its_parts(findings):
    parts = ("popularity", "accumulation", "absence", "vector_recovery")
    for name in ("history", "shared"):
        attacks = findings[name].attacks
        assert attacks["fused"]["auc"] > max(attacks[part]["auc"] for part in parts) - 0.02


def test_shares_of_categories_are_compared_user_by_user():
    table = table_of(Categories.from_lists([["a"], ["a"], ["b"], ["b", "a"]]))
    np.testing.assert_allclose(shares_of(np.array([[True, False, True, False]]), table), [[0.5, 0.5]])
    right = Guess(np.array([[2.0, 1.0, 0.0, 0.0]], dtype=np.float32), np.array([2]))
    wrong = Guess(np.array([[0.0, 0.0, 2.0, 0.0]], dtype=np.float32), np.array([1]))
    history = [np.array([0, 1], dtype=np.int32)]
    assert judge_shares(right, history, table, 1) == [(0.0, pytest.approx(1.0))]
    assert judge_shares(wrong, history, table, 1) == [(1.0, pytest.approx(-1.0))]


def test_the_regression_finds_the_weights_that_made_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = (rng.random(20_000) < 1 / (1 + np.exp(-(0.5 + 1.0 * X[:, 0] - 2.0 * X[:, 1])))).astype(float)
    np.testing.assert_allclose(_fit(X, y), [0.5, 1.0, -2.0], atol=0.1)
