"""Federations of few messages on tiny worlds."""

import numpy as np

from federank.data.interactions import Interactions
from federank.federation.method import Client
from federank.methods.frugal.reference import method_of, model_of
from federank.methods.frugal.settings import FrugalSettings, frugal_recipe
from federank.methods.frugal.simulation import FrugalFederation
from federank.privacy.population import AS_HISTORIES_ARE, Choices, shared_profiles_of_all
from tests.worlds import random_world


def some_people(seed=2):
    """Eighty people with random histories over thirty items."""
    return random_world(users=80, items=30, interactions=900, seed=seed).compact()


def squares_federation(data, policies=None, allowed=None, trace=None, **settings):
    """A federation of these people before its first round; everyone may have a policy of their own."""
    settings = FrugalSettings(**({"factors": 5, "min_support": 1} | settings))
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


def update_of(recipe, broadcast, profile):
    """What a client with this profile uploads."""
    model = model_of(broadcast, recipe.n_items)
    stage = int(recipe.min_support == 1 or model.weights.any())
    client = Client(0, 0, 0, np.asarray(profile, dtype=np.int32), stage=stage)
    return method_of(recipe).client_update(client, model).update


def vector_of(recipe, broadcast, history):
    """The vector that explains this history best."""
    client = Client(0, 0, 0, np.asarray(history, dtype=np.int32))
    return method_of(recipe).fold_in(client, model_of(broadcast, recipe.n_items))
