"""Films that people know: the table is sound, and tastes are made up the same way every time."""

import numpy as np
import pytest

from federank.data.films.films import films, read_films
from federank.errors import SettingError


def test_the_table_names_each_film_once_with_a_year_and_genres():
    known = read_films()
    assert len(known) >= 550
    assert len({(film.title, film.year) for film in known}) == len(known)
    assert all(1900 < film.year < 2030 and film.genres and film.fame in (1, 2, 3) for film in known)
    assert ("The Matrix", 1999) in {(film.title, film.year) for film in known}


def test_every_film_is_somebodys_and_everybody_has_some():
    data = films(people=800, seed=3)
    assert data.n_users == 800
    assert data.n_items == len(read_films())
    assert np.bincount(data.users).min() >= 6
    assert "The Matrix (1999)" in data.titles


def test_the_same_seed_makes_the_same_people():
    one, same, other = films(people=30, seed=1), films(people=30, seed=1), films(people=30, seed=2)
    assert np.array_equal(one.items, same.items)
    assert not np.array_equal(one.items, other.items)


def test_people_have_tastes():
    """Of a person's films more share a genre than of as many films drawn from everyone's."""
    data = films(people=300, seed=1)
    genres = [set(film.genres) for film in read_films()]
    numbers = data.item_ids - 1

    def alike(items):
        pairs = [(one, other) for index, one in enumerate(items) for other in items[:index]]
        return np.mean([bool(genres[numbers[one]] & genres[numbers[other]]) for one, other in pairs])

    rng = np.random.default_rng(0)
    own = [alike(data.items[data.users == user][:10]) for user in range(100)]
    anybody = [alike(rng.choice(data.items, 10)) for _ in range(100)]
    assert np.mean(own) > 1.3 * np.mean(anybody)


def test_nobody_is_not_enough():
    with pytest.raises(SettingError, match="at least 1"):
        films(people=0)
