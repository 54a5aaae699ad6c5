"""A synthetic city: made-up people who check in at made-up places. None of it is real data.

Where no data set is at hand, the city is: for a first try, for demonstrations, for tests, and for measuring how
things grow. It looks like the check-in data of the papers (Foursquare): places in nine categories, popularity
with a long tail, most people active a little and a few very much, and a time for each check-in.

1. Draw the map: neighbourhoods, places, their attraction (map.py) and their names (names.py).
2. Decide how many places each person goes to.
3. Each visit: a category by the person's taste; then, mostly, a neighbourhood near home and one of its places by
   attraction, and now and then any place of that category in the whole city. A place seen before is no visit:
   the person chooses again.
4. A place that nobody has found takes a visit from one that many have.
5. Each visit gets a day of the year and an hour that suits the category.

A person's newest visits follow the same taste as the oldest. So a method that learns tastes and neighbourhoods
beats the most popular places, and how well it does says nothing about how it would do on real people.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank import checks
from federank.arrays import IntVector, LongVector
from federank.data.categories import Categories
from federank.data.city.draws import Stream, draw_words, pick, running_total, shuffle, uniform
from federank.data.city.map import CATEGORIES, activity, draw_map
from federank.data.city.visits import AT_A_TIME, draw_visits, find_unvisited
from federank.data.interactions import Interactions
from federank.errors import SettingError

FIRST_SECOND = 1_672_531_200
DAYS = 365
"""The city's year: 2023, counted in seconds since 1970 by the city's own clock."""

HOURS = (
    # 0 to 23 o'clock: how busy each hour is, from 0 to 9
    "100000000134454346899862",  # Arts & Entertainment
    "000000015999879987443210",  # College & University
    "100000135423698422478632",  # Food
    "875200000000011223456899",  # Nightlife Spot
    "000001256677666778875200",  # Outdoors & Recreation
    "000000149997689985310000",  # Professional & Other Places
    "421000244211222345788876",  # Residence
    "000000013678767789973100",  # Shop & Service
    "100012699644455678865432",  # Travel & Transport
)


def city(
    people: int = 1000, places: int = 1500, checkins: int = 40_000, seed: int = 1, people_seed: int | None = None
) -> Interactions:
    """A synthetic city of this size: the same for the same seed, on every machine.

    Every person checks in somewhere, every place is visited, and no person visits a place twice; `checkins` is
    met exactly. People and places have whole numbers as ids; places have titles and one category each. With a
    `people_seed` of its own the same places are visited by other people.
    """
    people_seed = seed if people_seed is None else people_seed
    _check(people, places, checkins, seed)
    checks.seed(people_seed)
    city_map = draw_map(places, seed)
    amounts = activity(people, places, checkins, people_seed)
    numbers = shuffle((seed, Stream.NUMBERS), places).astype(np.int32)
    users = np.repeat(np.arange(people, dtype=np.int32), amounts)
    items = draw_visits(city_map, amounts, numbers, people_seed)
    find_unvisited(users, items, places, people_seed)
    order = np.argsort(numbers)
    categories = city_map.categories[order]
    return Interactions(
        users=_frozen(users),
        items=_frozen(items),
        user_ids=_frozen(np.arange(1, people + 1)),
        item_ids=_frozen(np.arange(1, places + 1)),
        times=_frozen(_times(items, categories, people_seed)),
        titles=_frozen(np.array(city_map.titles, dtype=np.dtypes.StringDType())[order]),
        categories=Categories(CATEGORIES, _frozen(np.arange(places + 1)), _frozen(categories)),
        name="city (synthetic)",
    )


def _check(people: int, places: int, checkins: int, seed: int) -> None:
    checks.whole("people", people, 1)
    checks.whole("places", places, len(CATEGORIES))  # one in each category
    checks.whole("checkins", checkins, 1)
    if not max(people, places) <= checkins <= people * places:
        raise SettingError(
            f"checkins is {checkins:,}; with {people:,} people and {places:,} places it must be from "
            f"{max(people, places):,} (everybody checks in, every place is visited) to {people * places:,} "
            "(everybody has been everywhere)."
        )
    checks.seed(seed)


def _times(items: IntVector, categories: IntVector, seed: int) -> LongVector:
    """A second of the year for each visit: any day, and an hour that suits the place's category."""
    busy = running_total(np.array([int(digit) for hours in HOURS for digit in hours]))
    times = np.empty(len(items), dtype=np.int64)
    for first in range(0, len(items), AT_A_TIME):
        rows = slice(first, first + AT_A_TIME)
        category = categories[items[rows]].astype(np.int64)
        words = draw_words((seed, Stream.TIMES, first), 3, len(category))
        day = (uniform(words[0]) * DAYS).astype(np.int64)
        hour = pick(busy, 24 * category, 24 * category + 24, words[1]) - 24 * category
        second = (uniform(words[2]) * 3600).astype(np.int64)
        times[rows] = FIRST_SECOND + 86_400 * day + 3600 * hour + second
    return times


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
