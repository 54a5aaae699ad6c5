"""Small rounds for the tests of sums: keys, a federation config, offers, and a sealing whose ephemeral key is handed
in.
"""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from federank.secagg.config import SecaggConfig
from federank.secagg.keys import new_private_key, private_key, public_key, public_key_of
from federank.secagg.round_config import Offer
from federank.secagg.upload import make_upload, new_secrets

HELPER, LEADER = bytes([7]) * 32, bytes([9]) * 32
COLUMNS = 3
ITEMS = 8
MODEL = bytes.fromhex("c53ab7e8830cd3f33901f9220e8a6635f27838f5959e0152eedde595c876c74f")
STAGE = 1
LENGTH = ITEMS * COLUMNS

# RFC 9180, A.3.1: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM in base mode; sequence number 0.
RFC_9180 = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "ephemeral": "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
    "private": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "public": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82"
    "6a779b4cf969b8a0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "enc": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "shared_secret": "c0d26aeab536609a572b07695d933b589dcf363ff9d93c93adea537aeabb8cb8",
    "key": "868c066ef58aae6dc589b6cfdd18f97e",
    "base_nonce": "4e0bc5018beba4bf004cca59",
    "content": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "ciphertext": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab2523f39513434",
}


def secagg_config(**changes):
    told = {
        "federation_id": "f" * 32,
        "catalogue": hashlib.sha256(b"items").hexdigest(),
        "settings": hashlib.sha256(b"settings").hexdigest(),
        "recipe": "private",
        "items": ITEMS,
        "columns": COLUMNS,
        "clip": "2.5",
        "noises": (96, 64, 80),
        "power": "0.3",
        "delta": "1e-06",
        "messages": 3,
        "least_cohort": 3,
        "largest_cohort": 100,
        "helper_origin": "https://helper.example",
        "helper_key": public_key_of(HELPER).hex(),
        "leader_key": public_key_of(LEADER).hex(),
    }
    if "noise" in changes:  # the same at every stage
        changes = changes | {"noises": (changes["noise"],) * changes.get("messages", told["messages"])}
        del changes["noise"]
    return SecaggConfig(**(told | changes))


def offer(key=None, **changes):
    """An offer of a small round, and the round's private key."""
    key = key or new_private_key()
    told = {
        "config": secagg_config().digest().hex(),
        "round": 6,
        "version": 4,
        "model": MODEL.hex(),
        "length": LENGTH,
        "stage": STAGE,
        "columns": COLUMNS,
        "clip": "2.5",
        "scale": 4096,
        "noise": secagg_config().noises[STAGE],
        "key": public_key_of(key).hex(),
        "expires": 2_000_000_000,
    }
    return Offer(**(told | changes)), key


def bytes_from(seed):
    """Randomness that a test can repeat, where the operating system's stands otherwise."""
    rng = np.random.default_rng(seed)
    return rng.bytes


def messages(count, length=LENGTH, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(-200, 200, (count, length)).astype(np.int32)


def uploads(terms, whole, seed=2):
    random = bytes_from(seed)
    return [make_upload(terms, message, new_secrets(random)) for message in whole]


def sealed_with(ephemeral, public, info, content, aad=b""):
    """HPKE's base mode as RFC 9180 writes it, with the sender's key handed in: what no library lets one choose.

    Returns what is sealed, and the numbers on the way there.
    """
    kem, suite = b"KEM\x00\x10", b"HPKE\x00\x10\x00\x01\x00\x01"

    def extract(suite_id, salt, label, secret):
        return HKDF.extract(SHA256(), salt or None, b"HPKE-v1" + suite_id + label + secret)

    def expand(suite_id, secret, label, about, length):
        named = length.to_bytes(2, "big") + b"HPKE-v1" + suite_id + label + about
        return HKDFExpand(SHA256(), length, named).derive(secret)

    mine, theirs = private_key(ephemeral), public_key(public)
    enc = public_key_of(ephemeral)
    prk = extract(kem, b"", b"eae_prk", mine.exchange(ec.ECDH(), theirs))
    shared = expand(kem, prk, b"shared_secret", enc + public, 32)
    about = b"\0" + extract(suite, b"", b"psk_id_hash", b"") + extract(suite, b"", b"info_hash", info)
    secret = extract(suite, shared, b"secret", b"")
    key, nonce = expand(suite, secret, b"key", about, 16), expand(suite, secret, b"base_nonce", about, 12)
    return enc + AESGCM(key).encrypt(nonce, content, aad), (shared, key, nonce)
