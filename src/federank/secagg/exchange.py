"""What a leader asks of a helper, on the wire between the two: terms of an offer, reports, sets, answers.

    terms     canonical JSON: what the leader wants offered (version, model, length, stage, seconds)
    reports   225 bytes each, one after the other: id, sealed, part_L, part_H; 289 where messages carry a proof of their
              norm: more is sealed, and part_W follows
    answer    four bytes with the length of the helper's signed record, the record, and the noisy sum of masks

A request carries the leader's signature over its path and body. To repeat one is harmless: the same request gets the
same answer, and no request can be turned into another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federank._numerics.arrays import LongVector
from federank.errors import BadMessage
from federank.secagg.canonical import ID_BYTES, PART_BYTES, canonical, digest, has_fields, hexadecimal, read_canonical
from federank.secagg.keys import SIGNATURE_BYTES, open_with, private_key, sign, verify
from federank.secagg.ring import (
    SEED_BYTES,
    RingVector,
    in_ring,
    mask,
    noise_table,
    ring_bytes,
    ring_from,
    rounded_noise,
)
from federank.secagg.upload import CHECKED, PLAIN, Report, context_of, helper_part, same, seal_info

SIGNATURE_HEADER = "X-FedeRank-Signature"
MOST_SECONDS = 30 * 86_400
_SIZES = {
    False: (ID_BYTES, PLAIN.sealed_bytes, PART_BYTES, PART_BYTES),
    True: (ID_BYTES, CHECKED.sealed_bytes, PART_BYTES, PART_BYTES, PART_BYTES),
}
_LENGTH_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a leader wants offered for a round."""

    version: int
    model: str
    length: int
    stage: int
    """Which of a client's messages the round asks for; columns, clip, scale and noise follow from the federation
    config.
    """
    seconds: int
    """How long clients may take the offer."""

    def to_bytes(self) -> bytes:
        """The one way to write these terms."""
        return canonical(asdict(self))

    def digest(self) -> bytes:
        """Names these terms: a round has one offer, and another is refused."""
        return digest("terms", self.to_bytes())


_FIELDS: dict[str, type] = {name: int if kind == "int" else str for name, kind in Terms.__annotations__.items()}


def terms_from(content: bytes, most_length: int) -> Terms:
    """Terms from the wire, once they are sure to be some."""
    statement = read_canonical(content, "The terms of a round", 2000)
    has_fields(statement, "The terms of a round", _FIELDS)
    hexadecimal(statement["model"], 32, "The model of a round's terms")
    terms = Terms(**statement)
    if (
        min(terms.version, terms.stage) < 0
        or not 1 <= terms.length <= most_length
        or not 1 <= terms.seconds <= MOST_SECONDS
    ):
        raise BadMessage(
            f"A round's terms have a version, a stage, 1 to {most_length:,} numbers a message and 1 to "
            f"{MOST_SECONDS:,} seconds; these have something else."
        )
    return terms


def encode_reports(reports: Iterable[Report]) -> bytes:
    """Reports as bytes."""
    return b"".join(part for report in reports for part in report)


def report_bytes(*, is_checked: bool) -> int:
    """How many bytes a report has, with a proof of its message's norm or without one."""
    return sum(_SIZES[is_checked])


def decode_reports(content: bytes, *, is_checked: bool) -> list[Report]:
    """Reports from bytes."""
    each = report_bytes(is_checked=is_checked)
    if len(content) % each:
        raise BadMessage(f"Reports have {each} bytes each; these {len(content):,} bytes are no number of them.")
    reports = []
    for start in range(0, len(content), each):
        parts, at = [], start
        for size in _SIZES[is_checked]:
            parts.append(content[at : at + size])
            at += size
        reports.append(Report(*parts))
    return reports


def encode_answer(record: bytes, total: RingVector) -> bytes:
    """The helper's answer: its signed record, and the sum."""
    return len(record).to_bytes(_LENGTH_BYTES, "big") + record + ring_bytes(total)


def decode_answer(content: bytes, length: int) -> tuple[bytes, RingVector]:
    """The record and the sum of an answer of this many numbers."""
    end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "big")
    if len(content) != end + 4 * length:
        raise BadMessage(f"The helper's answer must hold a record and {length:,} numbers; this one does not.")
    return content[_LENGTH_BYTES:end], ring_from(content[end:])


def sign_request(private: bytes, path: str, body: bytes) -> str:
    """For a request's header: the digest of its body, and the leader's signature of path and digest."""
    digest = hashlib.sha256(body).digest()
    return f"{digest.hex()} {sign(private, 'request', _request(path, digest)).hex()}"


def verify_request(leader: bytes, path: str, signed: str) -> bytes:
    """Refuse a request that this leader has not signed, before its body is read; the digest that the body must have."""
    body, _, signature = signed.partition(" ")
    digest = hexadecimal(body, hashlib.sha256().digest_size, "The digest of a request's body")
    signature_bytes = hexadecimal(signature, SIGNATURE_BYTES, "The signature of a request")
    verify(leader, "request", _request(path, digest), signature_bytes)
    return digest


def check_body(body: bytes, digest: bytes) -> None:
    """Refuse a body that is not the signed one."""
    if hashlib.sha256(body).digest() != digest:
        raise BadMessage("The body of the request is not the one that was signed.")


def _request(path: str, digest: bytes) -> bytes:
    return path.encode() + b"\n" + digest


# The helper's side of a round: which reports stand, and the sum of the masks of a set of them.


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
    """Integers of this deviation from the operating system's randomness (os.urandom); 0 draws none."""
    if deviation == 0:
        return np.zeros(length, dtype=np.int64)
    bits = np.frombuffer(random(16 * length), dtype="<u8").reshape(length, 2)
    return rounded_noise(noise_table(float(deviation)), bits)


def with_noise(total: RingVector, noise: LongVector) -> RingVector:
    """A sum with a server's noise on it."""
    noisy: RingVector = total + in_ring(noise)
    return noisy


def set_digest(identifiers: Sequence[bytes]) -> bytes:
    """Names a set of reports, in any order."""
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


# Records: what each server publishes of a round, signed, so that anyone can recompute the fold.


AGGREGATED, ABANDONED = "aggregated", "abandoned"
_NAME = "A record"


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """One server's account of one round."""

    config: str
    offer: str
    """Digest of the round's offer."""
    round: int
    state: str
    messages: int
    """K: how many messages are in the sum."""
    set: str
    """Digest of the set of reports."""
    sum: str
    """Digest of this server's noisy sum."""
    model: str = ""
    """Digest of the model that the fold made; the helper, who has no model, leaves it out."""
    people: int = 0
    """How many clients the fold scaled the sum to; the helper does not know."""


_FIELDS_records: dict[str, type] = {
    name: int if kind == "int" else str for name, kind in RoundRecord.__annotations__.items()
}


def sum_digest(total: RingVector) -> bytes:
    """Names a noisy sum."""
    return digest("sum", ring_bytes(total))


def sign_record(private: bytes, record: RoundRecord) -> bytes:
    """The record as it is published: with its server's signature."""
    signature = sign(private, "record", canonical(asdict(record)))
    return canonical({"record": asdict(record), "signature": signature.hex()})


def read_record(content: bytes, server: bytes) -> RoundRecord:
    """A record, if the server of this public key has signed it."""
    statement = read_canonical(content, _NAME)
    has_fields(statement, _NAME, {"record": dict, "signature": str})
    record = statement["record"]
    has_fields(record, _NAME, _FIELDS_records)
    verify(server, "record", canonical(record), hexadecimal(statement["signature"], SIGNATURE_BYTES, "The signature"))
    if record["state"] not in (AGGREGATED, ABANDONED):
        raise BadMessage(f"A round ends {AGGREGATED} or {ABANDONED}; this record says something else.")
    return RoundRecord(**record)


def same_round(leader: RoundRecord, helper: RoundRecord) -> None:
    """Refuse two records that do not describe the same round alike."""
    for field in ("config", "offer", "round", "state", "messages", "set"):
        one, other = getattr(leader, field), getattr(helper, field)
        if one != other:
            raise BadMessage(
                f"The two servers' records of round {leader.round} differ: the leader has {one!r} as {field}, the "
                f"helper {other!r}."
            )
