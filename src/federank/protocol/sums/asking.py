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
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from federank.errors import BadMessage
from federank.protocol.sums.canonical import canonical, digest, has_fields, hexadecimal, read_canonical
from federank.protocol.sums.header import ID_BYTES, PART_BYTES
from federank.protocol.sums.identities import SIGNATURE_BYTES, sign, verify
from federank.protocol.sums.masks import RingVector, ring_bytes, ring_from
from federank.protocol.sums.norm_check import upload as checked
from federank.protocol.sums.upload import SEALED_BYTES, Report

SIGNATURE_HEADER = "X-FedeRank-Signature"
MOST_SECONDS = 30 * 86_400
_SIZES = {
    False: (ID_BYTES, SEALED_BYTES, PART_BYTES, PART_BYTES),
    True: (ID_BYTES, checked.SEALED_BYTES, PART_BYTES, PART_BYTES, PART_BYTES),
}
_LENGTH_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a leader wants offered for a round."""

    version: int
    model: str
    length: int
    stage: int
    """Which of a life's messages the round asks for; columns, clip, scale and noise follow from the charter."""
    seconds: int
    """How long devices may take the offer."""

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
    """The leader's signature of a request, for its header."""
    return sign(private, "request", _request(path, body)).hex()


def verify_request(leader: bytes, path: str, body: bytes, signature: str) -> None:
    """Refuse a request that this leader has not signed."""
    verify(
        leader, "request", _request(path, body), hexadecimal(signature, SIGNATURE_BYTES, "The signature of a request")
    )


def _request(path: str, body: bytes) -> bytes:
    return path.encode() + b"\n" + hashlib.sha256(body).digest()
