"""The lists that the films demo gives to five tastes, by its first model as shipped.

A title is odd if a rule of its taste (genre, mood, years) does not hold for it. At most two of ten may be odd.
"""

import pytest

from federank.data.films import read_films
from federank.methods.frugal.recommender import Frugal
from federank.methods.predicting import enrol
from federank.service.demo import WORLDS
from federank.service.server.secure_config import USUAL_CLIP

pytestmark = pytest.mark.slow

KNOWN = read_films()
NUMBERS = {film.title: number for number, film in enumerate(KNOWN, start=1)}
MOST_ODD = 2


def is_horror(film):
    return "Horror" in film.genres or ("Thriller" in film.genres and "dark" in film.moods)


def is_animation(film):
    return "Animation" in film.genres


def is_of_the_70s(film):
    return 1967 <= film.year <= 1983


def is_thoughtful_science_fiction(film):
    return "Science Fiction" in film.genres and "thoughtful" in film.moods


def is_romantic(film):
    return "Romance" in film.genres or "romantic" in film.moods


TASTES = [
    (is_horror, ("The Exorcist", "Halloween", "Scream")),
    (is_horror, ("The Shining", "The Conjuring", "It")),
    (is_animation, ("Toy Story", "The Lion King", "Finding Nemo")),
    (is_animation, ("Spirited Away", "My Neighbour Totoro", "Your Name.")),
    (is_of_the_70s, ("The Godfather", "Taxi Driver", "One Flew Over the Cuckoo's Nest")),
    (is_of_the_70s, ("Rocky", "Annie Hall", "Jaws")),
    (is_thoughtful_science_fiction, ("2001: A Space Odyssey", "Blade Runner", "Arrival")),
    (is_thoughtful_science_fiction, ("Ex Machina", "Her", "Moon")),
    (is_romantic, ("Notting Hill", "When Harry Met Sally...", "Love Actually")),
    (is_romantic, ("Pretty Woman", "Bridget Jones's Diary", "Four Weddings and a Funeral")),
]


@pytest.fixture(scope="module")
def model():
    return Frugal(seed=1, clip=USUAL_CLIP).fit(WORLDS["films"].draw(seed=1))


def recommended(model, picks):
    return [KNOWN[int(one.item) - 1] for one in enrol(model, [NUMBERS[title] for title in picks]).recommend(10)]


@pytest.mark.parametrize(("rule", "picks"), TASTES, ids=[picks[0] for _, picks in TASTES])
def test_a_list_has_at_most_two_odd_titles(model, rule, picks):
    odd = [film.shown for film in recommended(model, picks) if not rule(film)]
    assert len(odd) <= MOST_ODD, odd


def test_sequels_follow(model):
    """One film of a saga is enough for another one to be on the list, for most that have several."""
    sagas = {saga: [film for film in KNOWN if film.saga == saga] for saga in {film.saga for film in KNOWN} - {""}}
    films = [film for members in sagas.values() if len(members) > 1 for film in members]
    followed = [any(other.saga == film.saga for other in recommended(model, (film.title,))) for film in films]
    assert sum(followed) >= 0.8 * len(films)
