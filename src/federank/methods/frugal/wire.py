"""The messages of squares as bytes, and how many bytes that is.

Both are safetensors, written and read by the one wire format (federation/wire.py). An Update is three arrays. A
Broadcast has its rows as `codes` and `scales`, or as `vectors` where they are not quantised. `items` are left out where
all rows are sent, and `weights` where every item weighs 1. With `complete` the rows of all items are meant, and those
that are not named are zeros: of items without support. What arrives from the network is validated.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.errors import BadMessage
from federank.federation.wire import (
    Array,
    check_items,
    check_values,
    decode,
    decode_parts,
    encode,
    encode_parts,
    values,
)
from federank.federation.wire import arrays as record_arrays
from federank.methods.frugal.item_weights import ItemWeights
from federank.methods.frugal.objective import solve_user
from federank.methods.frugal.protocol import (
    LEVELS,
    FrugalBroadcast,
    FrugalUpdate,
    check_frugal_update,
    is_count,
    restored,
)
from federank.methods.frugal.records import RIDGE
from federank.methods.frugal.settings import FrugalRecipe

_BROADCAST = "a Broadcast"
RIDGE_PARTS = tuple(RIDGE + part.name for part in record_arrays(ItemWeights))
"""Item-item weights in a broadcast."""


def encode_frugal_update(update: FrugalUpdate) -> bytes:
    """The bytes of an Update."""
    if not isinstance(update, FrugalUpdate):
        raise TypeError(f"only an Update may leave a device, not a {type(update).__name__}")
    return encode(update)


class _Catalogue(NamedTuple):
    """All that the wire format of an Update must know."""

    n_items: int


def decode_frugal_update(content: bytes, factors: int, n_items: int) -> FrugalUpdate:
    """An Update from the wire, once it is sure to be one."""
    update: FrugalUpdate = decode(FrugalUpdate, _Catalogue(n_items), content)
    check_frugal_update(update, factors, n_items)
    return update


def decode_any_frugal_update(content: bytes, factors: int, rows: int | None, n_items: int) -> FrugalUpdate:
    """An Update of this many supported items (None: of some of them), or one of counts of the full catalogue."""
    update: FrugalUpdate = decode(FrugalUpdate, _Catalogue(n_items), content)
    covered = min(len(update.strengths), n_items) if rows is None else rows
    check_frugal_update(update, *((0, n_items) if is_count(update) else (factors, covered)))
    return update


def encode_frugal_broadcast(broadcast: FrugalBroadcast, n_items: int, item_weights: ItemWeights | None = None) -> bytes:
    """The bytes of a broadcast to clients that know of `n_items`; item-item weights are sent complete."""
    if not isinstance(broadcast, FrugalBroadcast):
        raise TypeError(f"only a Broadcast may be sent to devices, not a {type(broadcast).__name__}")
    arrays: dict[str, Array] = {"regulariser": np.array([broadcast.regulariser])}
    named = _without_zeros(broadcast) if len(broadcast.items) == n_items else broadcast
    if len(named.items) < len(broadcast.items):
        arrays["complete"] = np.ones(1, dtype=np.int8)
    broadcast = named
    if len(broadcast.items) < n_items:
        arrays["items"] = broadcast.items
    if np.any(broadcast.weights != 1):
        arrays["weights"] = broadcast.weights
    if broadcast.codes.shape[1]:
        arrays |= {"codes": broadcast.codes, "scales": broadcast.scales}
    else:
        arrays["vectors"] = broadcast.vectors
    if item_weights is not None:
        arrays |= {RIDGE + name: part for name, part in values(item_weights).items()}
    return encode_parts(arrays, {"round": broadcast.round_number, "version": broadcast.version})


def _without_zeros(broadcast: FrugalBroadcast) -> FrugalBroadcast:
    """The same without the items that weigh nothing and whose row is zeros."""
    as_codes = broadcast.codes.shape[1] > 0
    kept = (broadcast.weights != 0) | (broadcast.scales != 0 if as_codes else broadcast.vectors.any(axis=1))
    if kept.all():
        return broadcast
    return broadcast._replace(
        items=broadcast.items[kept],
        weights=broadcast.weights[kept],
        codes=broadcast.codes[kept],
        scales=broadcast.scales[kept] if as_codes else broadcast.scales,
        vectors=broadcast.vectors if as_codes else broadcast.vectors[kept],
    )


def _completed(broadcast: FrugalBroadcast, n_items: int) -> FrugalBroadcast:
    """The rows of all items: those that are not named are zeros, and weigh nothing."""

    def placed(rows: Array) -> Array:
        table = np.zeros((n_items, *rows.shape[1:]), dtype=rows.dtype)
        table[broadcast.items] = rows
        return table

    as_codes = broadcast.codes.shape[1] > 0
    return broadcast._replace(
        items=np.arange(n_items, dtype=np.int32),
        weights=placed(broadcast.weights),
        codes=placed(broadcast.codes),
        scales=placed(broadcast.scales) if as_codes else broadcast.scales,
        vectors=broadcast.vectors if as_codes else placed(broadcast.vectors),
    )


def decode_item_weights(content: bytes, n_items: int) -> ItemWeights | None:
    """The item-item weights of a broadcast, checked; None where it has none. They may be of fewer items."""
    parts = {name.removeprefix(RIDGE): part for name, part in load(content).items() if name.startswith(RIDGE)}
    if not parts:
        return None
    known = len(parts["scales"]) if "scales" in parts else n_items
    return ItemWeights.read(parts, min(known, n_items)).extended(n_items)


def decode_frugal_broadcast(content: bytes, factors: int, n_items: int) -> FrugalBroadcast:
    """A Broadcast from the wire, once it is sure to be one."""
    optional = ("items", "weights", "codes", "scales", "vectors", "complete", *RIDGE_PARTS)
    arrays, numbers = decode_parts(content, _BROADCAST, ("regulariser",), ("round", "version"), optional)
    items = arrays.get("items", np.arange(n_items, dtype=np.int32))
    check_items(_BROADCAST, items, n_items)
    weights = arrays.get("weights", np.ones(len(items), dtype=np.float32))
    check_values(_BROADCAST, "weights", weights, (len(items),))
    if np.any(weights < 0):
        raise BadMessage("The weights of a Broadcast must not be negative.")
    as_codes = {"codes", "scales"} <= set(arrays)
    if as_codes == ("vectors" in arrays) or ("codes" in arrays) != ("scales" in arrays):
        raise BadMessage("A Broadcast tells its rows either as codes and scales or as vectors, and as one of the two.")
    if as_codes:
        codes, scales, vectors = arrays["codes"], arrays["scales"], np.zeros((0, factors), dtype=np.float32)
        _check_codes(codes, (len(items), factors))
        check_values(_BROADCAST, "scales", scales, (len(items),))
        if np.any(scales < 0):
            raise BadMessage("The scales of a Broadcast must not be negative.")
        with np.errstate(over="ignore"):
            if not np.isfinite(restored(codes, scales)).all():
                raise BadMessage("A Broadcast's codes and scales make values that are not finite numbers.")
    else:
        codes, scales = np.zeros((len(items), 0), dtype=np.int8), np.zeros(0, dtype=np.float32)
        vectors = arrays["vectors"]
        check_values(_BROADCAST, "vectors", vectors, (len(items), factors))
    regulariser = _regulariser(arrays["regulariser"])
    broadcast = FrugalBroadcast(
        numbers["round"], numbers["version"], regulariser, items, weights, codes, scales, vectors
    )
    return _completed(broadcast, n_items) if "complete" in arrays else broadcast


def _check_codes(codes: Array, shape: tuple[int, ...]) -> None:
    if codes.dtype != np.int8 or codes.shape != shape:
        raise BadMessage(
            f"The codes of a Broadcast must be 8-bit integers of shape {shape}; found {codes.dtype} of {codes.shape}."
        )
    if np.any(codes < -LEVELS):
        raise BadMessage(f"The codes of a Broadcast go from -{LEVELS} to {LEVELS}; found {int(codes.min())}.")


def _regulariser(value: Array) -> float:
    if value.dtype != np.float64 or value.shape != (1,) or not (np.isfinite(value[0]) and value[0] >= 0):
        raise BadMessage("The regulariser of a Broadcast must be one 64-bit float, finite and not negative.")
    return float(value[0])


@cache
def frugal_update_bytes(n_items: int, factors: int) -> int:
    """How many bytes an Update of this many items takes on the wire."""
    blank = np.zeros(n_items, dtype=np.float32), np.zeros(factors, dtype=np.float32)
    return len(encode_frugal_update(FrugalUpdate.of(*blank, 1.0)))


@cache
def frugal_broadcast_bytes(rows: int, factors: int, *, all_rows: bool, as_codes: bool, weighted: bool) -> int:
    """How many bytes a broadcast of this many rows takes on the wire; `all_rows`: they are all there are."""
    codes = np.zeros((rows, factors if as_codes else 0), dtype=np.int8)
    scales = np.zeros(rows if as_codes else 0, dtype=np.float32)
    vectors = np.zeros((0 if as_codes else rows, factors), dtype=np.float32)
    weights = np.full(rows, 0.5 if weighted else 1.0, dtype=np.float32)
    blank = FrugalBroadcast(0, 0, 0.0, np.zeros(rows, dtype=np.int32), weights, codes, scales, vectors)
    return len(encode_frugal_broadcast(blank, rows if all_rows else rows + 1))


@cache
def dense_bytes(n_items: int, factors: int) -> int:
    """How many bytes an Update takes that is written out, as it must be where only sums are read."""
    columns = factors + 1
    residuals, squares = np.zeros((n_items, columns), dtype=np.float32), np.zeros((columns, columns), dtype=np.float32)
    return len(encode_parts({"pulls": residuals, "squares": squares}))


# What the equations of few messages can give: a message that they cannot is a lie, and is refused where it is readable.


SLACK = 0.01
"""Strengths of 32-bit floats, and a vector that a browser has solved for in its own order."""


def why_implausible_frugal(
    recipe: FrugalRecipe,
    update: FrugalUpdate,
    vectors: FloatMatrix,
    weights: FloatVector,
    gram: RealMatrix,
    regulariser: float,
) -> str | None:
    """Why no client can have sent this message, in a sentence; `vectors` as published, `gram` is their Y'DY."""
    scores = vectors @ update.vector
    liked, unobserved = float(recipe.objective.liked), float(recipe.objective.unobserved)
    own = update.strengths + unobserved * scores
    if_liked = liked * (1 - scores) + unobserved * scores
    slack = SLACK * (1 + np.abs(scores))
    has = np.abs(own - if_liked) < np.abs(own)
    if not np.all(np.where(has, np.abs(own - if_liked), np.abs(own)) <= slack):
        return "The strengths of a message must be those of some history; these are of none."
    profile = np.flatnonzero(has).astype(np.int32)
    if not len(profile):
        if recipe.min_support > 1 and not update.vector.any() and not update.scale[0]:
            return None  # none of its items is supported
        return "A message must be that of a history; this one has no item."
    if float(update.scale[0]) > len(profile) ** -recipe.activity * (1 + SLACK):
        return f"A message of {len(profile)} items counts less; its scale is {float(update.scale[0]):g}."
    if _surely_solves(recipe, update.vector, vectors, weights, gram, regulariser, profile):
        return None
    solved = solve_user(recipe.objective, regulariser, vectors, weights, gram, profile)
    if np.linalg.norm(solved - update.vector) > SLACK * (1 + np.linalg.norm(solved)):
        return "The vector of a message must be the one that its history gives; this one is not."
    return None


def _surely_solves(
    recipe: FrugalRecipe,
    vector: FloatVector,
    vectors: FloatMatrix,
    weights: FloatVector,
    gram: RealMatrix,
    regulariser: float,
    profile: IntVector,
) -> bool:
    """Whether a vector is near the one that a history gives, as far as its residual shows without solving for that.

    No eigenvalue of the equations is below the regulariser, so the distance is at most |residual| / regulariser.
    """
    if regulariser <= 0:
        return False
    liked, unobserved = float(recipe.objective.liked), float(recipe.objective.unobserved)
    own, exact = vectors[profile].astype(np.float64), vector.astype(np.float64)
    pulls = weights[profile] * (liked - (liked - unobserved) * (own @ exact))
    residual = own.T @ pulls - unobserved * (gram @ exact) - regulariser * exact
    distance = float(np.linalg.norm(residual)) / regulariser
    return distance <= SLACK * (1 + float(np.linalg.norm(exact)) - distance)
