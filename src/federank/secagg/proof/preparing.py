"""One exchange for each report: the helper's look goes to the leader, who adds its own and decides.

A look on the wire is the point, the gadget's inputs, its output and the circuit's sum, eight bytes each. A report that
does not stand has none; the reason is not disclosed. Looks at several reports follow one another, with a byte before
each: 1 and the look, or 0.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from federank.errors import BadMessage
from federank.secagg.exchange import seed_of
from federank.secagg.proof.circuit import Parts, element_bytes
from federank.secagg.proof.field import MODULUS
from federank.secagg.proof.parameters import ELEMENT_BYTES, Parameters
from federank.secagg.proof.proof import Look, helper_look, holds, leader_look, point_of
from federank.secagg.ring import mask
from federank.secagg.upload import Report, Upload, context_of, elements_from

_SOME, _NONE = b"\1", b"\0"


def look_bytes(parameters: Parameters) -> int:
    """How many bytes the helper's look at a report has."""
    return ELEMENT_BYTES * (2 * parameters.columns + 3)


def prepare(parameters: Parameters, private: bytes, offer_digest: bytes, length: int, report: Report) -> bytes | None:
    """The helper's look at a report, or None where the report does not stand."""
    seed = seed_of(private, offer_digest, report)
    if seed is None or not report.part_wires:
        return None
    context = context_of(offer_digest, report.id)
    point = point_of(parameters, private, context)
    parts = Parts(context, report.part_leader, report.part_helper)
    look = helper_look(parameters, parts, report.part_wires, point, seed, mask(seed, context, length))
    return element_bytes(np.array([point, *look.inputs.tolist(), look.output, look.circuit], dtype=np.uint64))


def encode_looks(looks: Iterable[bytes | None]) -> bytes:
    """What the helper says of reports, in their order."""
    return b"".join(_NONE if look is None else _SOME + look for look in looks)


def decode_looks(parameters: Parameters, content: bytes, reports: int) -> list[bytes | None]:
    """A look at each of this many reports, or None where it does not stand."""
    result: list[bytes | None] = []
    at, size = 0, look_bytes(parameters)
    for _ in range(reports):
        stands, at = content[at : at + 1], at + 1
        if stands not in (_SOME, _NONE):
            raise BadMessage("The helper must say of every report whether it stands; this answer does not.")
        result.append(content[at : at + size] if stands == _SOME else None)
        at += size if stands == _SOME else 0
    if at != len(content):
        raise BadMessage("The helper's looks at reports have another length than looks have; they are not used.")
    return result


def accepts(parameters: Parameters, offer_digest: bytes, upload: Upload, report: Report, look: bytes) -> bool:
    """Whether the leader takes an upload, with what it sent to the helper and the helper's look."""
    assert upload.proof is not None, "the federation config asks for a proof"
    if len(look) != look_bytes(parameters):
        raise BadMessage(f"A look at a proof has {look_bytes(parameters):,} bytes; this one has {len(look):,}.")
    received = elements_from(look)
    if pow(int(received[0]), parameters.points, MODULUS) == 1:
        raise BadMessage("A look at a proof names a point that no proof is looked at in; it is not used.")
    theirs = Look(received[1:-2], int(received[-2]), int(received[-1]))
    parts = Parts(context_of(offer_digest, upload.id), report.part_leader, report.part_helper)
    mine = leader_look(parameters, parts, report.part_wires, int(received[0]), upload.share, upload.proof)
    return holds(mine, theirs)
