"""Real data sets are read to the last row: the counts are those of their publishers."""

import numpy as np
import pytest

from federank.data.loading import load


@pytest.mark.parametrize(
    ("name", "interactions", "users", "items", "first", "last"),
    [
        ("ml-1m", 1_000_209, 6_040, 3_706, 956703932, 1046454590),
        ("ml-100k", 100_000, 943, 1_682, 874724710, 893286638),
        ("amazon-digital-music", 75_932, 1_835, 41_488, 894931200, 1406073600),
        ("foursquare-italy", 89_616, 6_596, 34_332, 1333476012, 1379371246),
    ],
)
def test_a_known_set_has_its_published_size(name, interactions, users, items, first, last, real_data, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    data = load(name)
    assert (len(data), data.n_users, data.n_items) == (interactions, users, items)
    assert (data.times.min(), data.times.max()) == (first, last)


def test_movielens_1m_has_titles_in_their_own_letters_and_eighteen_genres(real_data):
    data = load(real_data / "ml-1m" / "ml-1m.zip")
    assert data.titles[data.item_index(73)] == "Misérables, Les (1995)"
    assert data.categories.of(data.item_index(1)) == ("Animation", "Children's", "Comedy")
    assert len(data.categories.names) == 18
    assert "" not in data.titles.tolist()
    assert np.unique(data.ratings).tolist() == [1, 2, 3, 4, 5]


def test_movielens_100k_has_nineteen_genres(real_data):
    data = load(real_data / "ml-100k" / "ml-100k.zip")
    assert data.titles[data.item_index(2)] == "GoldenEye (1995)"
    assert data.categories.of(data.item_index(2)) == ("Action", "Adventure", "Thriller")
    assert len(data.categories.names) == 19


def test_foursquare_venues_have_their_kinds(real_data):
    data = load(real_data / "foursquare-italy" / "Italy.tsv.gz")
    assert data.categories.of(data.item_index("4cd834967d4546886f7aeaed")) == ("Gym",)
    assert len(data.categories.names) == 402
    assert data.ratings is None
