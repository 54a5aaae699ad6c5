"""Few messages on a cluster: the compiled engine's bits over any number of shards, also after a shard is lost."""

import numpy as np
import pytest
from tests.squares_worlds import squares_federation
from tests.worlds import random_world

from federank.errors import SettingError
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.reference import ENGINES
from federank.simulation.cluster import connected
from federank.simulation.federated import Machines

pytestmark = pytest.mark.slow

SETTINGS = {
    "everybody": {"messages": 2},
    "cohorts, some lost": {"messages": 1, "cohorts": 3, "dropout": 0.2},
    "minimum support": {"messages": 3, "min_support": 40},
    "clipped": {"messages": 2, "alpha": 1.0, "clip": 0.7},
}


def people(**settings):
    return squares_federation(random_world(users=400, items=80, interactions=4_000).compact(), **settings)


def test_a_cluster_learns_the_bits_of_one_machine_and_survives_a_lost_shard():
    with connected("local", 4, 2**27) as ray:
        for name, settings in SETTINGS.items():
            alone, spread = people(**settings), people(**settings)
            compiled.play(alone, alone.recipe.rounds)
            with ENGINES["cluster"](spread, Machines("local", 2)) as engine:
                for _ in range(spread.recipe.rounds):
                    engine.play(spread, 0, 1)
                    engine.play(spread, 1, 1)
            np.testing.assert_array_equal(alone.item_vectors, spread.item_vectors, err_msg=name)
            np.testing.assert_array_equal(alone.spent, spread.spent)
        alone, spread = people(messages=3), people(messages=3)
        compiled.play(alone, 3)
        with ENGINES["cluster"](spread, Machines("local", 2)) as engine:
            engine.play(spread, 1, 1)
            ray.kill(engine.play.__self__._shards[1])
            engine.play(spread, 2, 1)
        np.testing.assert_array_equal(alone.item_vectors, spread.item_vectors)


def test_more_shards_than_partitions_are_refused():
    with (
        pytest.raises(SettingError, match="99"),
        ENGINES["cluster"](people(), Machines("local", 99)),
    ):
        pass
