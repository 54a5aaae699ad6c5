"""Bias of categories and its disparity, groups of users; and Foursquare's kinds of places as the papers' nine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import federank as fr
from federank.data.interactions import Categories, Interactions
from federank.data.statistics import foursquare_categories, statistics, top_categories
from federank.data.synthetic import CATEGORIES as NINE
from federank.errors import BadFile, DataError
from federank.evaluation.evaluate import items_without_category, read_categories
from federank.evaluation.metrics import bias, bias_disparity, bias_table

films = Interactions.from_columns(
    ["ann", "ann", "bob", "bob", "bob"],
    ["alien", "brazil", "alien", "cars", "dune"],
    categories={"alien": ["Horror", "Sci-Fi"], "brazil": ["Sci-Fi"], "cars": ["ServerMethod"]},
)
"""dune has no category."""


def test_bias_is_the_share_of_interactions_over_the_share_of_items():
    everything = np.ones(4, dtype=np.int64)
    values = dict(
        zip(films.categories.names, bias(films.categories, films.popularity, everything).tolist(), strict=True)
    )
    assert values == pytest.approx(
        {"ServerMethod": (1 / 5) / (1 / 4), "Horror": (2 / 5) / (1 / 4), "Sci-Fi": (3 / 5) / (2 / 4)}
    )


def test_bias_of_training_is_what_the_statistics_of_the_data_say():
    there = (films.popularity > 0).astype(np.int64)
    told = [category.bias for category in statistics(films).categories]
    np.testing.assert_allclose(bias(films.categories, films.popularity, there), told)


@given(counts=st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any), factor=st.integers(2, 9))
def test_bias_ignores_how_many_lists_there_are(counts, factor):
    counts, everything = np.array(counts), np.ones(4, dtype=np.int64)
    np.testing.assert_allclose(
        bias(films.categories, factor * counts, everything), bias(films.categories, counts, everything)
    )


def test_items_shown_equally_often_have_bias_1():
    everything = np.ones(4, dtype=np.int64)
    np.testing.assert_allclose(bias(films.categories, 7 * everything, everything), 1)


def test_disparity_is_0_for_the_same_bias_and_minus_1_for_a_category_left_out():
    assert bias_disparity(np.array([2.0, 0.0, 3.0]), np.array([2.0, 0.5, 1.5])).tolist() == [0, -1, 1]


def test_groups_of_users_are_distinguished():
    users, items = np.array([0, 1], dtype=np.int32), np.array([[2], [1]], dtype=np.int32)  # ann: cars, bob: brazil
    table = bias_table(films.categories, films, users, items, {"ann": "young", "bob": "old"})
    assert table["group"].unique(maintain_order=True).to_list() == ["all users", "old", "young"]
    young = {row["category"]: row for row in table.filter(group="young").iter_rows(named=True)}
    assert young["ServerMethod"]["bias"] == pytest.approx(1 / (1 / 4))
    assert young["Sci-Fi"]["bias_train"] == pytest.approx((2 / 2) / (2 / 4))
    assert young["Sci-Fi"]["bias_disparity"] == -1
    # No one young has a served film in training, so that there is nothing to compare with.
    assert young["ServerMethod"]["bias_train"] == 0
    assert young["ServerMethod"]["bias_disparity"] is None


def test_a_user_without_a_group_is_refused():
    no_users = np.empty(0, dtype=np.int32)
    with pytest.raises(DataError, match=r"1.*'bob'"):
        bias_table(films.categories, films, no_users, no_users.reshape(0, 1), {"ann": "young"})


def test_the_map_leads_to_the_papers_nine_and_keeps_them_as_they_are():
    assert set(foursquare_categories().values()) == set(NINE)
    assert all(foursquare_categories()[name] == name for name in NINE)


def test_kinds_of_places_become_the_nine_and_an_unknown_kind_stays_to_be_seen():
    places = Categories.from_lists([["Pizza Place"], ["Bar", "Jazz Club"], ["Teahouse on Mars"], []])
    gathered = top_categories(places)
    assert [gathered.of(item) for item in range(4)] == [
        ("Food",),
        ("Nightlife Spot", "Arts & Entertainment"),
        ("Teahouse on Mars",),
        (),
    ]


def test_all_402_kinds_of_the_italian_data_have_a_top_category(real_data, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    data = fr.load("foursquare-italy")
    assert len(data.categories.names) == 402
    assert set(data.categories.names) - foursquare_categories().keys() == set()
    assert set(top_categories(data.categories).names) == set(NINE)


def test_users_in_italy_prefer_the_categories_that_the_paper_says(real_data, monkeypatch):
    # Table 1 of FPL (2020). It does not print its map, and has 24 training venues more: so only the side of 1 is held.
    printed = [1.4130, 0.8221, 0.9317, 1.3559, 1.3292, 0.7868, 0.4171, 0.8482, 1.2678]
    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    train = fr.split_temporal(fr.load("foursquare-italy").keep_users(min_interactions=20), test=0.2).train
    categories = top_categories(train.categories)
    ours = bias(categories, train.popularity, (train.popularity > 0).astype(np.int64))
    assert list(categories.names) == sorted(NINE)
    assert (ours > 1).tolist() == [value > 1 for value in printed]


def test_a_file_of_categories_is_read_and_what_it_misses_is_counted(tmp_path):
    path = tmp_path / "genres.tsv"
    path.write_text("alien\tHorror\nalien\tSci-Fi\nheat\tCrime\r\n\nbrazil\tSci-Fi\n")
    categories, unknown = read_categories(path, films)
    assert [categories.of(item) for item in range(4)] == [("Horror", "Sci-Fi"), ("Sci-Fi",), (), ()]
    assert unknown == 1
    assert items_without_category(categories, films) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("alien\tHorror\nbrazil\n", "Line 2 .* other than two columns"),
        ("alien\tHorror\t3\n", "Line 1 .* other than two columns"),
        ("heat\tCrime\n", "None of the 1 items"),
        ("\n\n", "blank lines only"),
        ("", "is empty"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, content, words):
    path = tmp_path / "genres.tsv"
    path.write_text(content)
    with pytest.raises(BadFile, match=words):
        read_categories(path, films)
