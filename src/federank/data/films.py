"""Films that people know, and tastes that no one has: a small world for demonstrations.

A list of recommendations can only be judged by someone who knows what is in it, and no one knows the places of a
synthetic city. So here the catalogue is real (about 600 films: title, year, genres, director, saga, mood, titles in
German and Italian, and roughly how widely known), and only the users are synthetic:

1. Each person has a few interests. An interest is a film and what is like it: in genre, mood, era, director, saga.
2. Each likes some tens of films, drawn by that and by fame without repeats: first a half, then the other half, for
   which the sagas of the first half count again.

How well a method does here says nothing about real people: tastes are nothing but these attributes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from federank import checks
from federank._numerics.arrays import RealMatrix
from federank.data.interactions import Interactions
from federank.errors import SettingError

TABLE = Path(__file__).with_name("films.csv")
GENRE, MOOD, DIRECTOR, SAGA, DRAWN = 6.0, 5.0, 2.0, 4.0, 3.0
"""How much it counts that two films are alike in each of these; the last: that both are animated, or neither is."""
ERA = 5.0
"""How much it counts that two are of one era: on average, as some people care for it much and some not at all."""
YEARS = 8.0
"""How wide an era is."""
FAME = 0.4
"""How much it counts that a film is widely known."""
INTERESTS = 3
"""Interests of a person; one of them often outweighs the others."""
USUAL, SPREAD = 25, 0.55
"""How many films a person likes: half like more than this, and most between half and twice of it."""
FEWEST, MOST = 6, 150
LANGUAGES = ("de", "it")
"""The languages of further titles in the table."""


class Film(NamedTuple):
    """One line of the table."""

    title: str
    year: int
    genres: list[str]
    fame: int
    director: str
    saga: str  # empty where a film is of none
    moods: list[str]
    titles: dict[str, str]  # by language, where it is another

    @property
    def shown(self) -> str:
        """Title and year."""
        return f"{self.title} ({self.year})"


def read_films() -> list[Film]:
    """The table, in its order."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Film(
                title=line["title"],
                year=int(line["year"]),
                genres=line["genres"].split(" | "),
                fame=int(line["fame"]),
                director=line["director"],
                saga=line["saga"],
                moods=line["mood"].split(" | "),
                titles={language: text for language in LANGUAGES if (text := line[f"title_{language}"])},
            )
            for line in csv.DictReader(file)
        ]


def film_details() -> dict[int, dict[str, Any]]:
    """What a catalogue says of a film beside title and genres, by its number from 1: titles in other languages."""
    return {number: {"titles": film.titles} for number, film in enumerate(read_films(), start=1) if film.titles}


def films(people: int = 3000, seed: int = 1) -> Interactions:
    """This many synthetic people and the films they like: the same for the same seed."""
    if people < 1:
        raise SettingError(f"people is {people}; at least 1 is needed.")
    checks.check_seed(seed)
    known = read_films()
    rng = np.random.default_rng(seed)
    alike, near, same_saga = likeness(known), _near(known), _same(known, lambda film: film.saga)
    fame = FAME * np.array([film.fame for film in known])
    amounts = np.clip(rng.lognormal(np.log(USUAL), SPREAD, people), FEWEST, min(MOST, len(known))).astype(int)
    users, items = [], []
    for person, amount in enumerate(amounts.tolist()):
        centres = rng.choice(len(known), INTERESTS, p=np.exp(fame) / np.exp(fame).sum())
        weights = rng.dirichlet(np.full(INTERESTS, 0.5))
        eras = rng.exponential(ERA, (INTERESTS, 1))
        appeal = np.log(weights @ np.exp(alike[centres] + eras * near[centres])) + fame + rng.gumbel(size=len(known))
        first = np.argsort(-appeal, kind="stable")[: amount // 2]
        appeal += SAGA * same_saga[first].any(axis=0)
        appeal[first] = np.inf
        chosen = np.argsort(-appeal, kind="stable")[:amount]
        users += [person + 1] * amount
        items += (chosen + 1).tolist()
    titles = {number: film.shown for number, film in enumerate(known, start=1)}
    categories: dict[int, Sequence[str]] = {number: film.genres for number, film in enumerate(known, start=1)}
    return Interactions.from_columns(
        users, items, titles=titles, categories=categories, name="films (synthetic tastes)"
    )


def likeness(known: Sequence[Film]) -> RealMatrix:
    """How alike any two films are: the more attributes they share, the more."""
    return (
        GENRE * _overlap([film.genres for film in known])
        + MOOD * _overlap([film.moods for film in known])
        + DIRECTOR * _same(known, lambda film: film.director)
        + SAGA * _same(known, lambda film: film.saga)
        + DRAWN * _same(known, lambda film: str("Animation" in film.genres))
    )


def _near(known: Sequence[Film]) -> RealMatrix:
    """1 where two films are of the same year, and less the more years are between them."""
    years = np.array([film.year for film in known])
    near: RealMatrix = np.exp(-(((years[:, None] - years) / YEARS) ** 2) / 2)
    return near


def _overlap(sets: Sequence[Sequence[str]]) -> RealMatrix:
    """What two films have in common, as a share of all that either has; a rare word counts more than a common one."""
    words = sorted({word for one in sets for word in one})
    has = np.array([[word in one for word in words] for one in sets], dtype=float)
    weights = np.log(len(sets) / has.sum(axis=0))
    both, counts = (has * weights) @ has.T, has @ weights
    shares: RealMatrix = both / (counts[:, None] + counts - both)
    return shares


def _same(known: Sequence[Film], fact: Callable[[Film], str]) -> RealMatrix:
    """1 where two films share a fact that both have, else 0."""
    values = np.array([fact(film) for film in known])
    same: RealMatrix = ((values[:, None] == values) & (values != "")).astype(float)
    return same
