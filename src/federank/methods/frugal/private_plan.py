"""The plan of a guarantee: how much noise each of a client's messages gets, and what is asked for under it.

A user's guarantee is one number mu (accountant.py): what all their messages may tell together, to anyone who runs
one of
the two servers or sees all sums and models. It is divided over the messages by their shares of mu^2. The first one,
which says what is popular, gets a tenth; of the others each gets e^(2/3) times what the one before got, since the
last decides about the model, and the first about where to look. A message has length 1 (of `C_INT` in integers),
so a share s means noise of deviation 1 / (mu sqrt(s)) from *each* server. The model carries both.

The noise is the same for any number of users, so what can be learnt depends on users x mu / sqrt(items), the signal
over the noise. It decides about three things, and all are public:

    factors   how many directions are looked for: 15 to 25 where there is much noise, else 40 to 64
    joined    with fewer than 40, all rounds' answers are read together; else the newest alone (private_server.py)
    power     an item of popularity c (1: the most popular) weighs c^power in a message. Noise drowns what is rare, so
              a message is better spent on what many have; without noise, rather on the rest, as Frugal does else
"""

from __future__ import annotations

import math
from typing import NamedTuple

from federank.errors import SettingError
from federank.privacy.accountant import epsilon_of_mu, mu_of_noise
from federank.secagg.ring import C_INT, FARTHEST, LEAST_DEVIATION, MOST_DEVIATION

POPULARITY_SHARE, GROWTH = 0.1, 2 / 3
FEWEST_FACTORS, MOST_FACTORS, FACTORS_PER_SIGNAL = 40, 64, 0.85
NOISY_POWER, CLEAR_POWER = 0.3, -0.15
NOISY, CLEAR = 80.0, 500.0
JOINED_BELOW = 64.0
FEWEST_JOINED, MOST_JOINED, JOINED_PER_SIGNAL = 15, 25, 0.4
DROWNED_POWER, JOINED_POWER = 0.4, 0.2
DROWNED, RECEIVED = 10.0, 25.0
"""All chosen on the validation parts of MovieLens 100K and 1M and of cities; see docs/frugal.md."""
MOST_MESSAGES = 2 + int(2 / GROWTH * math.log(MOST_DEVIATION / LEAST_DEVIATION))
"""35: from the second message to the last, noise falls from the most that is drawn to the least."""


class PrivatePlan(NamedTuple):
    """What is fixed before the first message."""

    deviations: tuple[int, ...]  # one server's noise on each round's sum, in integers; 0: none at all
    factors: int
    power: float

    def sigmas(self, messages: int) -> tuple[float, ...]:
        """One server's noise on the first this many messages, as multiples of a message's largest length."""
        return tuple(deviation / C_INT for deviation in self.deviations[:messages])

    @property
    def joined(self) -> bool:
        """Whether all rounds' answers are read together: few directions are looked for, under noise."""
        return self.factors < FEWEST_FACTORS and all(self.deviations)

    def noise(self, round_number: int) -> float:
        """The deviation of what the model carries in a round: both servers' noise, a message's length being 1."""
        return math.sqrt(2) * self.deviations[round_number] / C_INT


def planned(mu: float, messages: int, people: int, n_items: int, factors: int | None) -> PrivatePlan:
    """Divide a guarantee over this many messages; mu infinite: no noise, but messages in integers all the same."""
    if math.isinf(mu):
        signal, deviations = math.inf, (0,) * messages
    else:
        signal, deviations = people * mu / math.sqrt(n_items), _deviations(mu, messages)
        _refuse_extremes(deviations, people)
    wanted, power = _shape(signal)
    return PrivatePlan(deviations, min(wanted, n_items) if factors is None else factors, power)


def _deviations(mu: float, messages: int) -> tuple[int, ...]:
    """One server's noise on each message, by its share of mu^2."""
    most = _most_messages(mu)
    if messages > most and mu * math.sqrt(POPULARITY_SHARE) >= C_INT / MOST_DEVIATION:
        raise SettingError(
            f"messages is {messages:,}, but a guarantee of this size can be divided over at most {most} before the "
            "noise on one of them drowns everything; ask for fewer messages."
        )
    later = [math.exp(GROWTH * number) for number in range(min(messages, MOST_MESSAGES) - 1)]
    shares = [POPULARITY_SHARE, *((1 - POPULARITY_SHARE) * growing / sum(later) for growing in later)]
    return tuple(math.ceil(C_INT / (mu * math.sqrt(share))) for share in shares)


def _most_messages(mu: float) -> int:
    """Over how many messages a guarantee can be divided: the second one's noise, the largest, is one that is drawn.

    With n messages its share is (1 - POPULARITY_SHARE) (e^GROWTH - 1) / (e^(GROWTH (n - 1)) - 1).
    """
    root = mu * MOST_DEVIATION / C_INT  # of one over the smallest share that can be had
    extended = math.log1p((1 - POPULARITY_SHARE) * math.expm1(GROWTH) * root * root)
    return 1 + int(min(MOST_MESSAGES - 1, extended / GROWTH))


def _shape(signal: float) -> tuple[int, float]:
    """How many factors, and the power of popularity, for a signal of this many times the noise."""
    if signal < JOINED_BELOW:
        received = _between(signal, DROWNED, RECEIVED)
        factors = min(MOST_JOINED, max(FEWEST_JOINED, JOINED_PER_SIGNAL * signal))
        return int(factors), DROWNED_POWER + received * (JOINED_POWER - DROWNED_POWER)
    factors = min(MOST_FACTORS, max(FEWEST_FACTORS, FACTORS_PER_SIGNAL * signal))
    return int(factors), NOISY_POWER + _between(signal, NOISY, CLEAR) * (CLEAR_POWER - NOISY_POWER)


def _between(signal: float, low: float, high: float) -> float:
    """0 up to the low end, 1 from the high end, and a straight line over the logarithm in between."""
    return min(1.0, max(0.0, math.log(signal / low) / math.log(high / low)))


def guarantee_of(plan: PrivatePlan, messages: int, delta: float) -> float | None:
    """Epsilon for someone who has sent this many messages; None where there is no noise, so that nothing is
    promised.
    """
    sigmas = plan.sigmas(messages)
    if not all(sigmas):
        return None
    return epsilon_of_mu(mu_of_noise(sigmas), delta)


def _refuse_extremes(deviations: tuple[int, ...], people: int) -> None:
    least, most = min(deviations), max(deviations)
    if least < LEAST_DEVIATION:
        raise SettingError(
            f"Noise of {least / C_INT:.4f} of a message's length is too little to be drawn exactly; a smaller epsilon, "
            f"or a sigma of {LEAST_DEVIATION / C_INT:g} or more, is needed."
        )
    if most > MOST_DEVIATION:
        raise SettingError(
            f"Noise of {most / C_INT:,.0f} times a message's length drowns everything; a larger epsilon, or a sigma of "
            f"{MOST_DEVIATION / C_INT:,.0f} or less, is needed."
        )
    if people * C_INT + 2 * FARTHEST * most >= 2**31:
        raise SettingError(f"A sum of {people:,} messages could wrap in 32 bits; fewer people a round are needed.")
