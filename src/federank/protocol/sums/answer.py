"""The helper's side of a round: which reports stand, and the sum of the masks of a set of them.

Both are pure functions of the round's key and of reports: asking again tells nothing new. A report stands if it opens
with its own info and if both parts are as they must be; why one does not stand is told to nobody. Noise is drawn once,
from the operating system, and stored with the answer: it is never drawn again, and never follows from the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federank.arrays import LongVector
from federank.errors import BadMessage
from federank.protocol.sums.canonical import digest
from federank.protocol.sums.header import ID_BYTES
from federank.protocol.sums.identities import private_key
from federank.protocol.sums.masks import SEED_BYTES, RingVector, mask
from federank.protocol.sums.noise import noise_table, rounded_noise
from federank.protocol.sums.rounding import in_ring
from federank.protocol.sums.sealing import open_with
from federank.protocol.sums.upload import Report, context_of, helper_part, same, seal_info


def standing(private: bytes, offer_digest: bytes, reports: Iterable[Report]) -> list[bool]:
    """Which of these reports stand."""
    key = private_key(private)
    return [_opened(key, offer_digest, report) is not None for report in reports]


def sum_of_masks(private: bytes, offer_digest: bytes, length: int, reports: Iterable[Report]) -> RingVector:
    """The masks of these reports, added up; every one of them must stand."""
    key, total = private_key(private), np.zeros(length, dtype=np.uint32)
    for report in reports:
        seed = _opened(key, offer_digest, report)
        if seed is None:
            raise BadMessage("A report of this set does not stand; the sum is not given.")
        total += mask(seed, context_of(offer_digest, report.id), length)
    return total


def draw_noise(deviation: int, length: int, random: Callable[[int], bytes]) -> LongVector:
    """Whole numbers of this deviation from the operating system's randomness (os.urandom); 0 draws none."""
    if deviation == 0:
        return np.zeros(length, dtype=np.int64)
    bits = np.frombuffer(random(16 * length), dtype="<u8").reshape(length, 2)
    return rounded_noise(noise_table(float(deviation)), bits)


def with_noise(total: RingVector, noise: LongVector) -> RingVector:
    """A sum with a server's noise on it."""
    noisy: RingVector = total + in_ring(noise)
    return noisy


def set_digest(identifiers: Sequence[bytes]) -> bytes:
    """Names a set of reports, in whatever order they are told."""
    return digest("set", *sorted(identifiers))


def check_set(identifiers: Sequence[bytes], least: int, largest: int) -> None:
    """Refuse a set that is too small, too large, or that names a report twice."""
    if any(len(identifier) != ID_BYTES for identifier in identifiers):
        raise BadMessage(f"A set names reports by their {ID_BYTES} bytes; this one has something else in it.")
    if len(set(identifiers)) != len(identifiers):
        raise BadMessage("A set names every report once; this one names a report twice, and it is not answered.")
    if not least <= len(identifiers) <= largest:
        raise BadMessage(
            f"A sum is given of {least:,} to {largest:,} reports; this set has {len(identifiers):,}, and it is not "
            "answered."
        )


def seed_of(private: bytes, offer_digest: bytes, report: Report) -> bytes | None:
    """The seed that is sealed in a report, if the report stands."""
    return _opened(private_key(private), offer_digest, report)


def _opened(key: EllipticCurvePrivateKey, offer_digest: bytes, report: Report) -> bytes | None:
    inside = open_with(key, seal_info(offer_digest, report.id), report.sealed)
    parts = report.part_leader + report.part_wires
    if inside is None or len(inside) != SEED_BYTES + len(parts):
        return None
    seed = inside[:SEED_BYTES]
    context = context_of(offer_digest, report.id)
    stands = same(inside[SEED_BYTES:], parts) and same(helper_part(context, seed), report.part_helper)
    return seed if stands else None
