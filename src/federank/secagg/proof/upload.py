"""Uploads that carry a proof of their norm, and what the leader sends to the helper about one.

The form of an upload of sums (protocol/sums/upload.py) with another name in front, one digest more in what is sealed,
and the leader's share of the proof at the end:

    8 bytes `FRSUMS02`, id (16), blind (16), part_H (32), sealed (177), 3 zero bytes, share (4 d), proof (8 a element)
    sealed   HPKE(seed || part_L || part_W), with the same info
    part_W   H("wires", context, blind, the leader's share of the wires)

With part_W sealed inside, all that the helper's look depends on was fixed by the device: a leader cannot have a report
looked at in two ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.errors import BadMessage
from federank.secagg.canonical import PART_BYTES, Form, Header, read_header, write_header
from federank.secagg.keys import OVERHEAD, seal
from federank.secagg.proof.circuit import Parts, element_bytes, wires_part
from federank.secagg.proof.field import MODULUS, Elements
from federank.secagg.proof.parameters import MOST_LENGTH, Parameters
from federank.secagg.proof.proof import prove
from federank.secagg.ring import SEED_BYTES, RingVector, ring_bytes, ring_from
from federank.secagg.round_config import Offer
from federank.secagg.upload import Report, Secrets, context_of, leader_part, new_secrets, seal_info, split_message

SEALED_BYTES = SEED_BYTES + 2 * PART_BYTES + OVERHEAD
FORM = Form(b"FRSUMS02", SEALED_BYTES)
HEADER_BYTES = FORM.header_bytes
_MOST_DRAWS = 8


class CheckedUpload(NamedTuple):
    """What the leader gets."""

    id: bytes
    blind: bytes
    part_helper: bytes
    sealed: bytes
    share: RingVector
    proof: Elements


def send_checked(
    parameters: Parameters, offer: Offer, message: NDArray[np.int32], random: Callable[[int], bytes]
) -> CheckedUpload:
    """A message with its proof; `random` is the operating system's (os.urandom).

    Where a message's projections are by chance outside of what can be proved, secrets are drawn again.
    """
    for _ in range(_MOST_DRAWS):
        upload = make_checked_upload(parameters, offer, message, new_secrets(random), random(SEED_BYTES))
        if upload is not None:
            return upload
    raise BadMessage("No proof of the message's norm could be made, though it is short enough; it is not sent.")


def make_checked_upload(
    parameters: Parameters,
    offer: Offer,
    message: NDArray[np.int32],
    secrets: Secrets,
    proof_seed: bytes,
    sealing: Callable[[bytes, bytes, bytes], bytes] = seal,
) -> CheckedUpload | None:
    """A message with its proof from these secrets, or None where they give none."""
    if len(message) > MOST_LENGTH:
        raise BadMessage(f"A message with a proof has at most {MOST_LENGTH:,} numbers; this one has {len(message):,}.")
    split = split_message(offer, message, secrets)
    parts = Parts(split.context, split.part_leader, split.part_helper)
    proof = prove(parameters, parts, secrets.blind, secrets.seed, proof_seed, (split.share, split.mask))
    if proof is None:
        return None
    inside = secrets.seed + split.part_leader + proof.part_wires
    sealed = sealing(offer.public(), seal_info(split.terms, secrets.id), inside)
    return CheckedUpload(secrets.id, secrets.blind, split.part_helper, sealed, split.share, proof.share)


def checked_bytes(parameters: Parameters, length: int) -> int:
    """How many bytes an upload of this many numbers has."""
    return HEADER_BYTES + 4 * length + parameters.proof_bytes


def encode_checked(upload: CheckedUpload) -> bytes:
    """The bytes of an upload."""
    header = Header(upload.id, upload.blind, upload.part_helper, upload.sealed)
    return write_header(FORM, header) + ring_bytes(upload.share) + element_bytes(upload.proof)


def decode_checked(parameters: Parameters, content: bytes, length: int) -> CheckedUpload:
    """An upload of this many numbers from the wire, once it is sure to have the form of one."""
    header = read_header(FORM, content, checked_bytes(parameters, length))
    if header is None:
        raise BadMessage("An upload with a proof begins in another way than this one does; nothing was taken from it.")
    share = ring_from(memoryview(content)[HEADER_BYTES : HEADER_BYTES + 4 * length])
    proof = elements_from(memoryview(content)[HEADER_BYTES + 4 * length :])
    return CheckedUpload(*header, share, proof)


def elements_from(content: bytes | memoryview) -> Elements:
    """Elements of the field from the wire."""
    result = np.frombuffer(content, dtype="<u8").astype(np.uint64)
    if (result >= MODULUS).any():
        raise BadMessage("A proof holds words that are no elements of its field; nothing was taken from it.")
    return result


def checked_report(parameters: Parameters, offer_digest: bytes, upload: CheckedUpload) -> Report:
    """What the leader sends to the helper about an upload: both of its own parts as they follow from what it holds."""
    context = context_of(offer_digest, upload.id)
    part_leader = leader_part(context, upload.blind, upload.share)
    part_wires = wires_part(context, upload.blind, upload.proof[: parameters.wires])
    return Report(upload.id, upload.sealed, part_leader, upload.part_helper, part_wires)
