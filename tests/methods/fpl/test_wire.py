"""FPL's messages: what crosses the wire, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save
from tests.worlds import decode_update, rows_message

from federank.errors import BadMessage
from federank.federation import wire
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate

METHOD = FPL(n_items=5, factors=3, triples=1)


def update(items=(1, 4), factors=3):
    rows = len(items)
    return FPLUpdate(
        np.array(items, np.int32),
        np.arange(rows * factors, dtype=np.float32).reshape(rows, factors),
        np.ones(rows, np.float32),
    )


def decode_rows(content):
    return wire.decode_rows(FPLModel, METHOD, content)


def test_rows_are_plain_safetensors_and_a_full_model_names_no_items():
    content = rows_message(7, 3, np.array([1, 4], np.int32), np.ones((2, 3)), np.ones(2), 5)
    start = content[8 : content.index(b"}") + 1]
    assert start == b'{"__metadata__":{"round":"0000000007","version":"0000000003"}'
    assert set(load(content)) == {"items", "vectors", "biases"}
    everything = np.arange(5, dtype=np.int32)
    assert set(load(rows_message(7, 3, everything, np.ones((5, 3)), np.ones(5), 5))) == {"vectors", "biases"}


@pytest.mark.parametrize(
    "bad",
    [
        update((4, 1)),
        update((1, 1)),
        update((-1, 1)),
        update((1, 5)),
        replace(update(), biases=np.ones(3, np.float32)),
        update(factors=2),
        replace(update(), items=np.array([1, 4])),
        replace(update(), vectors=np.full((2, 3), np.nan, np.float32)),
        replace(update(), biases=np.array([np.inf, 0], np.float32)),
    ],
)
def test_an_update_of_another_form_is_refused(bad):
    with pytest.raises(BadMessage):
        decode_update(wire.encode(bad), 3, 5)


@pytest.mark.parametrize("content", [b"", b"garbage", wire.encode(update())[:-5], save({"other": np.zeros(3)})])
def test_bytes_that_are_no_message_are_refused(content):
    with pytest.raises(BadMessage):
        decode_update(content, 3, 5)
    with pytest.raises(BadMessage):
        decode_rows(content)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F4"])
def test_numbers_of_a_type_that_no_message_has_are_refused(dtype):
    empty = json.dumps({"items": {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}}).encode()
    with pytest.raises(BadMessage):
        decode_update(len(empty).to_bytes(8, "little") + empty, 3, 5)


@pytest.mark.parametrize("version", ["", "-1", "1.5", "1e3", " 7", "\u0667", "9" * 16])
def test_rows_whose_version_is_no_integer_are_refused(version):
    with pytest.raises(BadMessage):
        decode_rows(save(wire.values(update()), metadata={"round": "1", "version": version}))
