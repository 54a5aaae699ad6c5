"""PFedRec and FedMF: what they send, what their server reads from it, and what a policy keeps at home."""

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.federation import wire
from federank.methods.baselines.pfedrec import draw_examples, pass_over

WORLD = two_tastes()
FEW = {"factors": 4, "rounds": 2}


def test_examples_are_the_profile_and_items_outside_of_it():
    profile = np.array([0, 3, 4], dtype=np.int32)
    items, labels = draw_examples(profile, profile, 9, 20, np.random.default_rng(1))
    assert len(items) == 3 * 21
    assert sorted(items[labels == 1].tolist()) == [0, 3, 4]
    assert set(items[labels == 0].tolist()) == {1, 2, 5, 6, 7, 8}


def test_who_has_everything_has_nothing_to_compare_it_with():
    profile = np.arange(4, dtype=np.int32)
    items, labels = draw_examples(profile, profile, 4, 20, np.random.default_rng(1))
    assert sorted(items) == [0, 1, 2, 3]
    assert labels.tolist() == [1, 1, 1, 1]


def test_a_pass_is_that_of_plain_numpy():
    rng = np.random.default_rng(2)
    vectors, weights = rng.normal(size=(6, 3)).astype(np.float32), rng.normal(size=4).astype(np.float32)
    items, labels = np.array([0, 4, 4, 2, 1], dtype=np.int32), np.array([1, 0, 0, 1, 0], dtype=np.float32)
    plain, own = vectors.astype(float), weights.astype(float)
    for batch in (slice(0, 3), slice(3, 5)):
        rows, truth = items[batch], labels[batch]
        error = 1 / (1 + np.exp(-(plain[rows] @ own[:3] + own[3]))) - truth
        own[:3] -= 0.1 * error @ plain[rows] / len(rows)
        own[3] -= 0.1 * error.mean()
        error = 1 / (1 + np.exp(-(plain[rows] @ own[:3] + own[3]))) - truth
        np.add.at(plain, rows, -2.0 * np.outer(error, own[:3]) / len(rows))
    pass_over(vectors, weights, items, labels, np.empty(5, np.float32), np.empty(4, np.float32), 3, 0.1, 2.0)
    np.testing.assert_allclose(vectors, plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weights, own, rtol=1e-5, atol=1e-6)


def test_pfedrec_sends_every_item_vector_and_nothing_of_the_score_function():
    model = fr.PFedRec(factors=4).fit(WORLD, rounds=2)
    sent = model.communication()
    assert (sent["uploads"], sent["up"]["rows"]) == (2 * WORLD.n_users, 2 * WORLD.n_users * WORLD.n_items)
    assert set(wire.values(model.broadcast)) == {"vectors"}
    assert len(np.unique(model.client_states["weights"], axis=0)) > 1  # the same at first, every client's own since


def test_fedmf_sends_what_it_has_looked_at_or_a_row_for_every_item():
    some, every = (fr.FedMF(send=send, negatives=1, factors=4).fit(WORLD, rounds=2) for send in ("sampled", "all"))
    np.testing.assert_allclose(some.broadcast.vectors, every.broadcast.vectors, rtol=1e-5)
    assert some.communication()["up"]["rows"] < every.communication()["up"]["rows"]
    assert every.communication()["up"]["rows"] == 2 * WORLD.n_users * WORLD.n_items


@pytest.mark.parametrize("method", ["pfedrec", "fedmf"])
def test_withheld_items_are_not_trained_on_and_count_at_home(method):
    model = fr.fit(method, WORLD, pi=0.5, **FEW)
    simulation = model.simulation()
    for user in range(WORLD.n_users):
        items = simulation.client(user, 0).items
        assert set(items.tolist()) < set(WORLD.profiles.of(user).tolist())
    assert len(items) == 4
    assert len(model.recommend(0, n=3)) == 3


@pytest.mark.parametrize("method", ["pfedrec", "fedmf"])
@pytest.mark.parametrize("sees", ["updates", "sums"])
def test_a_curious_server_is_judged(method, sees):
    found = fr.audit_model(fr.fit(method, WORLD, online=0.8, **FEW), sees=sees, people=10).findings[-1]
    assert 0 <= found.best["auc"] <= 1
