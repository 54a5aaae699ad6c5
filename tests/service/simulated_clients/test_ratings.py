"""A federation of ratings over HTTP: a fleet learns the simulation's model."""

import json

import numpy as np
import pytest
from tests.rated_worlds import simulated, two_opinions
from tests.service.client.worlds import served
from tests.service.simulated_clients.worlds import fetched, written

from federank.errors import SettingError
from federank.federation.method import configuration
from federank.methods.fedrec.method import PMF, SVDPlusPlus
from federank.service.client.federation import read_info
from federank.service.simulated_clients.methods import Plan, SimulatedClients
from federank.service.simulated_clients.processes import Rehearsal, rehearse

# Engines and server add the same numbers in another order; factors are of size one.
TOLERANCE = 2e-5
PEOPLE, ITEMS, ROUNDS = 30, 24, 5
SETTINGS = {"factors": 4, "initial_range": 0.5, "t_predict": 1, "t_local": 3, "rho": 0.5, "seed": 3}
RATES = {"pmf": 0.8, "svdpp": 0.4}
AS_PUBLISHED = {"first_prediction": "zero", "prior_count": 0.0}
"""What a federation needs to learn as FedRec does, where everyone takes part in every round."""
ROUND = ["--target", str(PEOPLE), "--over-selection", "1", "--deadline", "600"]


def flags(settings):
    return [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def people():
    return two_opinions(PEOPLE, ITEMS, 8)


def play(address, rounds=ROUNDS, **specs):
    played = rehearse(Rehearsal(plan=Plan(address=address), data=people(), rounds=rounds, seed=3, specs=specs))
    return played, *fetched(address)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "kind"), [("pmf", PMF), ("svdpp", SVDPlusPlus)])
def test_federation_of_all_clients_learns_the_simulations_model(tmp_path, method, kind):
    chosen = SETTINGS | AS_PUBLISHED | {"learning_rate": RATES[method]}
    with served(tmp_path, "--data", written(people(), tmp_path), "--method", method, *flags(chosen), *ROUND) as address:
        played, _, model = play(address)
    expected = simulated(kind(**chosen), people(), ROUNDS).broadcast()
    for name, table in model.tables.items():
        np.testing.assert_allclose(table, getattr(expected, name), atol=TOLERANCE)
    assert model.overall["iteration"][0] == ROUNDS, "all clients have reported in every round"
    assert played.tally.report()["not_counted"] == {}


def test_choices_that_are_about_likes_are_refused():
    ids = [str(n) for n in range(ITEMS)]
    for specs in ({"sharing": "randomized-response", "item_epsilon": 1.0, "pi": 0.5}, {"basis": "history"}):
        with pytest.raises(SettingError, match="fixed-subset"):
            SimulatedClients(announced(), ids, people(), 3, specs)
    clients = SimulatedClients(announced(), ids, people(), 3, {"filling": "none", "budget": 3})
    assert max(len(clients._shared.of(user)) for user in range(PEOPLE)) == 3
    assert (clients.method.filling, clients.method.rho) == ("none", 0.0)


def test_ratings_are_matched_to_a_catalogue_in_another_order():
    data = people()
    ids = [str(n) for n in range(ITEMS)][::-1]
    clients = SimulatedClients(announced(), ids, data, 3, {})
    for user in range(PEOPLE):
        here = data.users == user
        expected = dict(zip(data.items[here].tolist(), data.ratings[here].tolist(), strict=True))
        found = clients.client(user, 0)
        assert {int(ids[item]): rating for item, rating in zip(found.items, found.ratings, strict=True)} == expected


def announced():
    method = PMF(**SETTINGS, learning_rate=0.8, step=1.0, n_items=ITEMS)
    info = {"api": 1, "name": "A test", "method": "pmf", "recipe": configuration(method), "items": ITEMS}
    info |= {"catalogue": "c" * 16, "version": 0, "suggested_policy": None}
    return read_info(json.dumps(info).encode())
