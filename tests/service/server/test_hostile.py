"""Ten thousand hostile uploads against a real server: each is refused, the server lives, the model is what it was."""

import gzip
import json
import struct

import httpx
import numpy as np
import pytest
from tests.service.federations import ITEMS, PATIENT, TENSORS, Served, establish_small, some_update, stored
from tests.worlds import decode_update

from federank.errors import BadMessage
from federank.federation.wire import encode
from federank.methods.fpl.method import FPLUpdate

UPLOADS = 10_000


def safetensors(header, body=b""):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + body


def wrong_arrays(rng):
    """An Update of the right layout with something wrong in it."""
    update = some_update(int(rng.integers(2**31)), rows=int(rng.integers(2, 8)))
    items, vectors, biases = update.items.copy(), update.vectors.copy(), update.biases.copy()
    place = int(rng.integers(len(items)))
    way = rng.integers(9)
    if way == 0:
        vectors[place, rng.integers(3)] = rng.choice([np.nan, np.inf, -np.inf])
    elif way == 1:
        biases[place] = rng.choice([np.nan, np.inf, -np.inf])
    elif way == 2:
        items[0] = -int(rng.integers(1, 2**31))
    elif way == 3:
        items[-1] = int(rng.integers(ITEMS, 2**31))
    elif way == 4:
        items[1] = items[0]
    elif way == 5:
        items = items[::-1].copy()
    elif way == 6:
        vectors = np.zeros((len(items), int(rng.choice([1, 2, 4, 9]))), dtype=np.float32)
    elif way == 7:
        biases = biases[: rng.integers(len(biases))].copy()
    else:
        vectors = vectors[: rng.integers(len(vectors))].copy()
    return encode(FPLUpdate(items, vectors, biases))


def wrong_header(rng):
    """Something that calls itself safetensors."""
    good = encode(some_update(int(rng.integers(2**31))))
    length = struct.unpack("<Q", good[:8])[0]
    header, body = json.loads(good[8 : 8 + length]), good[8 + length :]
    way = rng.integers(12)
    if way == 0:
        return struct.pack("<Q", int(rng.integers(0, 2**63))) + good[8:]
    if way == 1:
        return good[: int(rng.integers(len(good)))]
    if way == 2:
        return good + rng.bytes(int(rng.integers(1, 50)))
    if way == 3:
        header["vectors"]["data_offsets"] = [int(n) for n in rng.integers(-(2**40), 2**40, 2)]
    elif way == 4:
        header["items"]["shape"] = [int(n) for n in rng.integers(-(2**31), 2**62, 3)]
    elif way == 5:
        header["biases"]["dtype"] = str(rng.choice(["F64", "I8", "BOOL", "nonsense", "F16"]))
    elif way == 6:
        del header[str(rng.choice(["items", "vectors", "biases"]))]
    elif way == 7:
        header["user"] = header["items"]
    elif way == 8:
        return safetensors(b"[" * int(rng.integers(1, 900)), body)
    elif way == 9:
        header["__metadata__"] = {"deep": {"er": 1}}
    elif way == 10:
        return safetensors(rng.bytes(int(rng.integers(1, 200))), body)
    else:
        header["items"]["data_offsets"] = header["biases"]["data_offsets"]
        header["items"]["shape"] = [1]
    return safetensors(header, body)


def altered(rng):
    """A right Update's header with some of its bytes changed."""
    content = bytearray(encode(some_update(int(rng.integers(2**31)))))
    length = struct.unpack("<Q", content[:8])[0]
    for _ in range(int(rng.integers(1, 5))):
        content[int(rng.integers(8 + length))] ^= int(rng.integers(1, 256))
    return bytes(content)


def noise(rng):
    return rng.bytes(int(rng.integers(0, 1500)))


def too_long(rng):
    return rng.bytes(int(rng.integers(3000, 60_000)))


def too_many_rows(rng):
    return encode(some_update(int(rng.integers(2**31)), rows=int(rng.integers(9, ITEMS + 1))))


def compressed(rng):
    return gzip.compress(bytes(int(rng.integers(10**4, 10**6))))


KINDS = (wrong_arrays, wrong_header, noise, too_long, too_many_rows, compressed, altered)


@pytest.mark.slow
def test_hostile_uploads_are_refused_and_leave_the_model_alone(tmp_path, sqlite_store):
    store = sqlite_store
    establish_small(store, {"target": 1000, "over_selection": 1.0} | PATIENT)
    rng = np.random.default_rng(11)
    answers: dict[int, int] = {}
    with Served(store, "--rehearsal", "--quiet", folder=tmp_path).until_ready() as server, server.client() as client:
        before = client.get("/api/v1/model").content
        tokens = [client.post("/api/v1/clients", json={}).json()["token"] for _ in range(3)]
        tokens = [TENSORS | {"Authorization": f"Bearer {token}"} for token in tokens]
        tickets = [client.get("/api/v1/work?wait=10", headers=token).json()["ticket"] for token in tokens]
        for number in range(UPLOADS):
            kind = KINDS[number % len(KINDS)]
            body, place = kind(rng), number % 3
            headers = tokens[place] | ({"Content-Encoding": "gzip"} if kind is compressed else {})
            ticket = tickets[place]
            if number % 17 == 0:  # a right Update with a wrong ticket
                body = encode(some_update(number))
                ticket = tickets[(place + 1) % 3] if number % 2 else "A" * int(rng.integers(1, 90))
            if kind is altered and number % 17 and _is_right(body):
                continue  # the change has hit nothing that matters, such as the order of the header's parts
            try:
                answer = client.post(f"/api/v1/tasks/{ticket}/update", content=body, headers=headers)
            except httpx.TransportError:
                answers[0] = answers.get(0, 0) + 1  # cut off while it was still sending too much
                continue
            assert 400 <= answer.status_code < 500, (number, kind.__name__, answer.status_code, answer.text)
            assert set(answer.json()) == {"error", "message"}
            answers[answer.status_code] = answers.get(answer.status_code, 0) + 1
        assert client.get("/health").status_code == 200
        assert client.get("/api/v1/model").content == before
        assert client.get("/api/v1/status").json()["reports"] == 0
        place = f"/api/v1/tasks/{tickets[0]}/update"
        assert client.post(place, content=encode(some_update(1)), headers=tokens[0]).status_code == 201
    assert {404, 413, 415, 422} <= answers.keys()
    assert sum(answers.values()) > 0.9 * UPLOADS
    assert stored(store, "SELECT COUNT(*) FROM uploads") == [(1,)]


def _is_right(body):
    try:
        decode_update(body, 3, ITEMS)
    except BadMessage:
        return False
    return True
