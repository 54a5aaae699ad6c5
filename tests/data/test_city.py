"""The synthetic city: the same everywhere, whole at every size, plausible, and learnable."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federank.data import synthetic
from federank.data.splits import split_temporal
from federank.data.synthetic import city
from federank.errors import SettingError


@pytest.fixture(scope="module")
def town():
    return city()


@st.composite
def sizes(draw):
    people = draw(st.integers(1, 60))
    places = draw(st.integers(9, 60))
    checkins = draw(st.integers(max(people, places), people * places))
    return people, places, checkins, draw(st.integers(0, 2**32 - 1))


def assert_whole(data, people, places, checkins):
    """As many of each as were asked for, no one at home, no place empty, rows sorted and no pair twice."""
    assert (data.n_users, data.n_items, len(data)) == (people, places, checkins)
    assert data.profiles.sizes.min() >= 1
    assert data.popularity.min() >= 1
    assert (np.diff(data.users.astype(np.int64) * places + data.items) > 0).all()


def test_the_default_city_is_the_same_on_every_machine(town):
    assert town.fingerprint == "0732201eef1352fbbf74e8296e15ba94"
    assert town.titles[:2].tolist() == ["Eager Rabbit Trattoria, Birchwick", "Little Fern Bookshop, Birchwick"]


@pytest.mark.slow
@given(sizes())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_a_city_of_any_size_is_complete(size):
    people, places, checkins, seed = size
    assert_whole(city(people, places, checkins, seed), people, places, checkins)


def test_work_in_many_small_stretches_leaves_the_city_complete(monkeypatch):
    monkeypatch.setattr(synthetic, "AT_A_TIME", 700)
    data = city(people=300, places=200, checkins=9_000)
    assert_whole(data, people=300, places=200, checkins=9_000)
    # Each stretch has choices of its own: no two people are twins, and time does not repeat.
    assert len({data.profiles.of(person).tobytes() for person in range(300)}) == 300
    assert len(np.unique(data.times)) > 8_900


def test_memory_follows_the_checkins_and_not_users_times_places():
    people, places, checkins = 20_000, 20_000, 100_000
    tracemalloc.start()
    try:
        city(people, places, checkins)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < people * places / 4


def test_every_place_has_one_of_the_papers_nine_categories_and_each_occurs(town):
    assert town.categories.names == synthetic.CATEGORIES
    assert np.diff(town.categories.starts).tolist() == [1] * 1500
    assert set(town.categories.codes.tolist()) == set(range(9))


def test_every_place_has_a_title_of_its_own_that_fits_its_category(town):
    assert len(set(town.titles.tolist())) == 1500
    bakeries = [place for place, title in enumerate(town.titles.tolist()) if "Bakery," in title]
    assert len(bakeries) > 10
    assert {town.categories.of(place) for place in bakeries} == {("Food",)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_personalised_method_clearly_beats_the_most_popular_places(seed):
    split = split_temporal(city(seed=seed), test=0.2)
    train, test = (part.matrix().toarray() for part in (split.train, split.test))

    def precision_at_10(scores):
        top = np.argsort(np.where(train > 0, np.inf, -scores), axis=1, kind="stable")[:, :10]
        return np.take_along_axis(test, top, axis=1).mean()

    popularity = train.sum(axis=0)
    lengths = np.sqrt(np.maximum(popularity, 1))
    cosine = train.T @ train / np.outer(lengths, lengths)
    np.fill_diagonal(cosine, 0)
    most_popular = precision_at_10(np.broadcast_to(popularity, train.shape))
    item_neighbours = precision_at_10(train @ cosine)
    assert most_popular > 0.02
    assert item_neighbours > 2 * most_popular


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"people": 0}, "people is 0"),
        ({"places": 8}, "places is 8"),
        ({"checkins": 1499}, "checkins is 1,499; .* it must be from 1,500 .* to 1,500,000"),
        ({"people": 3, "places": 9, "checkins": 28}, "checkins is 28; .* from 9 .* to 27"),
        ({"seed": -1}, "seed is -1; an integer, from 0"),
    ],
)
def test_a_size_that_no_city_can_have_is_refused(wrong, sentence):
    with pytest.raises(SettingError, match=sentence):
        city(**wrong)


def test_another_seed_of_users_leaves_the_map_as_it_is():
    one, other = city(50, 80, 900), city(50, 80, 900, people_seed=2)
    assert (one.titles == other.titles).all()
    np.testing.assert_array_equal(one.categories.codes, other.categories.codes)
    assert not np.array_equal(one.items, other.items)
    np.testing.assert_array_equal(city(50, 80, 900, people_seed=1).items, one.items)
