"""The bytes of few messages: they come back whole, are counted to the byte, and no bytes of a stranger do harm."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from tests.squares_worlds import Broadcast, read_broadcast, read_update

from federank.errors import BadMessage
from federank.federation import wire
from federank.methods.frugal.protocol import FrugalUpdate, restored, rounded
from federank.methods.frugal.records import FrugalModel
from federank.methods.frugal.wire import encode_model

ITEMS, FACTORS = 7, 3


def some_rows(rows=ITEMS, factors=FACTORS, seed=1):
    return np.random.default_rng(seed).normal(size=(rows, factors)).astype(np.float32)


def an_update(n_items=ITEMS, factors=FACTORS):
    return FrugalUpdate.of(some_rows(n_items, 1)[:, 0], some_rows(1, factors)[0], np.float32(0.25))


def a_broadcast(items=range(ITEMS), *, as_codes=True):
    model = FrugalModel(some_rows(), np.linspace(0, 2, ITEMS).astype(np.float32), np.array([0.1]))
    rows = np.array(items, dtype=np.int32)
    return model, encode_model(model, rows, as_codes=as_codes, round_number=7, version=3)


@pytest.mark.parametrize("items", [range(ITEMS), [0, 2, 6], [0, 1, 2], []])
@pytest.mark.parametrize("as_codes", [True, False])
def test_a_broadcast_survives_the_wire_complete_or_in_part(items, as_codes):
    model, content = a_broadcast(items, as_codes=as_codes)
    received = read_broadcast(content, FACTORS, ITEMS)
    assert (received.round_number, received.version, received.regulariser) == (7, 3, 0.1)
    np.testing.assert_array_equal(received.items, list(items))
    rows = restored(*rounded(model.vectors)) if as_codes else model.vectors
    np.testing.assert_array_equal(received.vectors, rows[received.items])
    np.testing.assert_array_equal(received.weights, model.weights[received.items])


def test_rows_that_are_left_out_of_a_complete_broadcast_are_zeros():
    model, _ = a_broadcast()
    part = FrugalModel(model.vectors.copy(), model.weights.copy(), model.regulariser)
    part.vectors[2:], part.weights[2:] = 0, 0
    content = encode_model(part, np.arange(ITEMS, dtype=np.int32), as_codes=False, round_number=7, version=3)
    received = read_broadcast(content, FACTORS, ITEMS)
    np.testing.assert_array_equal(received.vectors, part.vectors)
    np.testing.assert_array_equal(received.weights, part.weights)


def update_parts(**changed):
    arrays = {"strengths": np.ones(ITEMS, np.float32), "vector": np.ones(FACTORS, np.float32)}
    return {"scale": np.ones(1, np.float32), **arrays} | changed


@pytest.mark.parametrize(
    "changed",
    [
        {"strengths": np.ones(ITEMS + 1, np.float32)},
        {"vector": np.ones(FACTORS - 1, np.float32)},
        {"vector": np.ones((FACTORS, 1), np.float32)},
        {"strengths": np.ones(ITEMS)},
        {"strengths": np.full(ITEMS, np.nan, np.float32)},
        {"vector": np.full(FACTORS, np.inf, np.float32)},
        {"scale": np.array([np.nan], np.float32)},
        {"scale": np.array([1.5], np.float32)},
        {"scale": np.array([-0.5], np.float32)},
        {"scale": np.ones(2, np.float32)},
        {"history": np.ones(2, np.int32)},
    ],
)
def test_an_update_that_breaks_the_protocol_is_refused(changed):
    with pytest.raises(BadMessage):
        read_update(save(update_parts(**changed)), FACTORS, ITEMS)


def broadcast_bytes(drop=(), about=None, **changed):
    codes, scales = rounded(some_rows())
    arrays = {"regulariser": np.array([0.5]), "codes": codes, "scales": scales} | changed
    kept = {name: array for name, array in arrays.items() if name not in drop}
    return save(kept, metadata=about or {"round": "3", "version": "3"})


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (broadcast_bytes(drop=["scales"]), "either as codes and scales or as vectors"),
        (broadcast_bytes(drop=["codes", "scales"]), "either as codes and scales or as vectors"),
        (broadcast_bytes(vectors=some_rows()), "either as codes and scales or as vectors"),
        (broadcast_bytes(drop=["scales"], vectors=some_rows()), "either as codes and scales or as vectors"),
        (broadcast_bytes(drop=["regulariser"]), "A Broadcast has the parts 'regulariser', and may have 'codes'"),
        (broadcast_bytes(biases=np.ones(3, np.float32)), "A Broadcast has the parts"),
        (broadcast_bytes(codes=np.zeros((ITEMS, 2), np.int8)), "8-bit integers of shape"),
        (broadcast_bytes(codes=np.zeros((ITEMS, FACTORS), np.int16)), "8-bit integers of shape"),
        (broadcast_bytes(codes=np.full((ITEMS, FACTORS), -128, np.int8)), "from -127 to 127; found -128"),
        (broadcast_bytes(scales=np.full(ITEMS, -1, np.float32)), "must not be negative"),
        (broadcast_bytes(scales=np.full(ITEMS, np.nan, np.float32)), "not finite"),
        (broadcast_bytes(items=np.array([0, 1], np.int32)), "8-bit integers of shape"),
        (broadcast_bytes(items=np.arange(1, ITEMS + 1, dtype=np.int32)), "must ascend"),
        (broadcast_bytes(regulariser=np.array([np.nan])), "regulariser of a Broadcast"),
        (broadcast_bytes(regulariser=np.array([-1.0])), "regulariser of a Broadcast"),
        (broadcast_bytes(regulariser=np.array([1.0, 1.0])), "regulariser of a Broadcast"),
        (broadcast_bytes(regulariser=np.array([1.0], np.float32)), "regulariser of a Broadcast"),
        (broadcast_bytes(about={"round": "3"}), "A Broadcast says its version as an integer"),
        (broadcast_bytes(drop=["codes", "scales"], vectors=np.full((ITEMS, FACTORS), np.nan, np.float32)), "finite"),
    ],
)
def test_a_broadcast_that_breaks_the_protocol_is_refused(message, complaint):
    with pytest.raises(BadMessage, match=complaint):
        read_broadcast(message, FACTORS, ITEMS)


def read_or_refused(decode, content):
    try:
        return decode(content, FACTORS, ITEMS)
    except BadMessage:
        return None


@given(content=st.binary(max_size=400))
def test_no_bytes_do_harm(content):
    for decode in (read_update, read_broadcast):
        assert read_or_refused(decode, content) is None


@given(data=st.data())
def test_a_message_with_some_bytes_changed_is_read_as_a_message_or_refused(data):
    message, decode, kind = data.draw(
        st.sampled_from(
            [
                (wire.encode(an_update()), read_update, FrugalUpdate),
                (a_broadcast()[1], read_broadcast, Broadcast),
            ]
        )
    )
    content = bytearray(message)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for received in (read_or_refused(decode, bytes(content)), read_or_refused(decode, bytes(content[:cut]))):
        assert received is None or isinstance(received, kind)


@pytest.mark.parametrize("dtype", ["F16", "BF16", "F8_E4M3", "F8_E5M2", "I4", "F4", "BOOL", "U64", "NONE"])
def test_a_header_that_names_any_type_of_number_is_refused(dtype):
    header = json.dumps({"strengths": {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}}).encode()
    content = len(header).to_bytes(8, "little") + header
    assert read_or_refused(read_update, content) is None
