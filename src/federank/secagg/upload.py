"""The client's upload: integers in, bytes out that neither server can read alone.

    context  H("report", offer, id)                  what everything else of the report is tied to
    share    x - mask(seed, context)                 for the leader: uniform, whatever x is
    part_L   H("leader", context, blind, share)      what the leader can recompute; the blind defeats guesses
    part_H   H("helper", context, seed)              what the helper can recompute
    part_W   H("wires", context, blind, wires)       with a proof only: of the leader's share of the wires
    sealed   HPKE(seed || part_L || part_W)          for the helper, with info H("seal", offer, id)

With part_L sealed inside, the leader cannot try other shares on the helper; with part_H outside, a seed that does not
belong is detected; with part_W inside, a leader cannot have a report looked at in two ways. An upload has the same
length for everyone: what is in it decides nothing about its size. On the wire:

    8 bytes `FRSUMS01`, id (16), blind (16), part_H (32), sealed (145), zeros to a multiple of 4, share (4 d)
    8 bytes `FRSUMS02`, the same with sealed (177), and at the end the proof of the message's norm (8 per element)

The federation config says whether messages carry a proof (`check`; None: they do not).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.errors import BadMessage
from federank.secagg.canonical import BLIND_BYTES, ID_BYTES, PART_BYTES, digest
from federank.secagg.keys import OVERHEAD, seal
from federank.secagg.proof.circuit import Parts, element_bytes, wires_part
from federank.secagg.proof.field import MODULUS, Elements
from federank.secagg.proof.parameters import MOST_LENGTH, Parameters
from federank.secagg.proof.proof import prove
from federank.secagg.ring import C_INT, SEED_BYTES, RingVector, in_ring, mask, ring_bytes, ring_from
from federank.secagg.round_config import Offer

_MOST_DRAWS = 8


class Secrets(NamedTuple):
    """What a client draws for one report, from the operating system; never shown."""

    id: bytes
    seed: bytes
    blind: bytes

    def __repr__(self) -> str:
        return "Secrets(...)"


class Upload(NamedTuple):
    """What the leader gets."""

    id: bytes
    blind: bytes
    part_helper: bytes
    sealed: bytes
    share: RingVector
    proof: Elements | None = None


class Report(NamedTuple):
    """What the helper gets of an upload: nothing of the share but a digest."""

    id: bytes
    sealed: bytes
    part_leader: bytes
    part_helper: bytes
    part_wires: bytes = b""


class Split(NamedTuple):
    """A message in two, and what everything else of its report is tied to."""

    terms: bytes
    context: bytes
    mask: RingVector
    share: RingVector
    part_leader: bytes
    part_helper: bytes


class Form(NamedTuple):
    """What distinguishes one form of uploads from another."""

    magic: bytes
    sealed_bytes: int

    @property
    def header_bytes(self) -> int:
        """Where the share begins, so that its words are aligned."""
        return -(-(len(self.magic) + ID_BYTES + BLIND_BYTES + PART_BYTES + self.sealed_bytes) // 4) * 4


PLAIN = Form(b"FRSUMS01", SEED_BYTES + PART_BYTES + OVERHEAD)
CHECKED = Form(b"FRSUMS02", SEED_BYTES + 2 * PART_BYTES + OVERHEAD)


def rounding_chances(length: int, random: Callable[[int], bytes]) -> NDArray[np.uint16]:
    """What rounding at random needs for this many numbers (rounding.py)."""
    return np.frombuffer(random(2 * length), dtype="<u2")


def new_secrets(random: Callable[[int], bytes]) -> Secrets:
    """Secrets of one report; `random` is the operating system's (os.urandom)."""
    return Secrets(random(ID_BYTES), random(SEED_BYTES), random(BLIND_BYTES))


def bytes_of_message(
    check: Parameters | None, offer: Offer, message: NDArray[np.int32], random: Callable[[int], bytes]
) -> bytes:
    """The bytes of a message's upload; `random` is the operating system's (os.urandom)."""
    return encode_upload(send(check, offer, message, random))


def send(check: Parameters | None, offer: Offer, message: NDArray[np.int32], random: Callable[[int], bytes]) -> Upload:
    """A message as an upload. Where its projections are by chance outside of what can be proved, draw again."""
    if check is None:
        return make_upload(offer, message, new_secrets(random))
    for _ in range(_MOST_DRAWS):
        upload = make_checked_upload(check, offer, message, new_secrets(random), random(SEED_BYTES))
        if upload is not None:
            return upload
    raise BadMessage("No proof of the message's norm could be made, though it is short enough; it is not sent.")


def make_upload(
    offer: Offer,
    message: NDArray[np.int32],
    secrets: Secrets,
    sealing: Callable[[bytes, bytes, bytes], bytes] = seal,
) -> Upload:
    """A message of integers as an upload. It is refused where its norm is more than the bound."""
    split = split_message(offer, message, secrets)
    sealed = sealing(offer.public(), seal_info(split.terms, secrets.id), secrets.seed + split.part_leader)
    return Upload(secrets.id, secrets.blind, split.part_helper, sealed, split.share)


def make_checked_upload(
    check: Parameters,
    offer: Offer,
    message: NDArray[np.int32],
    secrets: Secrets,
    proof_seed: bytes,
    sealing: Callable[[bytes, bytes, bytes], bytes] = seal,
) -> Upload | None:
    """A message with a proof of its norm from these secrets, or None where they give none."""
    if len(message) > MOST_LENGTH:
        raise BadMessage(f"A message with a proof has at most {MOST_LENGTH:,} numbers; this one has {len(message):,}.")
    split = split_message(offer, message, secrets)
    parts = Parts(split.context, split.part_leader, split.part_helper)
    proof = prove(check, parts, secrets.blind, secrets.seed, proof_seed, (split.share, split.mask))
    if proof is None:
        return None
    inside = secrets.seed + split.part_leader + proof.part_wires
    sealed = sealing(offer.public(), seal_info(split.terms, secrets.id), inside)
    return Upload(secrets.id, secrets.blind, split.part_helper, sealed, split.share, proof.share)


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
    form, proof = (PLAIN, b"") if upload.proof is None else (CHECKED, element_bytes(upload.proof))
    header = b"".join((form.magic, upload.id, upload.blind, upload.part_helper, upload.sealed))
    return header.ljust(form.header_bytes, b"\0") + ring_bytes(upload.share) + proof


def decode_upload(content: bytes, length: int, check: Parameters | None = None) -> Upload:
    """An upload of this many numbers from the wire, once it is sure to have the form of one."""
    form, needed = PLAIN if check is None else CHECKED, upload_bytes(length, check)
    if len(content) != needed:
        raise BadMessage(f"An upload of this round has {needed:,} bytes; this one has {len(content):,}.")
    parts, at = [], 0
    for size in (len(form.magic), ID_BYTES, BLIND_BYTES, PART_BYTES, form.sealed_bytes):
        parts.append(content[at : at + size])
        at += size
    magic, identifier, blind, part_helper, sealed = parts
    if magic != form.magic or any(content[at : form.header_bytes]):
        raise BadMessage("An upload of this round begins in another way than this one does; nothing was taken from it.")
    end = form.header_bytes + 4 * length
    share = ring_from(memoryview(content)[form.header_bytes : end])
    proof = None if check is None else elements_from(memoryview(content)[end:])
    return Upload(identifier, blind, part_helper, sealed, share, proof)


def elements_from(content: bytes | memoryview) -> Elements:
    """Elements of the field from the wire."""
    result = np.frombuffer(content, dtype="<u8").astype(np.uint64)
    if (result >= MODULUS).any():
        raise BadMessage("A proof holds words that are no elements of its field; nothing was taken from it.")
    return result


def id_of(content: bytes) -> bytes:
    """The random id of an upload, from its bytes: it stands after the eight bytes that name the form."""
    return content[8 : 8 + ID_BYTES]


def upload_bytes(length: int, check: Parameters | None = None) -> int:
    """How many bytes an upload of this many numbers has."""
    form, proof = (PLAIN, 0) if check is None else (CHECKED, check.proof_bytes)
    return form.header_bytes + 4 * length + proof


def report_of(offer_digest: bytes, upload: Upload, check: Parameters | None = None) -> Report:
    """What the leader sends to the helper about an upload: its own parts as they follow from what it holds."""
    context = context_of(offer_digest, upload.id)
    part_leader = leader_part(context, upload.blind, upload.share)
    if check is None or upload.proof is None:
        return Report(upload.id, upload.sealed, part_leader, upload.part_helper)
    part_wires = wires_part(context, upload.blind, upload.proof[: check.wires])
    return Report(upload.id, upload.sealed, part_leader, upload.part_helper, part_wires)


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
