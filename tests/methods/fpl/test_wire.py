"""Messages: only two kinds cross the wire, and a bad one is told so."""

import json

import numpy as np
import pytest
from safetensors.numpy import load, save

from federank.errors import BadMessage
from federank.methods.fpl.wire import (
    Broadcast,
    Private,
    Update,
    broadcast_bytes,
    check_update,
    decode_broadcast,
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


def test_a_broadcast_survives_the_wire_with_its_round_and_version():
    sent = Broadcast(7, 3, *update())
    received = decode_broadcast(encode(sent), factors=3, n_items=5)
    assert (received.round_number, received.version) == (7, 3)
    for one, other in zip(sent, received, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_broadcast_is_plain_safetensors_and_always_the_same_bytes():
    content = encode(Broadcast(7, 3, *update()))
    start = content[8 : content.index(b"}") + 1]
    assert start == b'{"__metadata__":{"round":"0000000007","version":"0000000003"}'
    assert set(load(content)) == {"items", "vectors", "biases"}
    assert int.from_bytes(content[:8], "little") % 8 == 0


def test_nothing_private_can_be_encoded():
    private = Private(0, np.zeros(3, np.float32), np.array([1], np.int32), 1.0, np.array([True]), 1)
    for thing in (private, private.vector, private.profile, {"vector": private.vector}, (1, 2, 3)):
        with pytest.raises(TypeError):
            encode(thing)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 1000])
def test_sizes_on_the_wire_are_known_without_sending(rows):
    rng = np.random.default_rng(1)
    items = np.sort(rng.choice(10_000, rows, replace=False)).astype(np.int32)
    content = (items, rng.normal(size=(rows, 20)).astype(np.float32), rng.normal(size=rows).astype(np.float32))
    assert len(encode(Update(*content))) == update_bytes(rows, 20)
    assert len(encode(Broadcast(123_456_789, 12_345, *content))) == broadcast_bytes(rows, 20)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (update((4, 1)), "must ascend"),
        (update((1, 1)), "must ascend"),
        (update((-1, 1)), "must ascend"),
        (update((1, 5)), "must ascend"),
        (update()._replace(biases=np.ones(3, np.float32)), "biases of an Update must be .* of shape"),
        (update(factors=2), "vectors of an Update must be .* of shape"),
        (update()._replace(items=np.array([1, 4])), "32-bit integers"),
        (update()._replace(vectors=np.full((2, 3), np.nan, np.float32)), "not finite"),
        (update()._replace(biases=np.array([np.inf, 0], np.float32)), "not finite"),
    ],
)
def test_an_update_that_breaks_the_protocol_is_refused(bad, complaint):
    with pytest.raises(BadMessage, match=complaint):
        check_update(bad, factors=3, n_items=5)


@pytest.mark.parametrize(("decode", "name"), [(decode_update, "An Update"), (decode_broadcast, "A Broadcast")])
def test_bytes_that_are_no_message_are_refused_by_its_name(decode, name):
    for content in (b"", b"garbage", encode(update())[:-5], save({"other": np.zeros(3)})):
        with pytest.raises(BadMessage, match=name):
            decode(content, factors=3, n_items=5)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F4"])
def test_numbers_of_a_type_that_no_message_has_are_refused(dtype):
    empty = json.dumps({"items": {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}}).encode()
    with pytest.raises(BadMessage):
        decode_update(len(empty).to_bytes(8, "little") + empty, factors=3, n_items=5)


@pytest.mark.parametrize("told", ["", "-1", "1.5", "1e3", " 7", "\u0667", "9" * 16])
def test_a_broadcast_whose_version_is_no_whole_number_is_refused(told):
    arrays = update()._asdict()
    with pytest.raises(BadMessage):
        decode_broadcast(save(arrays, metadata={"round": "1", "version": told}), factors=3, n_items=5)


def test_an_update_is_no_broadcast():
    with pytest.raises(BadMessage):
        decode_broadcast(encode(update()), factors=3, n_items=5)
