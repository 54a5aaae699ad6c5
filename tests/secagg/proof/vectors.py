"""Test vectors of the norm check: fixed inputs, and what follows from them on the way to a decision.

vectors.json holds them for both languages and for anyone who writes a third. To write it again:

    python -m tests.secagg.proof.vectors

A change of what is in it is a change of the protocol, and needs another name in front of uploads.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from tests.secagg.worlds import offer, sealed_with

from federank.secagg.proof.circuit import Parts, project, projection_key
from federank.secagg.proof.parameters import Parameters
from federank.secagg.proof.preparing import accepts, prepare
from federank.secagg.proof.proof import wires_of
from federank.secagg.ring import mask
from federank.secagg.upload import Secrets, context_of, encode_upload, make_checked_upload, report_of

FILE = Path(__file__).with_name("vectors.json")
ROUND_KEY, SENDER_KEY = bytes([3]) * 32, bytes([5]) * 32
SECRETS = Secrets(bytes(range(16)), bytes(range(32, 64)), bytes(range(64, 80)))
PROOF_SEED = bytes(range(96, 128))
MESSAGES = {
    "one number": [0, 0, -4096, 0, 0],
    "nine numbers": [1, -2, 3, 2000, -2000, 2000, 500, 0, -7],
    "zero": [0] * 17,
}


def sealing(*told):
    """With a sender's key that is known."""
    return sealed_with(SENDER_KEY, *told)[0]


def vector(projections, name):
    """One vector: everything on the way from a message to a decision."""
    parameters, message = Parameters(projections), MESSAGES[name]
    terms, _ = offer(key=ROUND_KEY, length=len(message))
    upload = make_checked_upload(parameters, terms, np.array(message, dtype=np.int32), SECRETS, PROOF_SEED, sealing)
    report = report_of(terms.digest(), upload, parameters)
    look = prepare(parameters, ROUND_KEY, terms.digest(), terms.length, report)
    context = context_of(terms.digest(), upload.id)
    key = projection_key(Parts(context, report.part_leader, report.part_helper))
    hidden = mask(SECRETS.seed, context, terms.length)
    projected = project(key, context, projections, upload.share, hidden)
    return {
        "projections": projections,
        "message": message,
        "offer": json.loads(terms.to_bytes()),
        "round_key": ROUND_KEY.hex(),
        "sender_key": SENDER_KEY.hex(),
        "id": SECRETS.id.hex(),
        "seed": SECRETS.seed.hex(),
        "blind": SECRETS.blind.hex(),
        "proof_seed": PROOF_SEED.hex(),
        "context": context.hex(),
        "projection_key": key.hex(),
        "leader_projections": projected[0].tolist(),
        "helper_projections": projected[1].tolist(),
        "wires": "".join(map(str, wires_of(parameters, *projected).tolist())),
        "part_wires": report.part_wires.hex(),
        "first_elements_of_the_proof": upload.proof[:4].astype("<u8").tobytes().hex(),
        "last_elements_of_the_proof": upload.proof[-4:].astype("<u8").tobytes().hex(),
        "upload_sha256": hashlib.sha256(encode_upload(upload)).hexdigest(),
        "look": look.hex(),
        "accepted": accepts(parameters, terms.digest(), upload, report, look),
    }


def vectors():
    """All of them."""
    return [vector(projections, name) for projections in (64, 128) for name in MESSAGES]


if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(json.dumps(one) for one in vectors()) + "\n]\n")
