"""An attacker who knows some of a user's items: what taking part adds to what it gets right."""

import numpy as np
import pytest
from tests.worlds import random_world

from federank.audit.audit import audit_model
from federank.data.interactions import Interactions
from federank.methods.frugal.side_knowledge import side_knowledge
from federank.methods.registry import recommender_class

Frugal = recommender_class("frugal")


@pytest.fixture(scope="module")
def people():
    """Everyone has some 25 items that many have, and 8 that nobody else has."""
    common = random_world(users=60, items=60, interactions=1500, seed=5).compact()
    rows = [
        np.unique(np.concatenate((common.profiles.of(u), 60 + 8 * u + np.arange(8)))) for u in range(common.n_users)
    ]
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows]).astype(np.int32)
    n_items = 60 + 8 * len(rows)
    return Interactions(
        users, np.concatenate(rows).astype(np.int32), np.arange(len(rows)), np.arange(n_items)
    ).compact()


def test_items_of_one_user_are_read_from_sums(people):
    model = Frugal(min_support=1, messages=4, factors=12).fit(people)
    found = side_knowledge(model, known=6)
    assert found["cosines"]["users"] == 30
    assert found["cosines"]["inside"] > found["cosines"]["outside"] + 0.3


def test_minimum_support_takes_most_of_it_away(people):
    free, supported = (Frugal(min_support=k, messages=4, factors=12).fit(people) for k in (1, 5))
    before, after = (side_knowledge(model, known=6)["cosines"]["advantage"] for model in (free, supported))
    assert after < before / 2


def test_rounds_of_a_part_of_the_clients_are_read(people):
    """Minimum support counts the users of all rounds; in a small round a supported item may have one."""
    whole, parts = (Frugal(min_support=5, messages=4, factors=12, cohorts=n).fit(people) for n in (1, 4))
    before, after = (side_knowledge(model, known=6)["cosines"]["advantage"] for model in (whole, parts))
    assert after > before + 0.1


def test_an_outsider_has_the_model_alone(people):
    found = side_knowledge(Frugal(min_support=1, messages=3, factors=12).fit(people), sees="outsider", known=6)
    assert list(found) == ["model"]
    assert 0 <= found["model"]["inside"] <= 1


@pytest.mark.parametrize("sees", ["sums", "outsider"])
def test_an_audit_of_sums_has_it(people, sees):
    model = Frugal(min_support=5, messages=3, factors=8).fit(people)
    assert audit_model(model, sees=sees, people=20, known=5)[1]["side_knowledge"]
    assert "side_knowledge" not in audit_model(model, sees=sees, people=20, known=0)[1]


def test_an_attacker_on_noise_is_no_better_inside(people):
    model = Frugal(epsilon=0.5, messages=3, factors=8, min_support=1).fit(people)
    found = side_knowledge(model, sees="leader", known=6)
    assert all(abs(figures["advantage"]) < 0.15 for figures in found.values())


def test_no_user_to_attack_gives_nothing(people):
    assert side_knowledge(Frugal(min_support=1, messages=2, factors=4).fit(people), known=40) == {}
