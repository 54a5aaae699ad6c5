"""Federations of few messages on tiny worlds."""

import numpy as np

from federank.data.interactions import Interactions
from federank.methods.frugal.protocol import FrugalPrivate
from federank.methods.frugal.settings import ImplicitSettings, frugal_recipe
from federank.methods.frugal.simulation import FrugalFederation
from federank.privacy.population import AS_HISTORIES_ARE, Choices, shared_profile_of, shared_profiles_of_all
from tests.worlds import random_world


def some_people(seed=2):
    """Eighty people with random histories over thirty items."""
    return random_world(users=80, items=30, interactions=900, seed=seed).compact()


def squares_federation(data, policies=None, allowed=None, trace=None, **settings):
    """A federation of these people before its first round; everyone may have a policy of their own."""
    settings = ImplicitSettings(**({"factors": 5, "min_support": 1} | settings))
    shared_profile = AS_HISTORIES_ARE
    if policies:
        shared_profile = shared_profiles_of_all(Choices.of_users(policies), settings.seed, data.profiles, data.n_items)
    sizes = data.profiles.sizes
    recipe = frugal_recipe(settings, sizes, data.n_items, messages=allowed, shared_profile=shared_profile, trace=trace)
    return FrugalFederation.established(settings, recipe, data.profiles)


def people_with(histories, n_items):
    """People who have exactly these items of a catalogue of this size."""
    users = np.repeat(np.arange(len(histories)), [len(history) for history in histories]).astype(np.int32)
    items = np.concatenate([np.sort(history) for history in histories]).astype(np.int32)
    return Interactions(users, items, np.arange(len(histories)), np.arange(n_items))


def devices_of(federation):
    """Everyone's device before its first message."""
    recipe, profiles = federation.recipe, federation.profiles
    return [
        FrugalPrivate(
            user,
            profiles.of(user),
            shared_profile_of(recipe.shared_profile, profiles, user),
            int(recipe.messages[user]),
        )
        for user in range(len(federation.spent))
    ]
