"""Records: what each server publishes of a round, signed, so that anybody can recompute the fold.

The leader's record names the offer, the set, its noisy sum of shares, and the model that came out; the helper's names
the same offer and set, and its noisy sum of masks. The two noisy sums, added up in the ring, are the sum of the
messages with the noise of both. A round that ended without a sum has a record too: it says `abandoned`, and its digests
are empty.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from federank.errors import BadMessage
from federank.protocol.sums.canonical import canonical, digest, has_fields, hexadecimal, read_canonical
from federank.protocol.sums.identities import SIGNATURE_BYTES, sign, verify
from federank.protocol.sums.masks import RingVector, ring_bytes

FOLDED, ABANDONED = "folded", "abandoned"
_NAME = "A record"


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """One server's account of one round."""

    charter: str
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
    """How many devices the fold scaled the sum to; the helper does not know."""


_FIELDS: dict[str, type] = {name: int if kind == "int" else str for name, kind in RoundRecord.__annotations__.items()}


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
    told = statement["record"]
    has_fields(told, _NAME, _FIELDS)
    verify(server, "record", canonical(told), hexadecimal(statement["signature"], SIGNATURE_BYTES, "The signature"))
    if told["state"] not in (FOLDED, ABANDONED):
        raise BadMessage(f"A round ends {FOLDED} or {ABANDONED}; this record says something else.")
    return RoundRecord(**told)


def same_round(leader: RoundRecord, helper: RoundRecord) -> None:
    """Refuse two records that do not tell of the same round in the same way."""
    for field in ("charter", "offer", "round", "state", "messages", "set"):
        one, other = getattr(leader, field), getattr(helper, field)
        if one != other:
            raise BadMessage(
                f"The two servers' records of round {leader.round} differ: the leader has {one!r} as {field}, the "
                f"helper {other!r}."
            )
