"""Someone outside who fetches the model around every round: what its sum tells about one who was in it."""

import numpy as np
from tests.worlds import federation, random_world

from federank.audit.audit import audit_training
from federank.methods.fpl.observer import next_sums, next_updates
from federank.methods.fpl.recommender import FPL
from federank.methods.fpl.simulation import play_compiled

PEOPLE = np.arange(4, dtype=np.int32)


def played(clients, **settings):
    established = federation(random_world(), clients_per_round=clients, triples=5, **settings)
    play_compiled(established, 3)
    return established


def test_the_sum_of_a_lone_reporter_s_round_is_its_update():
    alone = played(1)
    for summed, own in zip(next_sums(alone, PEOPLE), next_updates(alone, PEOPLE), strict=True):
        np.testing.assert_array_equal(summed.items, own.items)
        np.testing.assert_array_equal(summed.biases, own.biases)


def test_the_sum_of_a_larger_round_has_others_in_it_and_changes_nothing_of_the_run():
    many = played(3)
    before = {name: table.copy() for name, table in many.tables().all.items()}
    sums, own = list(next_sums(many, PEOPLE)), list(next_updates(many, PEOPLE))
    assert all(set(update.items) <= set(summed.items) for summed, update in zip(sums, own, strict=True))
    assert any(len(update.items) < len(summed.items) for summed, update in zip(sums, own, strict=True))
    assert [summed.biases.tobytes() for summed in next_sums(many, PEOPLE)] == [s.biases.tobytes() for s in sums]
    for name, table in many.tables().all.items():
        np.testing.assert_array_equal(table, before[name])


def test_an_outsider_reads_a_lone_reporter_and_fewer_items_of_those_in_larger_rounds():
    right = {}
    for clients in (1, 8):
        model = FPL(clients_per_round=clients, triples=5, epochs=2, factors=4)
        findings, _about = audit_training(model, random_world(), sees="outsider")
        right[clients] = findings[-1].attacks["sign"]["precision"]
        assert right[1] == 1.0, "every item of an Update that is named as liked is"
    assert right[8] < 1.0
