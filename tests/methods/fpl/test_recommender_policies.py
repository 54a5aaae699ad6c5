"""FPL where people choose for themselves: home vectors, files of policies, and what a stored model keeps of them."""

import numpy as np
import pytest
from tests.worlds import federation, model_of, random_world, two_tastes

from federank.errors import ModelError, SettingError
from federank.federation.method import Client
from federank.methods.fpl.method import HOME_STEPS
from federank.methods.fpl.recommender import FPL
from federank.methods.fpl.simulation import home_vectors
from federank.methods.model_folder import load_model
from federank.privacy.policy import Policy
from federank.simulation.options import TrainingOptions

TASTES = two_tastes()
PUBLISHED = Policy(sharing="all", pi=1.0, basis="history")
NOTHING = Policy(sharing="fixed-subset", pi=0.0, basis="shared")
PAUSED = Policy(sharing="all", pi=1.0, basis="history", paused=True)
DENIABLE = Policy(sharing="randomized-response", pi=0.9, item_epsilon=4.0, basis="shared")


def within_taste(model, users):
    table = model.recommend(users, n=4)
    return np.mean(model.item_ids[table.items] % 2 == (table.users % 2)[:, None])


def test_home_vectors_are_those_of_one_client_at_a_time():
    data = random_world()
    established = federation(data, seed=3)
    people = np.array([0, 5, 7], dtype=np.int32)
    broadcast = model_of(established)
    everyone = home_vectors(established.method, broadcast, data.profiles, people, HOME_STEPS)
    for person, vector in zip(people, everyone, strict=True):
        alone = established.method.fold_in(Client(3, int(person), 0, data.profiles.of(person)), broadcast)
        np.testing.assert_allclose(vector, alone, atol=1e-5)
    assert np.abs(everyone).min() > 0


def test_who_shares_nothing_is_still_recommended_their_taste():
    policies = [NOTHING if user < 6 else PUBLISHED for user in range(20)]
    model = FPL(factors=4, epochs=30).fit(TASTES, policies=policies)
    assert within_taste(model, list(range(6))) > 0.9
    before = federation(TASTES).user_vectors[:6, :4]
    np.testing.assert_array_equal(model.user_vectors[:6], before)  # no round has moved them


@pytest.mark.parametrize("policy", [PAUSED, DENIABLE], ids=["paused", "randomized-response"])
def test_recommendations_follow_the_complete_history_even_where_rounds_do_not(policy):
    policies = [policy if user < 6 else PUBLISHED for user in range(20)]
    model = FPL(factors=4, epochs=30).fit(TASTES, policies=policies)
    assert within_taste(model, list(range(6))) > 0.8  # half of it would be chance
    np.testing.assert_array_equal(model.home_vectors[6:], model.user_vectors[6:])


def test_a_stored_model_keeps_policies_and_home_vectors_to_the_clients(tmp_path):
    never = Policy(sharing="fixed-subset", pi=0.25, basis="shared", never_items=frozenset({3, 4}), budget=7)
    policies = [(NOTHING, never, PAUSED, DENIABLE, PUBLISHED)[user % 5] for user in range(20)]
    model = FPL(factors=4, epochs=3).fit(TASTES, policies=policies)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert [again.choices.of(user) for user in range(20)] == policies
    np.testing.assert_array_equal(again.recommend(n=5).items, model.recommend(n=5).items)
    for one, other in zip(
        again.recipe(again.training).shared_profile, model.recipe(model.training).shared_profile, strict=True
    ):
        np.testing.assert_array_equal(one, other)
    told = (tmp_path / "model" / "model.json").read_text()
    assert "never" not in told
    assert again._shared_arrays().keys() == {"item_vectors", "item_biases"}


@pytest.mark.parametrize("lost", ["home_vectors", "policies", "policy_of_user"])
def test_a_model_whose_policies_are_not_complete_is_refused(lost):
    model = FPL(factors=4, epochs=1).fit(TASTES, policies=[NOTHING, *[PUBLISHED] * 19])
    private = {name: array for name, array in model._private_arrays().items() if name != lost}
    if lost == "policy_of_user":
        private[lost] = np.full(20, 9, dtype=np.int32)
    with pytest.raises(ModelError):
        model._restore(model._shared_arrays(), private)


def test_policies_come_from_a_file(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text('[default]\nsharing = "fixed-subset"\npi = 0.5\n[people.3]\npaused = true\n')
    model = FPL(factors=4, epochs=2, policies=str(path)).fit(TASTES)
    same = FPL(factors=4, epochs=2, sharing="fixed-subset", pi=0.5)
    policies = [Policy(sharing="fixed-subset", pi=0.5, basis="shared", paused=user == 3) for user in range(20)]
    same.fit(TASTES, policies=policies)
    np.testing.assert_array_equal(model.item_vectors, same.item_vectors)
    assert model.report["skipped_users"] == 1


def test_a_checkpoint_of_other_choices_is_not_resumed(tmp_path):
    from federank.simulation.training import Stopped

    kept = tmp_path / "kept"

    def stop(_):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        FPL(factors=4, epochs=5).fit(
            TASTES,
            policies=[NOTHING, *[PUBLISHED] * 19],
            training_options=TrainingOptions(checkpoint=kept, progress=stop),
        )
    resumed = TrainingOptions(checkpoint=kept, resume=True)
    with pytest.raises(ModelError):
        FPL(factors=4, epochs=5).fit(TASTES, policies=[PAUSED, *[PUBLISHED] * 19], training_options=resumed)
    FPL(factors=4, epochs=5).fit(TASTES, policies=[NOTHING, *[PUBLISHED] * 19], training_options=resumed)


def test_a_policy_for_each_user_is_needed_and_once(tmp_path):
    with pytest.raises(SettingError, match="20"):
        FPL(factors=4, epochs=1).fit(TASTES, policies=[PUBLISHED])
    with pytest.raises(SettingError, match="given twice"):
        FPL(factors=4, epochs=1, policies=str(tmp_path)).fit(TASTES, policies=[PUBLISHED] * 20)
