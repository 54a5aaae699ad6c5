"""What an iteration computes, counted beside the paper's formulas."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.engines.ratings.operations import fcf_of_paper, fcf_operations, fedrec_of_paper, rating_operations

DATA = rated_world(users=12, items=200, ratings=150)
SIZE = len(DATA) / DATA.n_users


def counted(iteration=9, **settings):
    return rating_operations(rating_federation(DATA, **settings), iteration)


def paper(batch, rho=0, local_passes=0):
    return fedrec_of_paper(
        batch=batch,
        size=SIZE,
        ratings=len(DATA),
        users=DATA.n_users,
        items=DATA.n_items,
        factors=4,
        rho=rho,
        local_passes=local_passes,
    )


def test_a_batch_device_makes_five_multiplications_of_d_for_a_rating_and_three_to_step():
    assert counted(style="batch", rho=0).device == pytest.approx(5 * 4 * SIZE + 3 * 4)


@pytest.mark.parametrize("style", ["batch", "stochastic"])
def test_a_device_takes_as_much_more_as_there_are_virtual_ratings(style):
    alone, doubled = (counted(style=style, rho=rho, filling="average").device for rho in (0, 1))
    assert doubled == pytest.approx(2 * alone, rel=0.1)


@pytest.mark.parametrize("style", ["batch", "stochastic"])
def test_the_server_does_what_the_paper_counts(style):
    for rho in (0, 2):
        found = counted(style=style, rho=rho, filling="average").server
        assert found == pytest.approx(paper(style == "batch", rho).server, rel=0.03)


def test_local_passes_cost_a_pass_over_the_own_ratings_each():
    few, many = (
        counted(style="batch", rho=1, filling="hybrid", t_predict=2, t_local=passes).device for passes in (5, 10)
    )
    assert many - few == pytest.approx(5 * (2 * 4 * SIZE + 3 * 4))


def test_fcf_costs_a_device_what_the_paper_says_and_the_server_more_than_fedrec():
    vectors = np.random.default_rng(1).normal(size=(DATA.n_items, 4)).astype(np.float32)
    found = fcf_operations(vectors, [DATA.profiles.of(user) for user in range(DATA.n_users)])
    formula = fcf_of_paper(size=SIZE, users=DATA.n_users, items=DATA.n_items, factors=4)
    assert found.server == pytest.approx(formula.server, rel=0.001)
    assert found.device == pytest.approx(formula.device, rel=0.4)
    assert counted(style="batch", rho=3, filling="average").server < found.server
