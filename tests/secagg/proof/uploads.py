"""Reports with proofs for the tests of the norm check: honest ones, and those of a malicious client who may send what
it likes.
"""

import numpy as np
from tests.secagg.worlds import bytes_from

from federank.secagg.keys import seal
from federank.secagg.proof.circuit import Parts, project, projection_key
from federank.secagg.proof.preparing import accepts, prepare
from federank.secagg.proof.proof import prove_wires, wires_of
from federank.secagg.ring import in_ring, mask
from federank.secagg.upload import Upload, context_of, helper_part, leader_part, new_secrets, report_of, seal_info


def accepted(parameters, terms, key, upload):
    """What both servers make of an upload."""
    report = report_of(terms.digest(), upload, parameters)
    look = prepare(parameters, key, terms.digest(), terms.length, report)
    return look is not None and accepts(parameters, terms.digest(), upload, report, look)


def liars_upload(parameters, terms, message, poisoning_attack, seed=1):
    """An upload of a message of any norm. `lie` makes the wires from the projections of both shares.

    Everything else is as the protocol has it: what a malicious client changes elsewhere is a flipped byte.
    """
    random = bytes_from(seed)
    secrets, proof_seed = new_secrets(random), random(32)
    context = context_of(terms.digest(), secrets.id)
    hidden = mask(secrets.seed, context, terms.length)
    share = in_ring(np.asarray(message)) - hidden
    parts = Parts(context, leader_part(context, secrets.blind, share), helper_part(context, secrets.seed))
    projected = project(projection_key(parts), context, parameters.projections, share, hidden)
    wires = np.array(poisoning_attack(parameters, *projected), dtype=np.uint64)
    proof = prove_wires(parameters, parts, secrets.blind, secrets.seed, proof_seed, wires)
    inside = secrets.seed + parts.leader + proof.part_wires
    sealed = seal(terms.public(), seal_info(terms.digest(), secrets.id), inside)
    return Upload(secrets.id, secrets.blind, parts.helper, sealed, share, proof.share)


def no_lie(parameters, leader, helper):
    return wires_of(parameters, leader, helper)
