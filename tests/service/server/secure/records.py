"""What two servers of a real federation had in their hands, and whether one's records tell one history from another.

The leader gets uploads: a share of each message, a blind, a digest, something sealed, perhaps a proof. The helper gets
reports, and opens from each the seed of a mask. A message is share + mask. From the records of

    leader    the shares            uniform in the ring, whatever was split
    helper    the masks             made from seeds that were drawn before there was a message
    both      share + mask          the message itself

someone who knows the two histories between which a person has chosen guesses which it was: how far each record leans
from the first message towards the second, in deviations of a record that is random. Of random numbers that is a draw
from N(0, 1), and the guess is a coin. Bytes that are all alike often would give a broken mask away too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, RealVector
from federank.secagg.exchange import seed_of
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import RingVector, centred, mask
from federank.secagg.round_config import Offer
from federank.secagg.upload import Report, context_of, decode_upload

Records = dict[bytes, RingVector]
"""Numbers of the ring by the id of their report."""

_UNIFORM = 2.0**32 / np.sqrt(12)


class RoundContext(NamedTuple):
    """What one observer's records tell."""

    leanings: RealVector  # for each report: towards the second history above 0, in deviations of chance
    right: float  # how often the guess by its sign is right
    unevenness: float  # of the bytes' histogram, chi-square in deviations of chance


def records_of_leader(check: Parameters | None, offer: Offer, uploads: Sequence[bytes]) -> Records:
    """The shares, from uploads as they came."""
    read = [decode_upload(content, offer.length, check) for content in uploads]
    return {upload.id: upload.share for upload in read}


def records_of_helper(round_key: bytes, offer: Offer, reports: Sequence[Report]) -> Records:
    """The masks, from reports as the leader told them, opened with the round's key."""
    terms = offer.digest()
    seeds = {report.id: seed_of(round_key, terms, report) for report in reports}
    return {name: mask(seed, context_of(terms, name), offer.length) for name, seed in seeds.items() if seed is not None}


def records_of_both(leader: Records, helper: Records) -> Records:
    """The messages, in the ring, of every report that both have."""
    return {name: leader[name] + helper[name] for name in leader.keys() & helper.keys()}


def tell_apart(records: Records, messages: tuple[IntVector, IntVector], second: set[bytes]) -> RoundContext:
    """Guess of each report which of two messages it splits; `second` are those that split the second one."""
    first, other = (message.astype(np.float64) for message in messages)
    towards = other - first
    names = sorted(records)
    numbers = np.array([centred(records[name]) for name in names], dtype=np.float64)
    leanings: RealVector = (numbers - (first + other) / 2) @ towards / (_UNIFORM * np.linalg.norm(towards))
    is_second = np.array([name in second for name in names])
    return RoundContext(leanings, float(np.mean((leanings > 0) == is_second)), _unevenness(records))


def _unevenness(records: Records) -> float:
    together: NDArray[np.uint8] = np.concatenate([numbers.view(np.uint8) for numbers in records.values()])
    found = np.bincount(together, minlength=256)
    expected = len(together) / 256
    chi_square = float(((found - expected) ** 2).sum() / expected)
    return (chi_square - 255) / math.sqrt(2 * 255)
