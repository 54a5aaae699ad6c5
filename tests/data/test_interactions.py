"""The Interactions type: same content, same arrays; and the filters on it."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.data.interactions import Categories, Interactions
from federank.errors import DataError, SettingError, UnknownId

ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), min_size=1)


def small():
    return Interactions.from_columns(
        ["bea", "ada", "bea", "bea"],
        [30, 10, 10, 20],
        [3, 5, 4, 2],
        [300, 100, 200, 400],
        titles={10: "Ten", 20: "Twenty"},
        categories={10: ["x"], 20: ["y", "x"]},
    )


def test_users_and_items_are_numbered_in_the_order_of_their_ids():
    data = small()
    assert data.user_ids.tolist() == ["ada", "bea"]
    assert data.item_ids.tolist() == [10, 20, 30]
    assert list(zip(data.users.tolist(), data.items.tolist(), strict=True)) == [
        (0, 0),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert data.ratings.tolist() == [5, 4, 2, 3]
    assert data.titles.tolist() == ["Ten", "Twenty", ""]
    assert data.categories.of(1) == ("y", "x")


@pytest.mark.slow
@given(rows=ROWS, seed=st.integers(0, 99))
def test_the_order_of_rows_changes_nothing(rows, seed):
    users, items = zip(*rows, strict=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    one = Interactions.from_columns(users, items)
    other = Interactions.from_columns([users[k] for k in order], [items[k] for k in order])
    assert one.fingerprint == other.fingerprint
    assert len(one) == len(set(rows))


def test_of_a_repeated_pair_the_latest_stays():
    data = Interactions.from_columns(["a", "a", "a"], [1, 1, 1], [1, 2, 3], [10, 30, 20])
    assert (data.ratings.tolist(), data.times.tolist()) == ([2], [30])
    assert Interactions.from_columns(["a", "a"], [1, 1], [1, 2]).ratings.tolist() == [2]
    assert Interactions.from_columns(["a", "a"], [1, 1], [1, 2], repeats="first").ratings.tolist() == [1]
    with pytest.raises(DataError, match="1 rows repeat"):
        Interactions.from_columns(["a", "a"], [1, 1], repeats="refuse")


def test_a_change_of_content_changes_the_fingerprint():
    base = small()
    others = [
        Interactions.from_columns(["bea", "ada"], [30, 10]),
        base.take([0, 1, 2]),
        Interactions.from_columns(["b", "a", "b", "b"], [30, 10, 10, 20], [3, 5, 4, 2], [300, 100, 200, 400]),
        Interactions.from_columns(["bea", "ada", "bea", "bea"], [30, 10, 10, 20], [3, 5, 4, 1], [300, 100, 200, 400]),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_arrays_cannot_be_written_to():
    data = small()
    for array in (data.users, data.items, data.ratings, data.times, data.user_ids, data.item_ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


@given(rows=ROWS)
def test_profiles_and_audiences_are_two_views_of_the_same_pairs(rows):
    users, items = zip(*rows, strict=True)
    data = Interactions.from_columns(users, items)
    forth = {(user, int(item)) for user in range(data.n_users) for item in data.profiles.of(user)}
    back = {(int(user), item) for item in range(data.n_items) for user in data.audiences.of(item)}
    assert forth == back
    np.testing.assert_array_equal(data.matrix().toarray().sum(axis=0), data.popularity)


def test_ids_are_found_as_they_are_or_as_text():
    data = small()
    assert data.item_index(20) == data.item_index("20") == 1
    with pytest.raises(UnknownId, match="'zoe'"):
        data.user_index("zoe")
    with pytest.raises(UnknownId, match="No item"):
        data.item_index("twenty")


def test_ids_of_two_types_are_refused():
    with pytest.raises(DataError):
        Interactions.from_columns(np.array([1, "a"], dtype=object), [1, 2])
    with pytest.raises(DataError):
        Interactions.from_columns(pl.Series([1.5, 2.5]), [1, 2])
    with pytest.raises(DataError, match="2"):
        Interactions.from_columns(["a", "b"], pl.Series([1, None]))
    with pytest.raises(DataError, match=r"2.*1"):
        Interactions.from_columns(["a", "b"], [1])


def test_a_filter_numbers_what_is_left_again():
    kept = small().keep_users(min_interactions=2)
    assert kept.user_ids.tolist() == ["bea"]
    assert kept.keep_items(min_interactions=1).n_items == 3
    popular = small().keep_items(min_interactions=2)
    assert popular.item_ids.tolist() == [10]
    assert popular.titles.tolist() == ["Ten"]
    assert popular.categories.of(0) == ("x",)


def test_a_core_goes_on_until_all_have_k():
    pairs = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 2), ("c", 3)]
    data = Interactions.from_columns([u for u, _ in pairs], [i for _, i in pairs])
    core = data.k_core(2)
    assert core.user_ids.tolist() == ["a", "b"]
    assert core.item_ids.tolist() == [1, 2]


def test_a_threshold_makes_ratings_into_likes():
    liked = small().binarise(4)
    assert liked.ratings is None
    assert len(liked) == 2


def test_a_filter_that_leaves_nothing_says_so():
    for filtered in (
        lambda: small().keep_users(9),
        lambda: small().keep_items(9),
        lambda: small().binarise(6),
        lambda: small().k_core(3),
    ):
        with pytest.raises(DataError):
            filtered()
    with pytest.raises(SettingError, match="1"):
        small().keep_users(0)


def test_filters_that_need_a_column_say_which():
    bare = Interactions.from_columns(["a"], [1])
    with pytest.raises(DataError):
        bare.binarise(3)
    with pytest.raises(DataError):
        bare.matrix("ratings")


def test_categories_can_be_made_coarser_and_weighed():
    fine = Categories.from_lists([["café"], ["bar", "café"], []])
    assert fine.weights(np.array([2, 3, 5])).tolist() == [3, 5]
    coarse = fine.renamed({"café": "food", "bar": "food"})
    assert coarse.names == ("food",)
    assert coarse.of(1) == ("food",)
    assert coarse.of(2) == ()
