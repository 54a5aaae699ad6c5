"""A synthetic city: synthetic people who check in at synthetic places. None of it is real data.

Where no data set is installed, the city is: for a first try, for demonstrations, for tests, and for measuring how
things grow. It looks like the check-in data of the papers (Foursquare): places in nine categories, popularity
with a long tail, most people active a little and a few very much, and a time for each check-in.

1. Draw the map: neighbourhoods, places, their attraction and their names.
2. Decide how many places each person goes to.
3. Each visit: a category by the person's taste; then, mostly, a neighbourhood near home and one of its places by
   attraction, and now and then any place of that category in the city. A place seen before is no visit:
   the person chooses again.
4. A place that no one has found takes a visit from one that many have.
5. Each visit gets a day of the year and an hour that suits the category.

A person's newest visits follow the same taste as the oldest. So a method that learns tastes and neighbourhoods
beats the most popular places, and how well it does says nothing about how it would do on real people.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank import checks
from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank.data.interactions import Categories, Interactions, frozen, text_ids
from federank.errors import SettingError

# Names of places and neighbourhoods: "Amber Otter Bakery, Willowgate".
#
# A place's name is a colour or mood, a creature or thing, the kind of place, and its neighbourhood. The words are
# combined by number and never repeat: the n-th place of a category takes the combination n * STRIDE, counted round. A
# likeness to any real place is chance.


_WORDS = tomllib.loads(Path(__file__).with_name("synthetic_names.toml").read_text(encoding="utf-8"))
MOODS, THINGS, KINDS = _WORDS["moods"], _WORDS["things"], _WORDS["kinds"]
"""`KINDS`: the nine top categories of Foursquare as the papers name them, and what places of each are called."""
_STARTS, _ENDS = _WORDS["district_starts"], _WORDS["district_ends"]

STRIDE = 22_247
"""A prime, so that counting by it meets every combination before any comes again."""


def district_names(count: int, offset: int) -> list[str]:
    """Different names for this many neighbourhoods; another offset gives other names."""
    combinations = len(_STARTS) * len(_ENDS)
    names = []
    for number in range(count):
        start, end = divmod((offset + number) * STRIDE % combinations, len(_ENDS))
        names.append(_STARTS[start] + _ENDS[end] + _again(number // combinations))
    return names


def place_names(category: str, neighbourhoods: Iterable[str], offset: int) -> list[str]:
    """Different names for the places of one category, given the name of each one's neighbourhood."""
    kinds = KINDS[category]
    combinations = len(MOODS) * len(THINGS) * len(kinds)
    names = []
    for number, neighbourhood in enumerate(neighbourhoods):
        words, kind = divmod((offset + number) * STRIDE % combinations, len(kinds))
        mood, thing = divmod(words, len(THINGS))
        again = _again(number // combinations)
        names.append(f"{MOODS[mood]} {THINGS[thing]} {kinds[kind]}{again}, {neighbourhood}")
    return names


def _again(times: int) -> str:
    """The number that distinguishes equal names once all combinations are used up: 2, 3, ..."""
    return f" {times + 1}" if times else ""


# Choices for the synthetic city that come out the same on every machine.


Words = NDArray[np.uint64]


class Stream(IntEnum):
    """What the words of a stream are for: the part of its key after the seed."""

    SIZES = 0
    POINTS = 1
    PLACES = 2
    RANKS = 3
    NAMES = 4
    NUMBERS = 5
    ACTIVITY = 6
    PEOPLE = 7
    VISITS = 8
    DISCOVERIES = 10
    TIMES = 11


ONE = 1 << 20
"""What a weight of 1.0 is as an integer: weights down to a millionth are distinguished."""


def draw_words(key: tuple[int, ...], *shape: int) -> Words:
    """Raw 64-bit words from the stream of this key."""
    stream = np.random.PCG64(np.random.SeedSequence(key))
    words: Words = np.asarray(stream.random_raw(int(np.prod(shape)))).reshape(shape)
    return words


def uniform(words: Words) -> RealVector:
    """Numbers in [0, 1): the upper 53 bits of each word, all that a float holds."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffle(key: tuple[int, ...], count: int) -> LongVector:
    """0, 1, ..., count - 1 in random order."""
    return np.argsort(draw_words(key, count), kind="stable")


def full_weights(weights: RealVector) -> LongVector:
    """Weights as integers, none of them 0."""
    return np.maximum(np.rint(weights * ONE), 1).astype(np.int64)


def running_total(weights: LongVector) -> LongVector:
    """0, the first weight, the sum of the first two, ..., the sum of all."""
    return np.concatenate(([0], np.cumsum(weights, dtype=np.int64)))


def pick(totals: LongVector, first: LongVector | int, last: LongVector | int, words: Words) -> LongVector:
    """For each word one position from first (included) to last (excluded), by weight, given the running totals."""
    below = totals[first]
    tickets = below + (uniform(words) * (totals[last] - below)).astype(np.int64)
    return np.searchsorted(totals, tickets, side="right") - 1


def apportion(total: int, weights: LongVector, limit: int) -> LongVector:
    """Share out integers by weight: at least 1 and at most `limit` to each, `total` in all."""
    shares = np.minimum(1 + (total - len(weights)) * weights // int(weights.sum()), limit)
    while (left := total - int(shares.sum())) > 0:
        # What rounding and the limit left over goes round evenly among those below the limit.
        open_to_more = np.flatnonzero(shares < limit)[:left]
        shares[open_to_more] = np.minimum(shares[open_to_more] + left // len(open_to_more), limit)
    return shares


# The ground the synthetic city stands on: its neighbourhoods, its places, and what its people are like.


CATEGORIES = tuple(KINDS)
SHARE_OF_PLACES = (6, 5, 30, 9, 8, 14, 6, 15, 7)
SHARE_OF_VISITS = (9, 4, 28, 12, 11, 11, 2, 13, 10)
"""In per cent, in the order of `CATEGORIES`: some kinds of place are visited more often than their number suggests."""

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
    sizes = full_weights(1 + 3 * uniform(draw_words((seed, Stream.SIZES), count)))
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
        # A long tail: the place of rank r attracts 1 / (1 + 100 r / places) as much as the first.
        attractions=running_total(full_weights(1 / (1 + 100 * shuffle((seed, Stream.RANKS), places) / places))),
        homes=homes,
        travels=running_total(_residuals(sizes, seed).ravel()),
        categories=categories.astype(np.int32),
        titles=_titles(per_category, neighbourhoods, seed),
    )


def meet_users(city_map: CityMap, count: int, key: tuple[int, ...]) -> People:
    """Give each of these people a home and a taste."""
    words = draw_words(key, 2 + len(CATEGORIES), count)
    homes = pick(city_map.homes, 0, city_map.neighbourhoods, words[0])
    usual = np.array(SHARE_OF_VISITS) * np.array(TASTES)
    common = usual[(words[1] % np.uint64(len(TASTES))).astype(np.int64)]
    # Each person likes each category a quarter to nine quarters as much as others of the same common taste.
    own = full_weights(common * (0.25 + 2 * uniform(words[2:]).T))
    return People(homes, running_total(own.ravel()))


def activity(people: int, places: int, checkins: int, seed: int) -> LongVector:
    """How many places each person goes to: four tenths of the mean at least, and a long tail (Lomax, shape 4)."""
    rest = 1 - (np.arange(people) + 0.5) / people
    tail = 3 * (1 / np.sqrt(np.sqrt(rest)) - 1)
    amounts = apportion(checkins, full_weights(0.4 + 0.6 * tail), limit=places)
    return amounts[shuffle((seed, Stream.ACTIVITY), people)]


def _residuals(sizes: LongVector, seed: int) -> LongVector:
    """How strongly each home (row) draws its people to each neighbourhood: by size, and falling with distance."""
    x, y = uniform(draw_words((seed, Stream.POINTS), 2, len(sizes)))
    distances = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    # Distances are measured in mean widths of a neighbourhood: one of N covers 1 / N of the square.
    nearness = 1 / (1 + 4 * len(sizes) * distances) ** 2
    return full_weights(nearness * (sizes / sizes.max()))


def _titles(per_category: LongVector, neighbourhoods: LongVector, seed: int) -> list[str]:
    offset, *offsets = (draw_words((seed, Stream.NAMES), 1 + len(CATEGORIES)) % np.uint64(1 << 20)).tolist()
    names = district_names(int(neighbourhoods.max()) + 1, offset)
    parts = np.split(neighbourhoods, np.cumsum(per_category)[:-1])
    return [
        title
        for category, part, start in zip(CATEGORIES, parts, offsets, strict=True)
        for title in place_names(category, (names[number] for number in part.tolist()), start)
    ]


# Who goes where in the synthetic city, each person to different places.


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
        people = meet_users(city_map, last - first, (seed, Stream.PEOPLE, first))
        items[totals[first] : totals[last]] = _different_places(
            city_map, people, amounts[first:last], numbers, (seed, Stream.VISITS, first)
        )
    return items


def find_unvisited(users: IntVector, items: IntVector, places: int, seed: int) -> None:
    """Send one person to each place that no one has found, instead of to a place that others go to (in place)."""
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

    Among any `amount` places, at least `missing` have not been visited by someone who misses that many.
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
    met exactly. People and places have integers as ids; places have titles and one category each. With a
    `people_seed` of its own the same places are visited by other people.
    """
    people_seed = seed if people_seed is None else people_seed
    _check(people, places, checkins, seed)
    checks.check_seed(people_seed)
    city_map = draw_map(places, seed)
    amounts = activity(people, places, checkins, people_seed)
    numbers = shuffle((seed, Stream.NUMBERS), places).astype(np.int32)
    users = np.repeat(np.arange(people, dtype=np.int32), amounts)
    items = draw_visits(city_map, amounts, numbers, people_seed)
    find_unvisited(users, items, places, people_seed)
    order = np.argsort(numbers)
    categories = city_map.categories[order]
    return Interactions(
        users=frozen(users),
        items=frozen(items),
        user_ids=frozen(np.arange(1, people + 1)),
        item_ids=frozen(np.arange(1, places + 1)),
        times=frozen(_times(items, categories, people_seed)),
        titles=frozen(text_ids(city_map.titles)[order]),
        categories=Categories(CATEGORIES, frozen(np.arange(places + 1)), frozen(categories)),
        name="city (synthetic)",
    )


def _check(people: int, places: int, checkins: int, seed: int) -> None:
    checks.check_int("people", people, 1)
    checks.check_int("places", places, len(CATEGORIES))  # one in each category
    checks.check_int("checkins", checkins, 1)
    if not max(people, places) <= checkins <= people * places:
        raise SettingError(
            f"checkins is {checkins:,}; with {people:,} people and {places:,} places it must be from "
            f"{max(people, places):,} (everyone checks in, every place is visited) to {people * places:,} "
            "(everyone has been everywhere)."
        )
    checks.check_seed(seed)


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
