"""The synthetic city: the same everywhere, whole at every size, plausible, and learnable."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federank.data import synthetic
from federank.data.splits import split_temporal
from federank.data.statistics import statistics
from federank.data.synthetic import city
from federank.errors import SettingError

NINE = (
    "Arts & Entertainment",
    "College & University",
    "Food",
    "Nightlife Spot",
    "Outdoors & Recreation",
    "Professional & Other Places",
    "Residence",
    "Shop & Service",
    "Travel & Transport",
)


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


def category_of_rows(data):
    return data.categories.codes[data.items]


def hour_of_rows(data):
    return data.times // 3600 % 24


def test_the_default_city_is_the_same_on_every_machine(town):
    assert town.fingerprint == "0732201eef1352fbbf74e8296e15ba94"
    assert town.titles[:2].tolist() == ["Eager Rabbit Trattoria, Birchwick", "Little Fern Bookshop, Birchwick"]


def test_the_same_seed_gives_the_same_city_and_another_seed_another(town):
    again, other = city(seed=1), city(seed=2)
    assert again.fingerprint == town.fingerprint
    assert again.titles.tolist() == town.titles.tolist()
    assert other.fingerprint != town.fingerprint
    assert other.titles.tolist() != town.titles.tolist()


def test_the_default_city_has_the_promised_size(town):
    assert_whole(town, people=1000, places=1500, checkins=40_000)


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
    assert town.categories.names == NINE
    assert np.diff(town.categories.starts).tolist() == [1] * 1500
    assert set(town.categories.codes.tolist()) == set(range(9))


def test_every_place_has_a_title_of_its_own_that_fits_its_category(town):
    assert len(set(town.titles.tolist())) == 1500
    bakeries = [place for place, title in enumerate(town.titles.tolist()) if "Bakery," in title]
    assert len(bakeries) > 10
    assert {town.categories.of(place) for place in bakeries} == {("Food",)}


def test_popularity_has_a_long_tail(town):
    numbers = statistics(town)
    assert numbers.top_10_percent > 0.3
    assert numbers.popularity.maximum > 10 * numbers.popularity.median


def test_most_users_have_twenty_checkins_and_a_few_have_very_many(town):
    sizes = town.profiles.sizes
    assert (sizes >= 20).mean() > 0.8
    assert sizes.min() >= 0.4 * sizes.mean()
    assert sizes.max() > 5 * sizes.mean()


def test_users_go_mostly_to_few_neighbourhoods_and_not_all_to_the_same(town):
    names, number = np.unique([title.rsplit(", ", 1)[1] for title in town.titles.tolist()], return_inverse=True)
    visits = np.zeros((town.n_users, len(names)))
    np.add.at(visits, (town.users, number[town.items]), 1)
    largest_share = visits.max(axis=1) / visits.sum(axis=1)
    assert len(names) > 8
    assert np.median(largest_share) > 2.5 * (visits.sum(axis=0).max() / visits.sum())
    assert len(np.unique(visits.argmax(axis=1))) == len(names)


def test_each_category_has_its_time_of_day(town):
    categories, hours = category_of_rows(town), hour_of_rows(town)
    late = (hours >= 20) | (hours < 4)
    by_day = (hours >= 8) & (hours < 18)
    nightlife, college = categories == NINE.index("Nightlife Spot"), categories == NINE.index("College & University")
    assert late[nightlife].mean() > 0.6
    assert late[college].mean() < 0.1
    assert by_day[college].mean() > 0.7


def test_the_newest_fifth_of_a_history_shows_the_same_taste_as_the_rest(town):
    def tastes(rows):
        counts = np.zeros((town.n_users, 9))
        np.add.at(counts, (town.users[rows], category_of_rows(town)[rows]), 1)
        return counts / counts.sum(axis=1, keepdims=True)

    def likeness(part):
        """How much of two shares over the categories is common, for each person, and for each with the next one."""
        inside, outside = tastes(part), tastes(~part)
        return [np.minimum(inside, other).sum(axis=1).mean() for other in (outside, np.roll(outside, 1, axis=0))]

    sizes = town.profiles.sizes
    position = np.arange(len(town)) - np.repeat(town.profiles.starts[:-1], sizes)
    in_newest_fifth = position >= np.repeat(sizes - sizes // 5, sizes)
    newest, any_fifth = np.zeros((2, len(town)), dtype=bool)
    newest[np.lexsort((town.times, town.users))] = in_newest_fifth
    any_fifth[np.lexsort((np.random.default_rng(1).random(len(town)), town.users))] = in_newest_fifth
    own, others = likeness(newest)
    assert own > 1.2 * others
    assert own == pytest.approx(likeness(any_fifth)[0], rel=0.02)


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
