"""Films that people know: the table is sound, and tastes are made up the same way every time."""

from collections import Counter

import numpy as np
import pytest

from federank.data.films import film_details, films, likeness, read_films
from federank.errors import SettingError


def test_the_table_names_each_film_once_with_a_year_and_genres():
    known = read_films()
    assert len(known) >= 550
    assert len({(film.title, film.year) for film in known}) == len(known)
    assert all(1900 < film.year < 2030 and film.genres and film.fame in (1, 2, 3) for film in known)
    assert all(film.director and 1 <= len(film.moods) <= 2 for film in known)
    assert Counter(film.saga for film in known if film.saga)["Star Wars"] == 5


def test_every_film_is_a_users_and_every_user_has_some():
    data = films(people=800, seed=3)
    assert data.n_users == 800
    assert data.n_items == len(read_films())
    assert np.bincount(data.users).min() >= 6
    assert "The Matrix (1999)" in data.titles


def test_the_same_seed_makes_the_same_users():
    one, same, other = films(people=30, seed=1), films(people=30, seed=1), films(people=30, seed=2)
    assert np.array_equal(one.items, same.items)
    assert not np.array_equal(one.items, other.items)


def test_titles_in_other_languages_are_for_the_catalogue():
    details = film_details()
    numbers = {film.title: number for number, film in enumerate(read_films(), start=1)}
    assert details[numbers["The Godfather"]]["titles"] == {"de": "Der Pate", "it": "Il padrino"}
    assert sum("it" in one["titles"] for one in details.values()) > 300
    assert all(text.strip() == text != "" for one in details.values() for text in one["titles"].values())


def test_sequels_are_most_alike():
    known = read_films()
    alike = likeness(known)
    np.fill_diagonal(alike, 0)
    for title, sequel in (
        ("The Godfather", "The Godfather Part II"),
        ("Toy Story", "Toy Story 2"),
        ("Shrek", "Shrek 2"),
    ):
        [place] = [number for number, film in enumerate(known) if film.title == title]
        assert known[int(alike[place].argmax())].title == sequel


def test_users_have_tastes():
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


def test_an_empty_data_set_is_not_enough():
    with pytest.raises(SettingError, match="at least 1"):
        films(people=0)
