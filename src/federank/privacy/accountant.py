"""The accountant: the differential privacy guarantee of noise, per user, over all rounds.

In a round a user adds an upload of length at most C, and noise of deviation z C hides it. A user with any other
history in the same place would have added another upload of length at most C: what the noise has to hide is a
difference of at most 2 C, so a round is a Gaussian mechanism of multiplier z / 2. Rounds are composed by their Renyi
divergences (dp-accounting), one after the other, each with what was published before. That the server selects clients
at random does not count as privacy, since the server knows its selection.

    epsilon at delta:  whatever is seen is at most e^epsilon times as likely, but for a probability of delta

Where a user's messages are replaced by zeros instead (secure sums), what the noise has to hide is C, and
the figure has a closed form. Messages of length at most C under noise of deviation s_1 C, s_2 C, ... leak together
exactly as much as one Gaussian mechanism of mu = sqrt(1 / s_1^2 + 1 / s_2^2 + ...), whatever each message was made from
(Dong, Roth and Su, Gaussian differential privacy, 2022, corollary 3.3), and

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)

is the smallest that is true of it (Balle and Wang, 2018, theorem 8). No bound is lost on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from federank.extras import need


@cache
def epsilon_of(noise: float, rounds: int, delta: float) -> float:
    """Epsilon at delta after this many rounds with noise of this many times the clip."""
    if rounds == 0:
        return 0.0
    need("privacy", "The epsilon of noise")
    from dp_accounting import dp_event, rdp

    accountant = rdp.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(noise / 2), rounds)
    return float(accountant.get_epsilon(delta))


def mu_of_noise(sigmas: Iterable[float]) -> float:
    """What messages under noise of this many times their largest length leak together, as one Gaussian mechanism."""
    return math.sqrt(sum(sigma**-2 for sigma in sigmas))


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The smallest delta that is true of a Gaussian mechanism at this epsilon."""
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(0.0, epsilon + second - first))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon that is true of a Gaussian mechanism at this delta; 0 for no mechanism at all."""
    if mu == 0 or delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    # delta falls with epsilon; the Chernoff bound's epsilon is always enough.
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return _bisected(lambda epsilon: delta_of_mu(mu, epsilon) > delta, 0.0, high)


@cache
def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu of which epsilon is true at delta: the leakage of all uploads together."""
    high = 1.0
    while epsilon_of_mu(high, delta) < epsilon:
        high *= 2
    return _bisected(lambda mu: epsilon_of_mu(mu, delta) < epsilon, 0.0, high, upper=False)


def _bisected(is_below: Callable[[float], bool], low: float, high: float, *, upper: bool = True) -> float:
    """Where a condition stops to hold, to the last bits, on the side asked for."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high if upper else low
        low, high = (middle, high) if is_below(middle) else (low, middle)


# Randomised response: a yes or no that its owner can always deny, and what many of them say together (Warner, 1965).


TRUTH = 0.75
"""How often an answer is the truth."""
EPSILON = math.log(TRUTH / (1 - TRUTH))
MOST_ANSWERS = 5
"""Answers that a client ever gives; it counts them, and so does the server."""
ABSOLUTE, SQUARED = MEASURES = ("absolute", "squared")
"""Where ratings are predicted: whether an answer is about how far off one is, or about the square of that."""
_CONFIDENCE = 1.96  # deviations of a 95 % interval


class Estimate(NamedTuple):
    """A share of true yes, and its 95 % interval; the interval may reach beyond 0 and 1."""

    share: float
    low: float
    high: float


def answered(truth: bool, chance: float) -> bool:
    """What is said, by a draw from 0 to 1."""
    return truth if chance < TRUTH else not truth


def estimate(answers: int, yes: int) -> Estimate:
    """What this many answers, this many of them yes, say together."""
    said = yes / answers
    share = (said - (1 - TRUTH)) / (2 * TRUTH - 1)
    # One yes and one no more than there were: no interval is of width 0.
    smoothed = (yes + 1) / (answers + 2)
    far = _CONFIDENCE * math.sqrt(smoothed * (1 - smoothed) / answers) / (2 * TRUTH - 1)
    return Estimate(share, share - far, share + far)
