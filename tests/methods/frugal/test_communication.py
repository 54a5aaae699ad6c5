"""What few messages cost: the bytes that are counted are the bytes of the messages."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation
from tests.squares_worlds import encode_update, played_bytes, some_people, squares_federation

from federank.methods.fedrec.recommender import rating_cost
from federank.methods.frugal.communication import count_communication, fcf_cost, fcf_of_paper
from federank.methods.frugal.protocol import FrugalUpdate

PEOPLE = some_people()


@pytest.mark.parametrize(
    "settings",
    [
        {"messages": 3},
        {"messages": 2, "cohorts": 3, "encoding": "float32"},
        {"messages": 3, "alpha": 1.0},
        {"messages": 3, "dropout": 0.4, "online": 0.7},
    ],
)
def test_bytes_are_those_of_the_messages_of_the_reference_engine(settings):
    federation = squares_federation(PEOPLE, **settings)
    up, down = played_bytes(federation)
    fresh = squares_federation(PEOPLE, **settings)
    counted = count_communication(fresh, len(PEOPLE), fresh.schedule.rounds)
    assert (counted["uploads"], counted["up"]["bytes"]) == (len(up), sum(up))
    assert (counted["downloads"], counted["down_dense"]["bytes"]) == (len(down), sum(down))
    assert counted["down_changed"]["bytes"] <= counted["down_dense"]["bytes"]


def test_a_lifetime_costs_no_more_than_its_messages():
    federation = squares_federation(PEOPLE, messages=3)
    some, more = (count_communication(federation, len(PEOPLE), rounds) for rounds in (3, 9))
    assert some["uploads"] == more["uploads"] == 3 * 80
    assert some["up"]["bytes"] == more["up"]["bytes"]


DATA = rated_world(users=12, items=200, ratings=150)


@pytest.fixture(scope="module")
def found():
    vectors = np.random.default_rng(1).normal(size=(DATA.n_items, 20)).astype(np.float32)
    return fcf_cost(vectors, [DATA.profiles.of(user) for user in range(DATA.n_users)])


def test_clients_and_server_compute_what_the_paper_counts(found):
    formula = fcf_of_paper(size=len(DATA) / DATA.n_users, users=DATA.n_users, items=DATA.n_items, factors=20)
    assert found.server_operations == pytest.approx(formula.server_operations, rel=0.001)
    assert found.device_operations == pytest.approx(formula.device_operations, rel=0.1)
    assert found.vectors_up == formula.vectors_up == DATA.n_items


def test_a_message_is_sent_as_two_factors_and_is_longer_than_the_papers_where_it_is_written_out(found):
    blank = np.zeros(DATA.n_items, dtype=np.float32), np.zeros(20, dtype=np.float32)
    assert found.bytes_up == len(encode_update(FrugalUpdate.of(*blank, 1.0)))
    numbers = 21 * DATA.n_items + 21 * 21  # a column more than there are factors, and what belongs to all items
    assert 4 * 20 * DATA.n_items < 4 * numbers < found.bytes_up_written_out < 4 * numbers + 300


def test_the_server_of_fedrec_does_less_even_with_three_virtual_ratings_for_each(found):
    federation = rating_federation(DATA, factors=20, style="batch", rho=3, filling="average")
    assert rating_cost(federation).server_operations < found.server_operations
