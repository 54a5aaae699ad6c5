"""A message that no single server can read, as a device makes it: integers, split in two; what it costs its owner.

The chances of rounding, the seed and the id are the operating system's. What comes out is the upload; the message
itself goes no further than this. What a message costs is counted before it is made: (length / noise)^2 of what all
messages of a lifetime may tell together (`mu` squared, protocol/accountant.py). A device makes no message beyond that,
whatever it is asked, so its guarantee holds in whichever rounds it took part.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealVector
from federank.errors import BadAnswer, BadMessage
from federank.methods.frugal.method import FrugalUpdate, dense, flat
from federank.methods.frugal.private import directions_at_home, one_message
from federank.privacy.accountant import epsilon_of_mu
from federank.privacy.ledger import Ledger
from federank.secagg.config import SecaggConfig
from federank.secagg.forms import bytes_of_message
from federank.secagg.ring import C_INT, round_message
from federank.secagg.round_config import Offer
from federank.secagg.upload import rounding_chances

Random = Callable[[int], bytes]
_SLACK = 1e-9


class Terms(NamedTuple):
    """On what terms a round's messages are split."""

    charter: SecaggConfig
    offer: Offer


def private_message(
    terms: Terms, vectors: FloatMatrix, weights: FloatVector, profile: IntVector, random: Random = os.urandom
) -> IntVector:
    """The message of the plan's stage that the round asks for."""
    offer = terms.offer
    known = None if offer.stage == 0 else directions_at_home(vectors, weights)
    return one_message(offer.stage, terms.charter.items, profile, known, rounding_chances(offer.length, random))


def spectral_message(terms: Terms, update: FrugalUpdate, random: Random = os.urandom) -> IntVector:
    """Frugal's own message in integers, clipped to the federation config's length."""
    return clipped_message(terms, flat(dense(update)), random)


def clipped_message(terms: Terms, values: RealVector, random: Random = os.urandom) -> IntVector:
    """A message in integers, clipped to the federation config's length."""
    return round_message(values, terms.charter.length_of_clip(), rounding_chances(len(values), random))


def split(terms: Terms, whole: IntVector, random: Random = os.urandom) -> bytes:
    """The upload of a message: split in two, one part sealed; with a proof of its norm where one is asked for."""
    try:
        return bytes_of_message(terms.charter.norm_check(), terms.offer, whole, random)
    except BadMessage as reason:
        raise BadAnswer(f"The message cannot be split: {reason} Nothing was sent.") from reason


def cost_of(noise: int) -> float:
    """What one message under noise of this deviation tells, as a square of mu; 0 is not counted as noise."""
    return (C_INT / noise) ** 2 if noise else 0.0


def spent_of(ledger: Ledger) -> float:
    """What the messages that have left tell together, as a square of mu."""
    return sum(cost_of(message.noise) for message in ledger.messages)


def can_afford(charter: SecaggConfig, offer: Offer, spent: float) -> bool:
    """Whether the round's message still keeps to what was promised."""
    most = charter.mu() ** 2
    return math.isinf(most) or spent + cost_of(offer.noise) <= most * (1 + _SLACK)


def epsilon_so_far(charter: SecaggConfig, ledger: Ledger) -> float | None:
    """What all messages that have left may tell anyone who runs one server; None where one left without noise."""
    if not all(message.noise for message in ledger.messages):
        return None
    return epsilon_of_mu(math.sqrt(spent_of(ledger)), float(charter.delta))


def epsilon_promised(charter: SecaggConfig) -> float | None:
    """What all messages of a lifetime may tell at most; None where nothing is promised."""
    mu = charter.mu()
    return None if math.isinf(mu) else epsilon_of_mu(mu, float(charter.delta))
