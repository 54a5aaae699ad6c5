"""One more Update: the very one that the device of the reference engine would send."""

import numpy as np
import pytest
from tests.methods.fpl.audited_runs import CONFIGURATIONS
from tests.worlds import federation, model_of, random_world

from federank.methods.fpl.observer import next_updates
from federank.methods.fpl.simulation import FleetInMemory, play_compiled


@pytest.mark.slow
@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_the_next_update_is_what_the_reference_engines_client_would_send(settings):
    data = random_world()
    established = federation(data, **settings)
    play_compiled(established, 20)
    recipe = established.recipe._replace(dropout=0.0)
    fleet, broadcast = FleetInMemory(established), model_of(established)
    fleet.recipe = recipe
    before = {name: table.copy() for name, table in established.tables().all.items()}
    found = list(next_updates(established, recipe.participants))
    assert len(found) == len(recipe.participants)
    for update, expected in zip(found, fleet.train(recipe.participants, broadcast, 20), strict=True):
        np.testing.assert_array_equal(update.items, expected.items)
        np.testing.assert_allclose(update.vectors, expected.vectors, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(update.biases, expected.biases, rtol=1e-4, atol=1e-5)
    for name, table in established.tables().all.items():
        np.testing.assert_array_equal(table, before[name])
