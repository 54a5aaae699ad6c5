"""Messages: only two kinds cross the wire, and a bad one is told so."""

import numpy as np
import pytest
from safetensors.numpy import load, save

from federank.protocol.messages import (
    BadMessage,
    Broadcast,
    Private,
    Update,
    broadcast_bytes,
    check_update,
    decode_update,
    encode,
    update_bytes,
)


def update(items=(1, 4), factors=3):
    rows = len(items)
    return Update(
        np.array(items, np.int32),
        np.arange(rows * factors, dtype=np.float32).reshape(rows, factors),
        np.ones(rows, np.float32),
    )


def test_an_update_survives_the_wire():
    sent = update()
    received = decode_update(encode(sent), factors=3, n_items=5)
    for one, other in zip(sent, received, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_broadcast_tells_its_round_on_the_wire():
    content = encode(Broadcast(7, *update()))
    assert b'"round":"0000000007"' in content
    assert set(load(content)) == {"items", "vectors", "biases"}


def test_nothing_private_can_be_encoded():
    private = Private(0, np.zeros(3, np.float32), np.array([1], np.int32), 1.0, np.array([True]), 1)
    for thing in (private, private.vector, private.profile, {"vector": private.vector}, (1, 2, 3)):
        with pytest.raises(TypeError, match="only a Broadcast or an Update"):
            encode(thing)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 1000])
def test_sizes_on_the_wire_are_known_without_sending(rows):
    rng = np.random.default_rng(1)
    items = np.sort(rng.choice(10_000, rows, replace=False)).astype(np.int32)
    content = (items, rng.normal(size=(rows, 20)).astype(np.float32), rng.normal(size=rows).astype(np.float32))
    assert len(encode(Update(*content))) == update_bytes(rows, 20)
    assert len(encode(Broadcast(123_456_789, *content))) == broadcast_bytes(rows, 20)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (update((4, 1)), "must ascend"),
        (update((1, 1)), "must ascend"),
        (update((-1, 1)), "must ascend"),
        (update((1, 5)), "must ascend"),
        (update()._replace(biases=np.ones(3, np.float32)), "as many biases"),
        (update(factors=2), "needs vectors of shape"),
        (update()._replace(items=np.array([1, 4])), "32-bit integers"),
        (update()._replace(vectors=np.full((2, 3), np.nan, np.float32)), "not finite"),
        (update()._replace(biases=np.array([np.inf, 0], np.float32)), "not finite"),
    ],
)
def test_an_update_that_breaks_the_protocol_is_refused(bad, complaint):
    with pytest.raises(BadMessage, match=complaint):
        check_update(bad, factors=3, n_items=5)


def test_bytes_that_are_no_update_are_refused():
    for content in (b"", b"garbage", encode(update())[:-5], save({"other": np.zeros(3)})):
        with pytest.raises(BadMessage):
            decode_update(content, factors=3, n_items=5)
