"""Attacks on messages of any form: which items somebody has.

popularity   the same guess for everyone: what most messages move
presence     whatever a person's last message moves is theirs
frequency    what more of a person's messages move is likelier theirs; sampled items come and go
magnitude    what a person's messages move further is likelier theirs
neighbours   those whose messages move alike items have alike
membership   sums: items move further in rounds that a person takes part in

They know nothing of a method's maths. Whoever brings a method may bring attacks that do (own_attacks.py).
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import BASELINE, Attack, Guess, claim, claim_typical, standardised
from federank.audit.steps.view import StepsView


def popularity(view: StepsView) -> Guess:
    """Rank everything by how many messages move it."""
    return claim_typical(np.tile(view.popularity, (len(view.strength), 1)), view.typical_size)


def presence(view: StepsView) -> Guess:
    """Claim everything that a person's messages move."""
    return claim(view.named > 0)


def frequency(view: StepsView) -> Guess:
    """Rank by how many of a person's messages move an item."""
    return claim_typical(view.named.astype(np.float32), view.typical_size)


def magnitude(view: StepsView) -> Guess:
    """Rank by how far a person's messages move an item."""
    return claim_typical(view.strength, view.typical_size)


def neighbours(view: StepsView) -> Guess:
    """Rank by what the messages of those move who send alike."""
    return claim_typical(view.neighbours, view.typical_size)


def fused(view: StepsView) -> Guess:
    """How often, how far, and what those move who send alike, together."""
    often = standardised(view.named.astype(np.float32))
    scores = 2 * often + standardised(view.strength) + 0.5 * standardised(view.neighbours)
    return claim_typical(scores.astype(np.float32), view.typical_size)


def membership(view: StepsView) -> Guess:
    """Rank by how much further items move in a person's rounds."""
    return claim_typical(view.strength, view.typical_size)


_READING: dict[str, Attack] = {
    BASELINE: popularity,
    "presence": presence,
    "frequency": frequency,
    "magnitude": magnitude,
    "neighbours": neighbours,
    "fused": fused,
}
STEPS_ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": _READING,
    "anonymous": {name: _READING[name] for name in (BASELINE, "presence", "magnitude")},
    "sums": {BASELINE: popularity, "membership": membership},
}
"""What each kind of curious server tries."""
