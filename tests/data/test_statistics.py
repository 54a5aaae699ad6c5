"""Statistics and their picture: small worlds counted by hand, laws, real data, and what a picture shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.data.interactions import Interactions
from federank.data.statistics import (
    CategoryShare,
    Period,
    Ratings,
    Spread,
    draw_statistics,
    share_of_top,
    statistics,
    statistics_figure,
)
from federank.errors import BadFile, DataError, SettingError

counts = st.lists(st.integers(0, 10_000), min_size=2, max_size=50).filter(any).map(np.array)


@pytest.fixture
def small():
    """Three people and three films: six ratings over two days; one film is of two genres, one of none."""
    return Interactions.from_columns(
        users=["ann", "ann", "ann", "bob", "bob", "cy"],
        items=["axe", "bee", "cat", "axe", "bee", "axe"],
        ratings=[5, 4, 3, 5, 1, 3],
        times=[0, 10, 20, 86_400, 30, 172_800],
        categories={"axe": ["Drama"], "bee": ["Drama", "Comedy"]},
        name="films",
    )


def test_a_small_world_is_counted_as_by_hand(small):
    numbers = statistics(small)
    assert (numbers.name, numbers.users, numbers.items, numbers.interactions) == ("films", 3, 3, 6)
    assert (numbers.per_user, numbers.per_item) == (2, 2)
    assert numbers.density == pytest.approx(6 / 9)
    assert numbers.activity == Spread(1, 2, 3)
    assert numbers.popularity == Spread(1, 2, 3)
    assert numbers.top_1_percent == numbers.top_10_percent == 0.5
    # (-2 * 1 + 0 * 2 + 2 * 3) / (2 * 6)
    assert numbers.gini == pytest.approx(1 / 3)
    assert numbers.ratings == Ratings(1, 3.5, 5)
    assert numbers.period == Period(0, 172_800, 2.0)


def test_an_item_in_several_categories_counts_fully_in_each_and_one_in_none_only_in_the_total(small):
    # Drama: 2 of 3 films, 5 of 6 ratings. Comedy: 1 of 3 films, 2 of 6 ratings.
    assert statistics(small).categories == (
        CategoryShare("Comedy", pytest.approx(1 / 3), pytest.approx(2 / 6), pytest.approx(1)),
        CategoryShare("Drama", pytest.approx(2 / 3), pytest.approx(5 / 6), pytest.approx(1.25)),
    )


def test_what_a_data_set_does_not_have_is_none():
    numbers = statistics(Interactions.from_columns([1, 1, 2], [1, 2, 1]))
    assert (numbers.ratings, numbers.period, numbers.categories) == (None, None, None)


def test_a_part_of_a_split_is_described_by_what_is_in_it(small):
    part = statistics(small.take(small.users == small.user_index("bob")))
    assert (part.users, part.items, part.interactions, part.density) == (1, 2, 2, 1.0)
    assert part.activity == Spread(2, 2, 2)
    assert part.popularity == Spread(1, 1, 1)
    assert [(category.name, category.share_of_items) for category in part.categories] == [("Comedy", 0.5), ("Drama", 1)]


def test_a_category_whose_items_no_user_chose_is_left_out(small):
    only_cat = statistics(small.take(small.items == small.item_index("cat")))
    assert only_cat.categories == ()


def test_nothing_to_count_is_an_error(small):
    with pytest.raises(DataError):
        statistics(small.take(np.zeros(6, dtype=bool)))


@given(counts)
def test_a_larger_top_has_a_larger_share_and_all_have_all(counts):
    shares = [share_of_top(counts, percent) for percent in (1, 10, 50, 100)]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(("items", "top"), [(1, 1), (10, 1), (11, 2), (70, 7), (71, 8)])
def test_a_tenth_of_the_items_is_rounded_up(items, top):
    assert share_of_top(np.ones(items, dtype=np.int64), 10) == pytest.approx(top / items)


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_a_picture_is_written_in_the_format_of_its_suffix(small, tmp_path, suffix, start):
    path = tmp_path / f"picture{suffix}"
    draw_statistics(small, path)
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "found"), [("picture.jpeg2", "the suffix '.jpeg2'"), ("picture", "no suffix")])
def test_a_suffix_that_tells_no_format_is_refused(small, tmp_path, name, found):
    with pytest.raises(SettingError, match=rf"{found}.*let it end in \.png, \.svg or \.pdf"):
        draw_statistics(small, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_picture_that_cannot_be_written_is_refused_and_leaves_nothing(small, tmp_path):
    with pytest.raises(BadFile):
        draw_statistics(small, tmp_path / "lost" / "picture.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadFile, match=r"folder\.png"):
        draw_statistics(small, tmp_path / "folder.png")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_the_curves_show_the_counts(small):
    tail, activity, categories = statistics_figure(small).axes
    assert tail.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1]]
    assert activity.lines[0].get_xydata() == pytest.approx(np.array([[1, 1], [2, 2 / 3], [3, 1 / 3]]))
    assert [bar.get_width() for bar in categories.patches] == pytest.approx([2 / 6, 5 / 6, 1 / 3, 2 / 3])
