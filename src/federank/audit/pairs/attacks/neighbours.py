"""Neighbours: whoever sends alike has alike (senders.py); who needs no vector to recommend needs none to guess."""

from __future__ import annotations

from federank.audit.guess import Guess, claim_typical
from federank.audit.pairs.view import PairsView


def neighbours(view: PairsView) -> Guess:
    """Rank by what similar people have sent."""
    assert view.neighbours is not None, "nobody's Updates are linked"
    return claim_typical(view.neighbours, view.typical_size)
