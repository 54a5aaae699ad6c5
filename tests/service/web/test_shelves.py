"""Shelves: the best first, a reason only where it is believable, and what was turned down teaches."""

import numpy as np
import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing

ITEMS, FACTORS = 90, 3


@pytest.fixture(scope="module")
def shelves(node):
    with conversing(node, "shelves.mjs", PAGE / "client" / "shelves.js") as ask:
        yield ask


@pytest.fixture(scope="module")
def world():
    """Three tastes of thirty items each: an item lies near the axis of its own."""
    rng = np.random.default_rng(5)
    vectors = np.repeat(np.eye(FACTORS), ITEMS // FACTORS, axis=0) + rng.normal(0, 0.12, (ITEMS, FACTORS))
    popularity = rng.permutation(ITEMS)
    return {"vectors": vectors.tolist(), "popularity": popularity.tolist()}


def taste(item):
    return item // (ITEMS // FACTORS)


def test_the_best_come_first_and_nothing_is_shown_twice(shelves, world):
    told = shelves(world | {"home": [1, 0.4, 0.1], "history": [0, 30]})
    values = np.array(world["vectors"]) @ [1, 0.4, 0.1]
    values[[0, 30]] = -np.inf
    assert told["shelves"][0]["items"] == np.argsort(-values, kind="stable")[:5].tolist()
    shown = [item for shelf in told["shelves"] for item in shelf["items"]]
    assert len(set(shown)) == len(shown)
    assert not {0, 30} & set(shown)


def test_a_reason_is_of_the_same_taste(shelves, world):
    told = shelves(world | {"home": [1, 1, 0], "history": [0, 30]})
    assert told["reasons"]
    assert all(taste(item) == taste(own) for item, own in told["reasons"])
    because = [shelf for shelf in told["shelves"] if shelf["kind"] == "because"]
    assert {shelf["own"] for shelf in because} == {0, 30}
    [different] = [shelf for shelf in told["shelves"] if shelf["kind"] == "different"]
    assert taste(different["items"][0]) == 2, "what neither taste of the user is like"


@pytest.mark.parametrize("common", [[], ["Colour"]])
def test_a_reason_shares_a_category_that_not_all_have(shelves, world, common):
    """Two items that are liked by the same users are no reason for each other where a reader sees nothing in common."""
    categories = [[*common, "Drama"] if item % 2 else [*common, "Family", "Music"] for item in range(ITEMS)]
    told = shelves(world | {"home": [1, 1, 0], "history": [0, 31], "categories": categories})
    assert {own for _, own in told["reasons"]} == {0, 31}
    assert all(item % 2 == own % 2 for item, own in told["reasons"])


def test_what_resembles_nothing_has_no_reason(shelves, world):
    rng = np.random.default_rng(6)
    scattered = world | {"vectors": rng.normal(0, 1, (ITEMS, FACTORS)).tolist()}
    told = shelves(scattered | {"home": [1, 0, 0], "history": [0]})
    assert len(told["reasons"]) < ITEMS / 10


def test_what_was_turned_down_teaches_and_nothing_else_changes(shelves, world):
    asked = world | {"home": [1, 0.9, 0.2], "history": [60]}
    before, after = (np.array(shelves(asked | {"down": down})["worth"]) for down in ([], [2]))
    changed = {int(item) for item in np.flatnonzero(after < before - 1e-6)}
    assert changed
    assert {taste(item) for item in changed} == {0}
    assert np.array_equal(after[30:], before[30:])


def test_items_without_support_leave_the_others_their_worth(shelves, world):
    asked = world | {"home": [1, 0.9, 0.2], "history": [60], "unsupported": [5, 40]}
    before, after = (shelves(asked | {"down": down})["worth"] for down in ([], [2]))
    assert [item for item, worth in enumerate(after) if worth is None] == [5, 40]  # JSON has null for -Infinity
    assert [worth for worth in after[30:] if worth is not None] == [worth for worth in before[30:] if worth is not None]
