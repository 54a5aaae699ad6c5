"""Sealing against RFC 9180's published vector, and what must not open."""

import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from tests.secagg.worlds import RFC_9180, sealed_with

from federank.errors import BadMessage
from federank.secagg.keys import OVERHEAD, new_private_key, open_with, private_key, public_key_of, seal

VECTOR = {name: bytes.fromhex(text) for name, text in RFC_9180.items()}


def test_the_suite_opens_the_published_vector():
    suite = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
    sealed = VECTOR["enc"] + VECTOR["ciphertext"]
    key = private_key(VECTOR["private"])
    opened = openssl.hpke._decrypt_with_aad(suite, sealed, key, VECTOR["info"], VECTOR["aad"])
    assert opened == VECTOR["content"]


def test_keys_of_the_published_vector_belong_together():
    assert public_key_of(VECTOR["private"]) == VECTOR["public"]
    assert public_key_of(VECTOR["ephemeral"]) == VECTOR["enc"]


def test_sealing_with_a_chosen_key_gives_the_published_numbers():
    sealed, on_the_way = sealed_with(*(VECTOR[name] for name in ("ephemeral", "public", "info", "content", "aad")))
    assert on_the_way == (VECTOR["shared_secret"], VECTOR["key"], VECTOR["base_nonce"])
    assert sealed == VECTOR["enc"] + VECTOR["ciphertext"]


def test_what_is_sealed_either_way_opens():
    private, info, content = new_private_key(), b"a round", bytes(range(64))
    for sealed in (
        seal(public_key_of(private), info, content),
        sealed_with(new_private_key(), public_key_of(private), info, content)[0],
    ):
        assert len(sealed) == len(content) + OVERHEAD == 145
        assert open_with(private_key(private), info, sealed) == content


def test_nothing_opens_with_another_key_another_purpose_or_another_byte():
    private = new_private_key()
    sealed = seal(public_key_of(private), b"a round", b"secret")
    assert open_with(private_key(new_private_key()), b"a round", sealed) is None
    assert open_with(private_key(private), b"another round", sealed) is None
    for place in (0, 30, 64, 65, len(sealed) - 1):
        spoilt = bytearray(sealed)
        spoilt[place] ^= 1
        assert open_with(private_key(private), b"a round", bytes(spoilt)) is None
    for short in (sealed[:-1], sealed[:OVERHEAD], sealed[:10], b""):
        assert open_with(private_key(private), b"a round", short) is None


@pytest.mark.parametrize("public", [b"", bytes(65), b"\4" + bytes(64), b"\2" + bytes(32)])
def test_what_is_no_point_of_the_curve_is_refused(public):
    with pytest.raises(BadMessage, match="uncompressed point"):
        seal(public, b"", b"content")
