"""What few messages cost: the bytes that are counted are the bytes of the messages."""

import pytest
from tests.squares_worlds import devices_of, some_people, squares_federation

from federank.methods.frugal.communication import count_frugal_communication
from federank.methods.frugal.reference import FrugalFleetInMemory
from federank.methods.frugal.wire import encode_frugal_broadcast, encode_frugal_update

PEOPLE = some_people()


@pytest.mark.parametrize(
    "settings",
    [
        {"messages": 3},
        {"messages": 2, "cohorts": 3, "broadcast": "float32"},
        {"messages": 3, "alpha": 1.0},
        {"messages": 3, "dropout": 0.4, "online": 0.7},
    ],
)
def test_bytes_are_those_of_the_messages_of_the_reference_engine(settings):
    federation = squares_federation(PEOPLE, **settings)
    recipe, shared = federation.recipe, federation.shared
    fleet = FrugalFleetInMemory(recipe, devices_of(federation))
    sent, asked, whole = [], 0, 0
    for number in range(recipe.rounds):
        clients, broadcast = fleet.choose(number), shared.distribute(recipe)
        answers = list(fleet.train(clients, broadcast))
        shared.aggregate(recipe, answers)
        sent += [len(encode_frugal_update(update)) for update in answers]
        asked, whole = asked + len(clients), whole + len(clients) * len(encode_frugal_broadcast(broadcast, 30))
    whole += PEOPLE.n_users * len(encode_frugal_broadcast(shared.distribute(recipe), 30))  # the last model, for all
    counted = count_frugal_communication(recipe, PEOPLE.n_users, len(PEOPLE), recipe.rounds)
    assert counted["uploads"] == len(sent)
    assert counted["up"]["bytes"] == sum(sent)
    assert counted["downloads"] == asked + PEOPLE.n_users
    assert counted["down_dense"]["bytes"] == whole
    assert counted["down_changed"]["bytes"] <= counted["down_dense"]["bytes"]


def test_a_lifetime_costs_no_more_than_its_messages():
    federation = squares_federation(PEOPLE, messages=3)
    some, more = (count_frugal_communication(federation.recipe, 80, len(PEOPLE), rounds) for rounds in (3, 9))
    assert some["uploads"] == more["uploads"] == 3 * 80
    assert some["up"]["bytes"] == more["up"]["bytes"]
