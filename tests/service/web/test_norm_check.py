"""The norm check in JavaScript against Python: the same field, the same bytes, and the vectors of the repository."""

import hashlib
import json

import numpy as np
import pytest
from tests.secagg.proof.uploads import accepted
from tests.secagg.proof.vectors import FILE
from tests.secagg.worlds import LENGTH, bytes_from, messages, offer, sealed_with
from tests.service.web.test_secagg import pair

from federank.secagg.keys import new_private_key
from federank.secagg.proof.field import MODULUS
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import C_INT, KeyStream
from federank.secagg.upload import decode_upload, encode_upload, make_checked_upload, new_secrets


def in_hex(number):
    return number.to_bytes(8, "little").hex()


def test_uploads_are_those_of_the_repositorys_vectors(ask_secagg):
    kept = json.loads(FILE.read_text())
    questions = [
        {
            "kind": "checked",
            **{name: vector[name] for name in ("projections", "offer", "message")},
            "secrets": {name: vector[name] for name in ("id", "seed", "blind")},
            "proofSeed": vector["proof_seed"],
            "ephemeral": pair(bytes.fromhex(vector["sender_key"])),
        }
        for vector in kept
    ]
    found = [hashlib.sha256(bytes.fromhex(content)).hexdigest() for content in ask_secagg(*questions)]
    assert found == [vector["upload_sha256"] for vector in kept]


def test_arithmetic_in_the_field_is_pythons(ask_secagg):
    rng = np.random.default_rng(1)
    edges = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, MODULUS - 2**32, MODULUS - 2, MODULUS - 1]
    pairs = [(one, other) for one in edges for other in edges]
    pairs += [tuple(map(int, row)) for row in rng.integers(0, MODULUS, (3000, 2), dtype=np.uint64)]
    [found] = ask_secagg({"kind": "field", "pairs": [[in_hex(one), in_hex(other)] for one, other in pairs]})
    for (one, other), answers in zip(pairs, found, strict=True):
        expected = [(one + other) % MODULUS, (one - other) % MODULUS, one * other % MODULUS]
        assert answers == list(map(in_hex, expected)), (one, other)


def test_streams_and_field_elements_are_the_same(ask_secagg):
    words = [MODULUS, 5, 2**64 - 1, MODULUS - 1, 7, 8, MODULUS + 1, 9]
    told = {"kind": "stream", "secret": "aa" * 32, "context": "bb" * 32, "lengths": [16, 5, 40, 8]}
    found, stream = ask_secagg({"kind": "elements", "words": "".join(map(in_hex, words)), "count": 4}, told)
    assert found == "".join(map(in_hex, [5, MODULUS - 1, 7, 8]))
    assert stream == KeyStream(b"\xaa" * 32, b"\xbb" * 32, "mask").next(69).hex()


@pytest.mark.parametrize("projections", [64, 128])
def test_a_checked_upload_is_pythons_byte_for_byte(ask_secagg, projections):
    questions, mine = [], []
    for number, length in enumerate((1, 8, 1003, 32_775)):
        terms, _ = offer(length=length)
        message = np.random.default_rng(number).integers(-20, 21, length).astype(np.int32)
        random, own = bytes_from(number), new_private_key()
        secrets, proof_seed = new_secrets(random), random(32)

        def sealing(*told, own=own):
            return sealed_with(own, *told)[0]

        upload = make_checked_upload(Parameters(projections), terms, message, secrets, proof_seed, sealing)
        mine.append(encode_upload(upload).hex())
        told = {"id": secrets.id.hex(), "seed": secrets.seed.hex(), "blind": secrets.blind.hex()}
        question = {"offer": json.loads(terms.to_bytes()), "message": message.tolist(), "secrets": told}
        question |= {"projections": projections, "proofSeed": proof_seed.hex(), "ephemeral": pair(own)}
        questions.append({"kind": "checked", **question})
    assert ask_secagg(*questions) == mine


def test_what_the_page_proves_both_servers_accept(ask_secagg):
    terms, key = offer()
    told = {"kind": "checked", "projections": 128, "offer": json.loads(terms.to_bytes())}
    edge = [C_INT] + [0] * (LENGTH - 1)
    found = ask_secagg(*(told | {"message": message} for message in (messages(1)[0].tolist(), edge, [0] * LENGTH)))
    for content in found:
        upload = decode_upload(bytes.fromhex(content), LENGTH, Parameters(128))
        assert accepted(Parameters(128), terms, key, upload)
    [refused] = ask_secagg(told | {"message": [*edge[:-1], 1]})
    assert refused == {"refused": "upload.norm"}
    [unknown] = ask_secagg(told | {"message": edge, "projections": 65})
    assert unknown == {"refused": "upload.projections"}
