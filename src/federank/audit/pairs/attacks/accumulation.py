"""Accumulation: the sign of every Update, remembered over rounds.

The coin of pi is tossed anew each time, so what was held back today is sent tomorrow. A server that can link a
device's Updates only has to wait.
"""

from __future__ import annotations

from federank.audit.guess import Guess, claim
from federank.audit.pairs.view import PairsView


def accumulation(view: PairsView) -> Guess:
    """Claim every item that was ever sent as a positive."""
    return claim(view.times_positive > 0)
