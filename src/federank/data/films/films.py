"""Films that people know, and tastes that no one has: a small world for demonstrations.

A list of recommendations can only be judged by someone who knows what is in it, and no one knows the places of a
synthetic city. So here the catalogue is real (about 600 films: title, year, genres, and roughly how widely known), and
only the people are made up:

1. Each person cares for a few genres, a little for an era, and more for films that many know.
2. Each likes some tens of films, drawn by that without repeats.

How well a method does here says nothing about real people: tastes are nothing but genres and eras.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from federank import checks
from federank.data.interactions import Interactions
from federank.errors import SettingError

TABLE = Path(__file__).with_name("films.csv")
FEW_GENRES = 0.15
"""Concentration of a person's tastes over genres: the smaller, the fewer they care for."""
TASTE, FAME, ERA = 9.0, 0.8, 1.0
"""How much genres, being widely known and being of one's era count when a film is chosen."""
YEARS = 14.0
"""How wide an era is."""
USUAL, SPREAD = 25, 0.55
"""How many films a person likes: half like more than this, and most between half and twice of it."""
FEWEST, MOST = 6, 150


class Film(NamedTuple):
    """One line of the table."""

    title: str
    year: int
    genres: list[str]
    fame: int


def read_films() -> list[Film]:
    """The table, in its order."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return [Film(line["title"], int(line["year"]), line["genres"].split(" | "), int(line["fame"])) for line in lines]


def films(people: int = 3000, seed: int = 1) -> Interactions:
    """This many synthetic people and the films they like: the same for the same seed."""
    if people < 1:
        raise SettingError(f"people is {people}; at least 1 is needed.")
    checks.check_seed(seed)
    known = read_films()
    rng = np.random.default_rng(seed)
    genres = sorted({genre for film in known for genre in film.genres})
    of_genre = np.array([[genre in film.genres for genre in genres] for film in known]) / 1.0
    of_genre /= of_genre.sum(axis=1, keepdims=True)
    years, fame = np.array([film.year for film in known]), np.array([film.fame for film in known])
    tastes = rng.dirichlet(np.full(len(genres), FEW_GENRES), people)
    eras = rng.normal(1998, 13, people)
    amounts = np.clip(rng.lognormal(np.log(USUAL), SPREAD, people), FEWEST, min(MOST, len(known))).astype(int)
    users, items = [], []
    for person in range(people):
        near = np.exp(-(((years - eras[person]) / YEARS) ** 2) / 2)
        drawn = TASTE * (of_genre @ tastes[person]) + FAME * fame + ERA * near + rng.gumbel(size=len(known))
        chosen = np.argsort(-drawn, kind="stable")[: amounts[person]]
        users += [person + 1] * len(chosen)
        items += (chosen + 1).tolist()
    titles = {number: f"{film.title} ({film.year})" for number, film in enumerate(known, start=1)}
    categories: dict[int, Sequence[str]] = {number: film.genres for number, film in enumerate(known, start=1)}
    return Interactions.from_columns(
        users, items, titles=titles, categories=categories, name="films (synthetic tastes)"
    )
