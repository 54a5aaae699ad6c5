"""Absence: what never appears as a negative.

Negatives are drawn from everything that a person does not have, and are always sent. After enough of them only the
person's own items have never been among them: the history shows as a hole, also where pi is 0 and no positive ever
leaves the device.
"""

from __future__ import annotations

from federank.audit.guess import Guess, claim
from federank.audit.pairs.view import PairsView


def absence(view: PairsView) -> Guess:
    """Claim every item that was never seen as a negative."""
    return claim(~view.seen_negative)
