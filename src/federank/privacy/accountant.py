"""The accountant: the differential privacy guarantee of noise, per user, over all rounds.

In a round a user adds an upload of norm at most C, and noise of deviation z C. A user with another history would have
added another upload of norm at most C. The two differ by at most 2 C, so a round is a Gaussian mechanism of multiplier
z / 2. Rounds are composed by their Renyi divergences (dp-accounting), each adaptively on what was published before.
Random selection of clients does not count as privacy, since the server knows its selection.

    epsilon at delta:  any observation is at most e^epsilon times as likely, except with probability delta

If a user's messages are replaced by zeros instead (secure sums), the difference is at most C, and the guarantee has a
closed form. Messages of norm at most C with noise of deviation s_1 C, s_2 C, ... together disclose exactly as much as
one Gaussian mechanism of mu = sqrt(1 / s_1^2 + 1 / s_2^2 + ...), for adaptive messages too (Dong, Roth and Su, Gaussian
differential privacy, 2022, corollary 3.3), and

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)

is exact (Balle and Wang, 2018, theorem 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from federank.extras import need


@cache
def epsilon_of(noise: float, rounds: int, delta: float) -> float:
    """Epsilon at delta after this many rounds, with noise of this multiple of the clip."""
    if rounds == 0:
        return 0.0
    need("privacy", "The epsilon of noise")
    from dp_accounting import dp_event, rdp

    accountant = rdp.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(noise / 2), rounds)
    return float(accountant.get_epsilon(delta))


def mu_of_noise(sigmas: Iterable[float]) -> float:
    """Mu of all messages together, for noise of these multiples of the clip."""
    return math.sqrt(sum(sigma**-2 for sigma in sigmas))


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The exact delta of a Gaussian mechanism at this epsilon."""
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(0.0, epsilon + second - first))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The exact epsilon of a Gaussian mechanism at this delta; 0 for mu 0."""
    if mu == 0 or delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    # delta falls with epsilon; the Chernoff bound's epsilon is always enough
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return _bisected(lambda epsilon: delta_of_mu(mu, epsilon) > delta, 0.0, high)


@cache
def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu with this epsilon at delta: the budget of all uploads together."""
    high = 1.0
    while epsilon_of_mu(high, delta) < epsilon:
        high *= 2
    return _bisected(lambda mu: epsilon_of_mu(mu, delta) < epsilon, 0.0, high, upper=False)


def _bisected(is_below: Callable[[float], bool], low: float, high: float, *, upper: bool = True) -> float:
    """Bisect for the point where a condition ceases to hold; returns the requested side."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high if upper else low
        low, high = (middle, high) if is_below(middle) else (low, middle)


# Randomized response (Warner, 1965): a single answer is deniable, and many answers estimate a share.


TRUTH = 0.75
"""Probability that an answer is true."""
EPSILON = math.log(TRUTH / (1 - TRUTH))
MOST_ANSWERS = 5
"""Maximum number of answers of a client; both the client and the server count them."""
ABSOLUTE, SQUARED = MEASURES = ("absolute", "squared")
"""For ratings: whether an answer is about the absolute or the squared error."""
_CONFIDENCE = 1.96  # standard deviations of a 95 % interval


class Estimate(NamedTuple):
    """A share of true yes and its 95 % interval, which may reach beyond 0 and 1."""

    share: float
    low: float
    high: float


def answered(truth: bool, chance: float) -> bool:
    """The answer sent, from the truth and a draw from 0 to 1."""
    return truth if chance < TRUTH else not truth


def estimate(answers: int, yes: int) -> Estimate:
    """Estimate the true share from this many answers, this many of them yes."""
    said = yes / answers
    share = (said - (1 - TRUTH)) / (2 * TRUTH - 1)
    # one more yes and no, so that no interval has width 0
    smoothed = (yes + 1) / (answers + 2)
    far = _CONFIDENCE * math.sqrt(smoothed * (1 - smoothed) / answers) / (2 * TRUTH - 1)
    return Estimate(share, share - far, share + far)
