"""Everyone's shared profiles: row by row what each device would find for itself."""

import numpy as np
import pytest
from tests.worlds import random_world

from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.privacy.policy import Policy, shared_profile
from federank.privacy.population import Choices, shared_profile_of, shared_profiles_of_all

DATA = random_world(users=40, items=60, interactions=500)
NEVER = frozenset({3, 4, 5, 17, 40})
KINDS = [
    Policy(sharing="all", pi=0.3, basis="history"),
    Policy(sharing="all", pi=0.3, basis="history", budget=4, never_items=NEVER),
    Policy(sharing="all", pi=0.6, basis="shared", budget=3),
    Policy(sharing="fixed-subset", pi=0.3, basis="history"),
    Policy(sharing="fixed-subset", pi=0.5, basis="history", never_items=NEVER),
    Policy(sharing="fixed-subset", pi=0.9, basis="shared", budget=2),
    Policy(sharing="fixed-subset", pi=0.0, basis="shared"),
    Policy(sharing="randomized-response", pi=0.5, item_epsilon=1.0, basis="shared"),
    Policy(sharing="randomized-response", pi=0.8, item_epsilon=3.0, basis="shared", never_items=NEVER),
    Policy(sharing="randomized-response", pi=0.0, item_epsilon=3.0, basis="shared"),
]


def shared_profiles(policies, seed=5):
    return shared_profiles_of_all(Choices.of_users(policies), seed, DATA.profiles, DATA.n_items)


def test_a_population_of_choices_is_what_each_client_finds_for_itself():
    policies = [KINDS[user % len(KINDS)] for user in range(DATA.n_users)]
    everyone = shared_profiles(policies)
    for user, policy in enumerate(policies):
        alone = shared_profile(policy, 5, user, DATA.profiles.of(user), DATA.n_items)
        row = shared_profile_of(everyone, DATA.profiles, user)
        for one, other in zip(row, alone, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("policy", KINDS, ids=str)
def test_every_user_alike_is_what_each_client_finds_for_itself(policy):
    everyone = shared_profiles([policy] * DATA.n_users)
    for user in range(DATA.n_users):
        alone = shared_profile(policy, 5, user, DATA.profiles.of(user), DATA.n_items)
        for one, other in zip(shared_profile_of(everyone, DATA.profiles, user), alone, strict=True):
            np.testing.assert_array_equal(one, other)


def test_who_has_paused_takes_part_with_nothing():
    paused = Policy(sharing="all", pi=1.0, basis="history", paused=True)
    everyone = shared_profiles([paused, *[KINDS[0]] * (DATA.n_users - 1)])
    assert len(shared_profile_of(everyone, DATA.profiles, 0).profile) == 0
    np.testing.assert_array_equal(shared_profile_of(everyone, DATA.profiles, 1).profile, DATA.profiles.of(1))


def test_each_has_a_pi_of_their_own():
    pi = np.linspace(0, 0.9, DATA.n_users)
    choices = Choices.alike(KINDS[3], pi)
    everyone = shared_profiles_of_all(choices, 5, DATA.profiles, DATA.n_items)
    for user in range(DATA.n_users):
        sent = shared_profile_of(everyone, DATA.profiles, user).allowed.sum()
        assert sent == np.ceil(pi[user] * len(DATA.profiles.of(user)) - 1e-9)
        assert choices.of(user).pi == pi[user]
    with pytest.raises(SettingError, match="1"):
        Choices.alike(KINDS[7], np.ones(3))


def test_home_vectors_are_for_those_whose_rounds_do_not_follow_their_history():
    paused = Policy(sharing="fixed-subset", pi=1.0, basis="history", paused=True)
    assert Choices.of_users([KINDS[0], KINDS[5], KINDS[7], paused]).at_home.tolist() == [False, True, True, True]


def test_answers_follow_ones_own_history_alone():
    """The next user's first item is a later one: a reader that runs on takes it for one's own."""
    data = Interactions.from_columns([0, 1, 1, 2], [0, 1, 3, 2])
    for seed in range(20):
        everyone = shared_profiles_of_all(Choices.of_users([KINDS[7]] * 3), seed, data.profiles, data.n_items)
        for user in range(3):
            alone = shared_profile(KINDS[7], seed, user, data.profiles.of(user), data.n_items)
            for one, other in zip(shared_profile_of(everyone, data.profiles, user), alone, strict=True):
                np.testing.assert_array_equal(one, other)
