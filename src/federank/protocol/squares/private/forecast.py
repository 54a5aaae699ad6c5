"""What accuracy to expect under a promise: read off federations that were measured.

What noise costs depends on people x mu / sqrt(items), the signal (plan.py), and on the data: where popularity explains
much, as on MovieLens, much is left under any noise; where tastes do, as in the made-up cities, they drown first; and
few people with many items, as in Italy and on Amazon, lose most. So a forecast has a number for each kind of data.
Between measured federations it is a straight line over the logarithm; where none was measured there is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from federank.protocol.accountant import mu_for
from federank.protocol.squares.private.plan import planned, promise_of
from federank.protocol.sums.rounding import C_INT

Curve = tuple[tuple[float, float], ...]
"""Signals, and the share of P@10 that was kept there, against Frugal without noise on the same data."""

CITIES: Curve = (
    *((16.0, 0.365), (30.4, 0.476), (56.8, 0.619), (103.8, 0.719)),  # 2,624 people, 1,500 places, epsilon 1, 2, 4, 8
    *((160.0, 0.783), (304.0, 0.864), (567.0, 0.920), (1037.0, 0.951)),  # 26,229 people
    *((534.0, 0.915), (1012.0, 0.947), (1891.0, 0.962), (3458.0, 0.964)),  # 87,422 people
    *((1603.0, 0.960), (3037.0, 0.966), (5672.0, 0.964), (10375.0, 0.964)),  # 262,260 people, one seed
)
FILMS: Curve = (
    *((5.6, 0.568), (10.6, 0.731), (19.9, 0.768), (36.3, 0.815)),  # MovieLens 100K, epsilon 1, 2, 4, 8
    *((23.6, 0.919), (44.7, 0.944), (83.6, 0.975), (152.8, 0.985)),  # MovieLens 1M
)
ITALY: Curve = ((2.01, 0.227), (3.80, 0.439), (7.10, 0.572), (12.98, 0.652))  # 1,353 people, 25,498 venues
AMAZON: Curve = ((2.34, 0.005), (4.43, 0.016), (8.27, 0.080), (15.12, 0.275))  # 1,835 people, 34,526 items
"""Test parts, means of three seeds, noise of both servers: the study `privacy-price` (docs/results)."""
MEASURED_MESSAGES = 5
"""Of each person in all of them."""
_COST = 0.1
_ROUNDED = 0.005
"""Signals are noted to so much of themselves."""


class Forecast(NamedTuple):
    """A promise for a federation of a size, and what follows."""

    people: int
    items: int
    epsilon: float
    delta: float
    messages: int
    bound: int  # the length of a message in whole numbers
    sigma: float  # one server's noise, if all messages had the same
    sigmas: tuple[float, ...]  # as the messages really get it
    factors: int
    bytes_up: int  # the largest message
    kept_cities: float | None  # the share of P@10 without noise to expect, as in cities: tastes matter much
    kept_films: float | None  # the same, as on MovieLens: popularity explains much
    kept_italy: float | None  # the same, as in Italy: few people, many items
    kept_amazon: float | None  # the same, as on Amazon: few people, many items, and hardly anything is popular
    measured_messages: int  # how many everybody sent where these shares were measured
    affordable: float | None  # the smallest epsilon that costs less than a tenth, as in cities


def forecast(people: int, items: int, epsilon: float, delta: float, messages: int) -> Forecast:
    """What a promise takes and costs in a federation of this size."""
    mu = mu_for(epsilon, delta)
    plan = planned(mu, messages, people, items, None)
    signal = people * mu / math.sqrt(items)
    return Forecast(
        people=people,
        items=items,
        epsilon=promise_of(plan, messages, delta) or epsilon,
        delta=delta,
        messages=messages,
        bound=C_INT,
        sigma=math.sqrt(messages) / mu,
        sigmas=plan.sigmas(messages),
        factors=plan.factors,
        bytes_up=4 * items * (plan.factors - 1),
        kept_cities=kept_at(CITIES, signal),
        kept_films=kept_at(FILMS, signal),
        kept_italy=_kept_within(ITALY, signal),
        kept_amazon=_kept_within(AMAZON, signal),
        measured_messages=MEASURED_MESSAGES,
        affordable=affordable(people, items, delta),
    )


def kept_at(curve: Curve, signal: float) -> float | None:
    """The share of P@10 that federations of this signal kept, between those that were measured; never falling.

    Below the smallest signal nobody knows, and None is told; above the largest it is the last share.
    """
    if signal < min(curve)[0] * (1 - _ROUNDED):
        return None
    pools: list[tuple[list[float], list[float]]] = []
    for place, kept in sorted(curve):
        pools.append(([math.log(place)], [kept]))
        while len(pools) > 1 and np.mean(pools[-2][1]) > np.mean(pools[-1][1]):
            places, shares = pools.pop()
            pools[-1] = pools[-1][0] + places, pools[-1][1] + shares
    middles = [float(np.mean(places)) for places, _ in pools]
    return float(np.interp(math.log(signal), middles, [float(np.mean(shares)) for _, shares in pools]))


def _kept_within(curve: Curve, signal: float) -> float | None:
    """The same for a curve that ends long before it is flat, and says nothing of larger signals."""
    return kept_at(curve, signal) if signal <= max(curve)[0] * (1 + _ROUNDED) else None


def affordable(people: int, items: int, delta: float = 1e-6) -> float | None:
    """The smallest epsilon that costs less than a tenth, as in cities; None where none up to 16 does."""
    for epsilon in (0.1 * 1.1**step for step in range(54)):
        kept = kept_at(CITIES, people * mu_for(epsilon, delta) / math.sqrt(items))
        if kept is not None and kept >= 1 - _COST:
            return float(epsilon)
    return None
