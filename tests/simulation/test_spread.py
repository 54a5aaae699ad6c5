"""A population spread over shards, without Ray: every method's shards and sums, whatever the number of machines."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation
from tests.squares_worlds import squares_federation
from tests.worlds import federation, random_world

from federank.errors import SettingError
from federank.federation.method import DataSummary
from federank.federation.schedule import Schedule
from federank.methods.baselines.fedmf import FedMF
from federank.methods.baselines.pfedrec import PFedRec
from federank.privacy.population import AS_HISTORIES_ARE
from federank.simulation.engine import Simulation

TOLERANCE = 2e-5


def pairs(**settings):
    return federation(random_world(users=300, items=40, interactions=4_000), **settings)


def squares(**settings):
    return squares_federation(random_world(users=400, items=80, interactions=4_000).compact(), **settings)


def ratings(**settings):
    return rating_federation(rated_world(users=60, items=40, ratings=900), style="batch", learning_rate=0.4, **settings)


def simulated(kind, **settings):
    data = random_world(users=60, items=30, interactions=700).compact()
    able, rounds = np.flatnonzero(data.profiles.sizes).astype(np.int32), np.full(data.n_users, 3, dtype=np.int32)
    method = kind(**settings).resolve(DataSummary.of(data))
    return Simulation(method, Schedule(method.seed, 3, 0.9, 0.1, able, rounds), AS_HISTORIES_ARE, data)


FEDERATIONS = {
    "fpl": lambda: pairs(clients_per_round="all", triples=6, pi=0.5, dropout=0.2),
    "fpl, adam": lambda: pairs(clients_per_round=100, triples=3, server="adam", weight_decay=1.0),
    "frugal": lambda: squares(messages=3),
    "frugal, cohorts": lambda: squares(messages=1, cohorts=3, dropout=0.2),
    "frugal, minimum support": lambda: squares(messages=3, min_support=40),
    "fcf, clipped": lambda: squares(messages=3, alpha=1.0, clip=0.7),
    "pmf": lambda: ratings(filling="hybrid", rho=1.5, t_predict=1, t_local=2),
    "fedmf": lambda: simulated(FedMF, factors=4),
    "fedmf, secure": lambda: simulated(FedMF, factors=4, uploads="secure", clip=4.0, noise=100),
    "pfedrec": lambda: simulated(PFedRec, factors=4),
    "pmf, averages": lambda: ratings(filling="average", rho=1.0, item_gradients="after"),
}


def play_spread(established, shards, rounds):
    """Rounds on shards in this process; what passes between them and the driver is pickled."""
    spread = established.spread()
    bounds = np.linspace(0, len(spread.partitions) - 1, shards + 1).astype(int)
    ours = [spread.partitions[a : b + 1] for a, b in pairwise(bounds)]
    workers = [spread.shard_type(sent(spread.part(own))) for own in ours]

    def train(clients):
        message = sent(spread.message(-1))  # before the first sum comes back and moves the model
        for worker, (first, last) in zip(workers, pairwise(bounds), strict=True):
            sums = sent(worker.train(message, clients[first:last]))
            assert len(sums) == last - first
            yield from enumerate(sums, start=first)

    for _ in range(rounds):
        spread.play_round(train)
    for worker, own in zip(workers, ours, strict=True):
        for name, states in worker.states().items():
            getattr(established, name)[own[0] : own[-1]] = states
    return established


def sent(message):
    return pickle.loads(pickle.dumps(message))


@pytest.mark.parametrize("name", FEDERATIONS)
def test_the_number_of_shards_changes_no_bit_and_the_compiled_engine_agrees(name):
    one, three = (play_spread(FEDERATIONS[name](), shards, 3) for shards in (1, 3))
    alone = FEDERATIONS[name]()
    with alone.engines["compiled"](alone, None) as (play, _):
        play(alone, 3, 1)
    assert one.round_number == alone.round_number == 3
    first = FEDERATIONS[name]().tables().all
    for table, values in one.tables().all.items():
        np.testing.assert_array_equal(values, three.tables().all[table])
        np.testing.assert_allclose(values, alone.tables().all[table], atol=TOLERANCE, rtol=TOLERANCE)
    moved = [table for table, values in one.tables().server.items() if (values != first[table]).any()]
    assert any("vectors" in table for table in moved)


@pytest.mark.parametrize("name", ["fpl", "pmf", "pfedrec"])
def test_shards_return_to_earlier_states(name):
    one = FEDERATIONS[name]()
    spread = one.spread()
    worker = spread.shard_type(spread.part(spread.partitions))
    before = {table: states.copy() for table, states in worker.states().items()}
    assert set(before) == set(spread.client_tables)
    clients = [np.flatnonzero(one.profiles.sizes > 4).astype(np.int32)[:4]]
    (first,) = worker.train(spread.message(-1), clients)
    assert any((worker.states()[table] != states).any() for table, states in before.items())
    worker.restore(before)
    (again,) = worker.train(spread.message(-1), clients)
    np.testing.assert_equal(pickle.dumps(first), pickle.dumps(again))


@pytest.mark.parametrize(
    "established",
    [
        lambda: pairs(clients_per_round="all", weights="mean"),
        lambda: pairs(clients_per_round=1, user_draw="activity"),
        lambda: rating_federation(rated_world()),
        lambda: squares(messages=2, epsilon=4.0),
    ],
)
def test_rounds_that_are_no_sums_over_partitions_are_refused(established):
    with pytest.raises(SettingError):
        established().spread()
