"""Ratings on the wire between a server and devices in the world: rows of the model down, Updates up.

    Broadcast     items, vectors (V), heard, and implicit_vectors (W) for SVD++; round, version and iteration
    Update        items, vectors; and implicit_items, implicit_vectors for SVD++ (messages.py)

`heard` is 1 for an item that some Update has ever had and 0 for one that none has: its vector says nothing yet. An
Update does not tell rated items from sampled ones, so neither does it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, IntVector
from federank.errors import BadMessage
from federank.protocol.ratings.messages import RatingUpdate, check_rating_update
from federank.protocol.wire import Array, check_items, check_values, decode_parts, encode_parts

_IMPLICIT = ("implicit_items", "implicit_vectors")


class RatingRows(NamedTuple):
    """Rows of the shared model as a server sends them."""

    round_number: int
    version: int
    iteration: int
    items: IntVector
    vectors: FloatMatrix
    heard: NDArray[np.int8]
    implicit_vectors: FloatMatrix  # one row per item too; none for PMF


def encode_rating_rows(rows: RatingRows) -> bytes:
    """The bytes of a Broadcast."""
    arrays: dict[str, Array] = {"items": rows.items, "vectors": rows.vectors, "heard": rows.heard}
    if len(rows.implicit_vectors):
        arrays["implicit_vectors"] = rows.implicit_vectors
    return encode_parts(arrays, {"round": rows.round_number, "version": rows.version, "iteration": rows.iteration})


def decode_rating_rows(content: bytes, factors: int, n_items: int, *, implicit: bool) -> RatingRows:
    """A Broadcast from the wire, once it is sure to be one."""
    parts, numbers_told = ("items", "vectors", "heard"), ("round", "version", "iteration")
    arrays, numbers = decode_parts(content, "a Broadcast", parts, numbers_told, _IMPLICIT[1:] if implicit else ())
    items, heard = arrays["items"], arrays["heard"]
    check_items("a Broadcast", items, n_items)
    shape = (len(items), factors)
    check_values("a Broadcast", "vectors", arrays["vectors"], shape)
    if heard.dtype != np.int8 or heard.shape != shape[:1] or not np.isin(heard, (0, 1)).all():
        raise BadMessage("The part heard of a Broadcast must be one 8-bit 0 or 1 for each item.")
    none = np.zeros((0, factors), dtype=np.float32)
    W = arrays.get("implicit_vectors", none)
    if implicit:
        check_values("a Broadcast", "implicit_vectors", W, shape)
    return RatingRows(numbers["round"], numbers["version"], numbers["iteration"], items, arrays["vectors"], heard, W)


def decode_rating_update(content: bytes, factors: int, n_items: int, *, implicit: bool) -> RatingUpdate:
    """An Update from the wire, once it is sure to be one."""
    update = rating_update_of_ours(content, factors)
    check_rating_update(update, factors, n_items, implicit=implicit)
    return update


def rating_update_of_ours(content: bytes, factors: int) -> RatingUpdate:
    """An Update from bytes that `decode_rating_update` has accepted before."""
    arrays, _ = decode_parts(content, "an Update", ("items", "vectors"), optional=_IMPLICIT)
    none = np.zeros(0, dtype=np.int32), np.zeros((0, factors), dtype=np.float32)
    implicit = (arrays.get(name, nothing) for name, nothing in zip(_IMPLICIT, none, strict=True))
    return RatingUpdate(arrays["items"], arrays["vectors"], *implicit)


@cache
def rating_rows_bytes(n_items: int, factors: int, *, implicit: bool) -> int:
    """How many bytes a Broadcast of this many rows takes on the wire."""
    table = np.zeros((n_items, factors), dtype=np.float32)
    items, heard = np.zeros(n_items, dtype=np.int32), np.zeros(n_items, dtype=np.int8)
    return len(encode_rating_rows(RatingRows(0, 0, 0, items, table, heard, table if implicit else table[:0])))
