"""Federations of few messages on tiny worlds."""

from federank.engines.squares.federation import SquaresFederation
from federank.protocol.choices import AS_HISTORIES_ARE, Choices, everyones_outward
from federank.protocol.squares.recipes import SquaresSettings, squares_recipe
from tests.worlds import random_world


def some_people(seed=2):
    """Eighty people with random histories over thirty items."""
    return random_world(users=80, items=30, interactions=900, seed=seed).compact()


def squares_federation(data, policies=None, allowed=None, trace=None, **settings):
    """A federation of these people before its first round; everyone may have a policy of their own."""
    settings = SquaresSettings(**({"factors": 5} | settings))
    outward = AS_HISTORIES_ARE
    if policies:
        outward = everyones_outward(Choices.of_people(policies), settings.seed, data.profiles, data.n_items)
    sizes = data.profiles.sizes
    recipe = squares_recipe(settings, sizes, data.n_items, messages=allowed, outward=outward, trace=trace)
    return SquaresFederation.founded(settings, recipe, data.profiles)
