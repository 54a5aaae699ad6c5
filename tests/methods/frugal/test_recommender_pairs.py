"""Frugal with FPL's loss: few messages for its lifetime, anyone who asks; and all that a method of pairs can do."""

import os
import signal

import numpy as np
import pytest
from tests.worlds import two_tastes

from federank.audit.audit import audit_model
from federank.errors import SettingError
from federank.methods.frugal.recommender import Frugal
from federank.privacy.policy import Policy
from federank.simulation.options import TrainingOptions
from federank.simulation.training import Stopped

DATA = two_tastes()
SETTINGS = {"loss": "pairs", "messages": 30, "factors": 4}


def own_taste(model, n=4):
    return np.mean([int(found.item) % 2 == user % 2 for user in range(20) for found in model.recommend(user, n)])


def test_two_tastes_are_distinguished_with_thirty_messages_of_every_user():
    model = Frugal(**SETTINGS).fit(DATA)
    assert own_taste(model) == 1
    assert model.report["messages"] == model.report["rounds"] == 30
    assert model.communication()["uploads"] == 30 * DATA.n_users


def test_engines_recommend_the_same():
    settings = SETTINGS | {"messages": 6}
    one, other = (
        Frugal(**settings).fit(DATA, training_options=TrainingOptions(engine=name))
        for name in ("compiled", "reference")
    )
    np.testing.assert_allclose(one.item_vectors, other.item_vectors, atol=1e-4)
    np.testing.assert_array_equal(one.recommend().items, other.recommend().items)


def test_cohorts_take_turns_and_every_user_sends_their_messages():
    model = Frugal(loss="pairs", messages=3, cohorts=4, factors=4).fit(DATA)
    assert (model.report["rounds"], model.report["messages"]) == (12, 3)
    assert model.communication()["uploads"] == 3 * DATA.n_users


def test_no_user_sends_more_messages_than_they_allow():
    policies = [
        Policy(sharing="fixed-subset", pi=1.0, basis="shared", messages=user % 3) for user in range(DATA.n_users)
    ]
    model = Frugal(**SETTINGS).fit(DATA, policies=policies)
    assert model.report["messages"] == 2
    assert model.communication()["uploads"] == sum(policy.messages for policy in policies)
    assert len(model.recommend(0)) > 0  # who has no message left is still recommended to


def test_who_is_away_keeps_their_messages_for_later():
    model = Frugal(loss="pairs", messages=3, rounds=40, online=0.3, factors=4).fit(DATA)
    assert model.report["messages"] == 3
    assert model.communication()["uploads"] == 3 * DATA.n_users


def test_only_a_fixed_subset_share_of_each_history_is_used_outwards():
    model = Frugal(**SETTINGS, sharing="fixed-subset", pi=0.3).fit(DATA)
    shared_profile = model.recipe(DATA).shared_profile
    assert np.diff(shared_profile.starts).tolist() == [3] * DATA.n_users  # ceil(.3 x 8)
    # What leaves is three of eight items; a server that guesses all eight finds no more of them for sure.
    [whole], [fixed_subset] = audit_model(Frugal(**SETTINGS).fit(DATA))[0], audit_model(model)[0]
    assert fixed_subset.best["auc"] < whole.best["auc"]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'; it can be squares or pairs"),
        ({"loss": "pairs", "alpha": 1.0}, "alpha is 1.0, but it belongs to the loss squares"),
        ({"loss": "pairs", "server": "adam"}, "server is 'adam', but it belongs to the loss squares"),
        ({"item_pull": 3.0}, "item_pull is 3.0, but it belongs to the loss pairs"),
        ({"triples": 5}, "triples is 5, but it belongs to the loss pairs"),
        ({"loss": "pairs", "triples": "many"}, "triples is 'many'"),
        ({"loss": "pairs", "item_pull": -1.0}, "item_pull is -1.0"),
        ({"loss": "pairs", "learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"loss": "pairs", "messages": 0}, "messages is 0"),
        ({"loss": "pairs", "messages": 5, "rounds": 4}, "which takes 5 rounds, but rounds is 4"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings, complaint):
    with pytest.raises(SettingError, match=complaint):
        Frugal(**settings)


@pytest.mark.parametrize(
    ("settings", "policy", "complaint"),
    [
        ({"cohorts": 100}, None, "only 20 people can take part"),
        ({}, Policy(sharing="fixed-subset", pi=1.0, basis="shared", messages=0), "No one can take part"),
        ({}, Policy(sharing="all", pi=1.0, basis="history"), "tossed again for every message"),
    ],
)
def test_a_population_that_cannot_keep_the_guarantee_is_refused(settings, policy, complaint):
    policies = None if policy is None else [policy] * DATA.n_users
    with pytest.raises(SettingError, match=complaint):
        Frugal(**SETTINGS | settings).fit(DATA, policies=policies)


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(tmp_path):
    kept = tmp_path / "run.checkpoint"

    def stop(epoch):
        if epoch == 7:
            os.kill(os.getpid(), signal.SIGINT)

    whole = Frugal(**SETTINGS).fit(DATA)
    with pytest.raises(Stopped):
        Frugal(**SETTINGS).fit(DATA, training_options=TrainingOptions(checkpoint=kept, after_epoch=stop))
    resumed = Frugal(**SETTINGS).fit(DATA, training_options=TrainingOptions(checkpoint=kept, resume=True))
    np.testing.assert_array_equal(whole.item_vectors, resumed.item_vectors)
    np.testing.assert_array_equal(whole.home_vectors, resumed.home_vectors)
