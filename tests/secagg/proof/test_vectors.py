"""The vectors in the repository are what Python makes of their inputs; for JavaScript, see tests/service/web."""

import json

from tests.secagg.proof.vectors import FILE, vectors


def test_the_vectors_of_the_norm_check_are_as_they_were():
    kept = json.loads(FILE.read_text())
    assert vectors() == kept
    assert all(vector["accepted"] for vector in kept)
