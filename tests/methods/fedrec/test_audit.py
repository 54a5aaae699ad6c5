"""The audit of runs that learn ratings: which items someone has rated, and how."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.rated_worlds import rated_world, rating_federation

from federank import PMF, SVDPlusPlus
from federank.audit.audit import audit_training
from federank.cli import federank
from federank.errors import SettingError
from federank.methods.fedrec.audit import (
    RatingObserver,
    audit_model,
    two_answers,
    two_steps,
)
from federank.methods.fedrec.simulation import choose_raters, play_reference

pytestmark = pytest.mark.slow

ALL_USERS = np.arange(12, dtype=np.int32)
SETTINGS = {"rho": 1, "iterations": 12, "factors": 4, "initial_range": 0.5}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("pmf", {"rho": 1, "filling": "average"}),
        ("pmf", {"rho": 0}),
        ("pmf", {"rho": 1, "style": "batch"}),
        ("pmf", {"rho": 1, "sampling": "fixed"}),
        ("svdpp", {"rho": 1}),
    ],
)
def test_the_observer_counts_what_the_updates_of_the_reference_engine_name(method, settings):
    data = rated_world()
    established = rating_federation(data, method, **settings)
    recipe, rounds = established.recipe, 3 * established.rounds_per_epoch
    expected, updates = np.zeros((12, data.n_items), dtype=np.uint16), np.zeros(12, dtype=np.int64)
    played = rating_federation(data, method, **settings)
    for number in range(rounds):
        clients, broadcast = choose_raters(recipe, number), played.broadcast
        before = played.user_vectors.copy(), played.participations.copy()
        for user in clients:
            expected[user, played.update(user, broadcast).items] += 1
            updates[user] += 1
        played.user_vectors[:], played.participations[:] = before
        play_reference(played, 1)
    observer = RatingObserver(established, ALL_USERS)
    observer.watch_until(rounds // 2)
    observer.watch_until(rounds)
    np.testing.assert_array_equal(observer.times_named, expected)
    np.testing.assert_array_equal(observer.updates, updates)


def test_samples_drawn_again_are_seen_through_and_samples_for_a_lifetime_are_not():
    data = rated_world()
    found = {}
    for sampling in ("fresh", "fixed"):
        [findings], _ = audit_training(PMF(style="batch", sampling=sampling, **SETTINGS), data)
        found[sampling] = findings.attacks
    assert found["fresh"]["intersection"]["recall"] == found["fixed"]["intersection"]["recall"] == 1
    assert found["fresh"]["intersection"]["auc"] > 0.95
    assert found["fixed"]["intersection"]["precision"] < 0.75
    assert found["fixed"]["intersection"]["precision"] == pytest.approx(found["fixed"]["presence"]["precision"])


def test_two_updates_of_batch_style_give_every_rating_exactly():
    data = rated_world(users=12, items=40, ratings=260)
    settings = {"style": "batch", "rho": 0, "iterations": 12}
    established = rating_federation(data, **settings)
    answers = two_answers(established, ALL_USERS, 3, 12)
    exact = []
    for person, (first, second) in answers.items():
        guess = two_steps(first, second, 0.001, 1, 5)
        np.testing.assert_array_equal(guess.items, data.profiles.of(person))
        truth = data.ratings[data.profiles.starts[person] : data.profiles.starts[person + 1]]
        exact.append(np.mean(np.rint(guess.ratings) == truth))
    assert np.mean(exact) > 0.95


def test_the_second_rows_of_svdpp_name_what_is_rated_and_nothing_else():
    [findings], _ = audit_training(SVDPlusPlus(**SETTINGS), rated_world(), sees="anonymous")
    assert list(findings.attacks) == ["popularity", "presence", "second_rows"]
    assert findings.attacks["second_rows"]["precision"] == findings.attacks["second_rows"]["recall"] == 1
    assert findings.attacks["presence"]["precision"] < 1
    assert findings.ratings is None


def test_what_was_learnt_is_audited_the_same_from_its_folder(tmp_path):
    model = PMF(**SETTINGS).fit(rated_world())
    model.save(tmp_path / "run")
    answer = CliRunner().invoke(federank, ["audit", str(tmp_path / "run"), "--json"], catch_exceptions=False)
    from_folder = json.loads(answer.stdout)
    [findings], _ = audit_model(model)
    assert from_folder["attacks"] == findings.attacks
    assert 0 <= from_folder["ratings"]["two_steps"]["exact"] <= 1


def test_what_a_rating_audit_cannot_do_is_an_error():
    data = rated_world()
    with pytest.raises(SettingError):
        audit_training(PMF(**SETTINGS), data, sees="sums")
    with pytest.raises(SettingError, match="Without a federation"):
        audit_training(PMF(**(SETTINGS | {"rho": 0, "federated": False})), data)
    with pytest.raises(SettingError, match="people is 0"):
        audit_training(PMF(**SETTINGS), data, people=0)
