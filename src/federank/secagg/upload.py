"""The device's message: integers in, an upload out that neither server can read alone.

    context  H("report", offer, id)                  what everything else of the report is tied to
    share    x - mask(seed, context)                 for the leader: uniform, whatever x is
    part_L   H("leader", context, blind, share)      what the leader can recompute; the blind defeats guesses
    part_H   H("helper", context, seed)              what the helper can recompute
    sealed   HPKE(seed || part_L)                    for the helper, with info H("seal", offer, id)

With part_L sealed inside, the leader cannot try other shares on the helper; with part_H outside, a seed that does not
belong is detected. An upload has the same length for everyone: what is in it decides nothing about its size.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.errors import BadMessage
from federank.secagg.canonical import BLIND_BYTES, ID_BYTES, PART_BYTES, Form, Header, digest, read_header, write_header
from federank.secagg.keys import OVERHEAD, seal
from federank.secagg.ring import C_INT, SEED_BYTES, RingVector, in_ring, mask, ring_bytes, ring_from
from federank.secagg.round_config import Offer

SEALED_BYTES = SEED_BYTES + PART_BYTES + OVERHEAD
FORM = Form(b"FRSUMS01", SEALED_BYTES)
HEADER_BYTES = FORM.header_bytes


@dataclass(frozen=True, repr=False)
class Secrets:
    """What a device draws for one report, from the operating system; never shown."""

    id: bytes
    seed: bytes
    blind: bytes


class Upload(NamedTuple):
    """What the leader gets."""

    id: bytes
    blind: bytes
    part_helper: bytes
    sealed: bytes
    share: RingVector


class Report(NamedTuple):
    """What the helper gets of an upload: nothing of the share but a digest."""

    id: bytes
    sealed: bytes
    part_leader: bytes
    part_helper: bytes
    part_wires: bytes = b""
    """Where messages carry a proof of their norm (norm_check/): a digest of the leader's share of its wires."""


class Split(NamedTuple):
    """A message in two, and what everything else of its report is tied to."""

    terms: bytes
    context: bytes
    mask: RingVector
    share: RingVector
    part_leader: bytes
    part_helper: bytes


def rounding_chances(length: int, random: Callable[[int], bytes]) -> NDArray[np.uint16]:
    """What rounding at random needs for this many numbers (rounding.py)."""
    return np.frombuffer(random(2 * length), dtype="<u2")


def new_secrets(random: Callable[[int], bytes]) -> Secrets:
    """Secrets of one report; `random` is the operating system's (os.urandom)."""
    return Secrets(random(ID_BYTES), random(SEED_BYTES), random(BLIND_BYTES))


def make_upload(
    offer: Offer,
    message: NDArray[np.int32],
    secrets: Secrets,
    sealing: Callable[[bytes, bytes, bytes], bytes] = seal,
) -> Upload:
    """A message of integers as an upload. It is refused where its norm is more than the bound."""
    split = split_message(offer, message, secrets)
    info = seal_info(split.terms, secrets.id)
    sealed = sealing(offer.public(), info, secrets.seed + split.part_leader)
    return Upload(secrets.id, secrets.blind, split.part_helper, sealed, split.share)


def split_message(offer: Offer, message: NDArray[np.int32], secrets: Secrets) -> Split:
    """Split a message of integers in two. It is refused where its norm is more than the bound."""
    if message.shape != (offer.length,):
        raise BadMessage(f"The round's messages have {offer.length:,} numbers; this one has {message.size:,}.")
    integers = message.astype(np.int64)
    # Checked one by one first: squares of what passes fit 64 bits in any sum.
    if len(integers) and (np.abs(integers).max() > C_INT or int(np.dot(integers, integers)) > C_INT**2):
        raise BadMessage(f"A message has a norm of at most {C_INT:,}; this one is longer, and it is not sent.")
    terms = offer.digest()
    context = context_of(terms, secrets.id)
    hidden = mask(secrets.seed, context, offer.length)
    share = in_ring(integers) - hidden
    part_leader = leader_part(context, secrets.blind, share)
    return Split(terms, context, hidden, share, part_leader, helper_part(context, secrets.seed))


def encode_upload(upload: Upload) -> bytes:
    """The bytes of an upload."""
    header = Header(upload.id, upload.blind, upload.part_helper, upload.sealed)
    return write_header(FORM, header) + ring_bytes(upload.share)


def decode_upload(content: bytes, length: int) -> Upload:
    """An upload of this many numbers from the wire, once it is sure to have the form of one."""
    header = read_header(FORM, content, upload_bytes(length))
    if header is None:
        raise BadMessage("An upload of sums begins in another way than this one does; nothing was taken from it.")
    return Upload(*header, ring_from(memoryview(content)[HEADER_BYTES:]))


def upload_bytes(length: int) -> int:
    """How many bytes an upload of this many numbers has."""
    return HEADER_BYTES + 4 * length


def report_of(offer_digest: bytes, upload: Upload) -> Report:
    """What the leader sends to the helper about an upload: part_L as it follows from the share it holds."""
    context = context_of(offer_digest, upload.id)
    return Report(upload.id, upload.sealed, leader_part(context, upload.blind, upload.share), upload.part_helper)


def context_of(offer_digest: bytes, identifier: bytes) -> bytes:
    """What a report is tied to: its round and its id."""
    return digest("report", offer_digest, identifier)


def seal_info(offer_digest: bytes, identifier: bytes) -> bytes:
    """What a sealed seed is tied to: it opens for this report of this round alone."""
    return digest("seal", offer_digest, identifier)


def leader_part(context: bytes, blind: bytes, share: RingVector) -> bytes:
    """The digest of what the leader holds."""
    return digest("leader", context, blind, ring_bytes(share))


def helper_part(context: bytes, seed: bytes) -> bytes:
    """The digest of what the helper holds."""
    return digest("helper", context, seed)


def same(one: bytes, other: bytes) -> bool:
    """Whether two digests are equal, in constant time."""
    return hmac.compare_digest(one, other)
