"""The ground the synthetic city stands on: its neighbourhoods, its places, and what its people are like.

neighbourhoods   points on a square, some larger than others; people go to near and large ones most
places           each in one of nine categories and in one neighbourhood, with a long-tailed attraction
people           each with a home, one of eight common tastes bent to their own, and an amount of going out
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector, LongVector
from federank.data.city.draws import (
    Stream,
    apportion,
    draw_words,
    pick,
    running_total,
    shuffle,
    uniform,
    whole_weights,
)
from federank.data.city.names import KINDS, neighbourhood_names, place_names

CATEGORIES = tuple(KINDS)
SHARE_OF_PLACES = (6, 5, 30, 9, 8, 14, 6, 15, 7)
SHARE_OF_VISITS = (9, 4, 28, 12, 11, 11, 2, 13, 10)
"""In per cent, in the order of `CATEGORIES`: some kinds of place are visited more than their number tells."""

TASTES = (
    # A&E, C&U, Food, NS, O&R, P&OP, Residence, S&S, T&T
    (1, 12, 2, 4, 1, 1, 2, 1, 1),  # studies
    (1, 1, 2, 12, 1, 1, 1, 1, 2),  # stays out late
    (8, 2, 2, 1, 1, 1, 1, 1, 1),  # loves the arts
    (1, 1, 1, 1, 10, 1, 1, 1, 2),  # is always outdoors
    (1, 1, 1, 1, 1, 8, 2, 1, 4),  # is always at work
    (1, 1, 1, 1, 2, 1, 2, 8, 1),  # knows every shop
    (1, 1, 8, 2, 1, 1, 1, 2, 1),  # eats out
    (2, 1, 2, 1, 2, 1, 1, 1, 10),  # is passing through
)
"""How many times as often as usual a person of each common taste goes to each category."""


class CityMap(NamedTuple):
    """Places in the order of category, then neighbourhood, so that each cell of the two is one stretch of them."""

    neighbourhoods: int
    cells: LongVector  # the places of category c in neighbourhood n start at cells[c * neighbourhoods + n]
    attractions: LongVector  # running total over the places
    homes: LongVector  # running total over the neighbourhoods, as places to live in
    travels: LongVector  # running total over pairs (home, neighbourhood to go to)
    categories: IntVector  # of each place
    titles: list[str]  # of each place


class People(NamedTuple):
    """What a stretch of the city's people are like."""

    homes: LongVector  # each one's neighbourhood
    tastes: LongVector  # running total over pairs (person, category)


def draw_map(places: int, seed: int) -> CityMap:
    """Lay out the neighbourhoods and put each place into one."""
    count = max(1, round(places**0.5 / 3))
    sizes = whole_weights(1 + 3 * uniform(draw_words((seed, Stream.SIZES), count)))
    homes = running_total(sizes)
    per_category = apportion(places, np.array(SHARE_OF_PLACES), limit=places)
    categories = np.repeat(np.arange(len(CATEGORIES)), per_category)
    neighbourhoods = pick(homes, 0, count, draw_words((seed, Stream.PLACES), places))
    order = np.argsort(categories * count + neighbourhoods, kind="stable")
    neighbourhoods = neighbourhoods[order]
    in_cells = np.bincount(categories * count + neighbourhoods, minlength=len(CATEGORIES) * count)
    return CityMap(
        neighbourhoods=count,
        cells=running_total(in_cells),
        attractions=running_total(_attractions(places, seed)),
        homes=homes,
        travels=running_total(_pulls(sizes, seed).ravel()),
        categories=categories.astype(np.int32),
        titles=_titles(per_category, neighbourhoods, seed),
    )


def meet_people(city_map: CityMap, count: int, key: tuple[int, ...]) -> People:
    """Give each of these people a home and a taste."""
    words = draw_words(key, 2 + len(CATEGORIES), count)
    homes = pick(city_map.homes, 0, city_map.neighbourhoods, words[0])
    usual = np.array(SHARE_OF_VISITS) * np.array(TASTES)
    common = usual[(words[1] % np.uint64(len(TASTES))).astype(np.int64)]
    # Each person likes each category a quarter to nine quarters as much as others of the same common taste.
    own = whole_weights(common * (0.25 + 2 * uniform(words[2:]).T))
    return People(homes, running_total(own.ravel()))


def activity(people: int, places: int, checkins: int, seed: int) -> LongVector:
    """How many places each person goes to: four tenths of the mean at least, and a long tail (Lomax, shape 4)."""
    rest = 1 - (np.arange(people) + 0.5) / people
    tail = 3 * (1 / np.sqrt(np.sqrt(rest)) - 1)
    amounts = apportion(checkins, whole_weights(0.4 + 0.6 * tail), limit=places)
    return amounts[shuffle((seed, Stream.ACTIVITY), people)]


def _attractions(places: int, seed: int) -> LongVector:
    """A long tail: the place of rank r attracts 1 / (1 + 100 r / places) as much as the first."""
    ranks = shuffle((seed, Stream.RANKS), places)
    return whole_weights(1 / (1 + 100 * ranks / places))


def _pulls(sizes: LongVector, seed: int) -> LongVector:
    """How strongly each home (row) draws its people to each neighbourhood: by size, and falling with distance."""
    x, y = uniform(draw_words((seed, Stream.POINTS), 2, len(sizes)))
    squares = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    # Distances are measured in mean widths of a neighbourhood: one of N covers 1 / N of the square.
    nearness = 1 / (1 + 4 * len(sizes) * squares) ** 2
    return whole_weights(nearness * (sizes / sizes.max()))


def _titles(per_category: LongVector, neighbourhoods: LongVector, seed: int) -> list[str]:
    offset, *offsets = (draw_words((seed, Stream.NAMES), 1 + len(CATEGORIES)) % np.uint64(1 << 20)).tolist()
    names = neighbourhood_names(int(neighbourhoods.max()) + 1, offset)
    parts = np.split(neighbourhoods, np.cumsum(per_category)[:-1])
    return [
        title
        for category, part, start in zip(CATEGORIES, parts, offsets, strict=True)
        for title in place_names(category, (names[number] for number in part.tolist()), start)
    ]
