"""Who goes where in the synthetic city, each person to different places.

A visit is a category by the person's taste, then a stretch of the map: mostly the places of that category in one
neighbourhood, near home more often than far, and now and then all places of that category. One place of the
stretch is picked by attraction.

A place that the person has been to before is no visit: the person chooses again, wandering further each time. Who
has seen everything that attracts them takes whatever places come next.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import IntVector, LongVector
from federank.data.city.draws import Stream, Words, draw_words, pick, running_total, uniform
from federank.data.city.map import CATEGORIES, CityMap, People, meet_people

FAR_AND_WIDE = 0.25
"""The share of visits that may go anywhere in the city, not only near home; it grows with each new attempt."""

ATTEMPTS = 8
"""How often a person chooses again before taking whatever places come next."""

AT_A_TIME = 1 << 20
"""About how many visits are worked on at once: enough to keep NumPy busy, few enough to stay small."""


def draw_visits(city_map: CityMap, amounts: LongVector, numbers: IntVector, seed: int) -> IntVector:
    """The number of each place visited: person after person, ascending for each, as many as each one's amount."""
    totals = running_total(amounts)
    items = np.empty(totals[-1], dtype=np.int32)
    for first, last in _stretches(totals):
        people = meet_people(city_map, last - first, (seed, Stream.PEOPLE, first))
        items[totals[first] : totals[last]] = _different_places(
            city_map, people, amounts[first:last], numbers, (seed, Stream.VISITS, first)
        )
    return items


def find_unvisited(users: IntVector, items: IntVector, places: int, seed: int) -> None:
    """Send one person to each place that nobody has found, instead of to a place that others go to (in place)."""
    unvisited = np.flatnonzero(np.bincount(items, minlength=places) == 0)
    if not len(unvisited):
        return
    first_visit = np.zeros(places, dtype=np.int64)
    first_visit[items[::-1]] = np.arange(len(items) - 1, -1, -1)
    spare = np.ones(len(items), dtype=bool)
    spare[np.delete(first_visit, unvisited)] = False
    rows = np.flatnonzero(spare)
    # One row from each of as many equal stretches: different ones, from all over the city.
    bounds = np.arange(len(unvisited) + 1) * len(rows) // len(unvisited)
    words = draw_words((seed, Stream.DISCOVERIES), len(unvisited))
    chosen = rows[bounds[:-1] + (uniform(words) * np.diff(bounds)).astype(np.int64)]
    items[chosen] = unvisited
    for person in np.unique(users[chosen]).tolist():
        items[slice(*np.searchsorted(users, [person, person + 1]))].sort()


def _stretches(totals: LongVector) -> Iterator[tuple[int, int]]:
    """Cut the people into stretches with about as many visits each as are worked on at once."""
    first, people = 0, len(totals) - 1
    while first < people:
        last = max(first + 1, int(np.searchsorted(totals, totals[first] + AT_A_TIME, side="right")) - 1)
        yield first, last
        first = last


def _different_places(
    city_map: CityMap, people: People, amounts: LongVector, numbers: IntVector, key: tuple[int, ...]
) -> IntVector:
    """As many different places for each person as its amount, ascending, person after person."""
    places = len(numbers)
    visits = np.empty(0, dtype=np.int64)  # person * places + place, ascending
    missing = amounts
    for attempt in range(ATTEMPTS):
        who = np.repeat(np.arange(len(amounts)), missing)
        far = FAR_AND_WIDE + (1 - FAR_AND_WIDE) * attempt / ATTEMPTS
        chosen = numbers[_choose(city_map, people, who, far, draw_words((*key, attempt), 4, len(who)))]
        visits = np.sort(np.concatenate((visits, who * places + chosen)))
        visits = visits[np.diff(visits, prepend=-1) > 0]
        missing = amounts - np.bincount(visits // places, minlength=len(amounts))
        if not missing.any():
            return (visits % places).astype(np.int32)
    rest = _whatever_comes_next(visits, amounts, missing, places, draw_words((*key, ATTEMPTS), len(amounts)))
    return (np.sort(np.concatenate((visits, rest))) % places).astype(np.int32)


def _choose(city_map: CityMap, people: People, who: LongVector, far: float, words: Words) -> LongVector:
    """One place for each visit, as its position on the map."""
    kinds, count = len(CATEGORIES), city_map.neighbourhoods
    category = pick(people.tastes, who * kinds, (who + 1) * kinds, words[0]) - who * kinds
    home = people.homes[who]
    goal = pick(city_map.travels, home * count, (home + 1) * count, words[1]) - home * count
    cell = category * count + goal
    first, last = city_map.cells[cell], city_map.cells[cell + 1]
    # All of the category, where the visit goes far and wide or the neighbourhood has nothing of the kind.
    anywhere = (uniform(words[2]) < far) | (first == last)
    first = np.where(anywhere, city_map.cells[category * count], first)
    last = np.where(anywhere, city_map.cells[(category + 1) * count], last)
    return pick(city_map.attractions, first, last, words[3])


def _whatever_comes_next(
    visits: LongVector, amounts: LongVector, missing: LongVector, places: int, words: Words
) -> LongVector:
    """What each person still misses: the next unvisited places, counted round from a random one.

    Among any `amount` places, at least `missing` have not been visited by somebody who misses that many.
    """
    short = np.flatnonzero(missing)
    lengths = amounts[short]
    steps = np.arange(lengths.sum()) - np.repeat(running_total(lengths)[:-1], lengths)
    starts = (words[short] % np.uint64(places)).astype(np.int64)
    offered = np.repeat(short, lengths) * places + (np.repeat(starts, lengths) + steps) % places
    fresh = offered[visits[np.searchsorted(visits, offered) % len(visits)] != offered]
    who = fresh // places
    turn = np.arange(len(fresh)) - np.searchsorted(who, who)
    kept: LongVector = fresh[turn < missing[who]]
    return kept
