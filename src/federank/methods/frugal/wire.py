"""The messages of Frugal as bytes: rows of the model, sizes, and what no client can have sent.

Rows are sent as `codes` and `scales` (bytes with a scale per row), or as `vectors`. `items` are left out where all rows
are sent, and `weights` where every item weighs 1. With `complete` the rows of all items are meant, and those that are
not named are zeros: of items without support. An Update is a declared record (records.py).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.errors import BadMessage
from federank.federation.wire import (
    Array,
    RowsMessage,
    check_items,
    check_values,
    decode_parts,
    encode_parts,
    size,
    values,
)
from federank.federation.wire import arrays as record_arrays
from federank.methods.frugal.item_weights import ItemWeights
from federank.methods.frugal.objective import solve_user
from federank.methods.frugal.protocol import LEVELS, FrugalUpdate, restored, rounded
from federank.methods.frugal.records import RIDGE, FrugalModel, placed, with_item_weights
from federank.methods.frugal.settings import FrugalRules

_BROADCAST = "a Broadcast"
_PARTS = ("items", "weights", "codes", "scales", "vectors", "complete")
RIDGE_PARTS = tuple(RIDGE + part.name for part in record_arrays(ItemWeights))
"""Item-item weights in a broadcast."""


def encode_model(model: FrugalModel, items: IntVector, *, as_codes: bool, round_number: int, version: int) -> bytes:
    """The bytes of these rows of a model; item-item weights are sent complete, as they change with the rows."""
    rows, n_items = model.vectors[items], len(model.weights)
    codes, scales = rounded(rows)
    parts: dict[str, Array] = {"codes": codes, "scales": scales} if as_codes else {"vectors": rows}
    parts["weights"] = model.weights[items]
    sent: dict[str, Array] = {"regulariser": model.regulariser}
    named = (parts["weights"] != 0) | (scales != 0 if as_codes else rows.any(axis=1))
    if len(items) == n_items and not named.all():
        parts, items = {name: part[named] for name, part in parts.items()}, items[named]
        sent["complete"] = np.ones(1, dtype=np.int8)
    if len(items) < n_items:
        sent["items"] = items
    if np.all(parts["weights"] == 1):
        del parts["weights"]
    if model.item_weights is not None and len(items):
        sent |= {RIDGE + name: part for name, part in values(model.item_weights).items()}
    return encode_parts(sent | parts, {"round": round_number, "version": version})


def decode_model(content: bytes, factors: int, n_items: int) -> RowsMessage:
    """Rows of a model from the wire, checked."""
    arrays, numbers = decode_parts(content, _BROADCAST, ("regulariser",), ("round", "version"), (*_PARTS, *RIDGE_PARTS))
    items = arrays.get("items", np.arange(n_items, dtype=np.int32))
    check_items(_BROADCAST, items, n_items)
    weights = arrays.get("weights", np.ones(len(items), dtype=np.float32))
    check_values(_BROADCAST, "weights", weights, (len(items),))
    if np.any(weights < 0):
        raise BadMessage("The weights of a Broadcast must not be negative.")
    as_codes = {"codes", "scales"} <= set(arrays)
    if as_codes == ("vectors" in arrays) or ("codes" in arrays) != ("scales" in arrays):
        raise BadMessage("A Broadcast has its rows either as codes and scales or as vectors, and as one of the two.")
    if as_codes:
        vectors = _restored(arrays["codes"], arrays["scales"], (len(items), factors))
    else:
        vectors = arrays["vectors"]
        check_values(_BROADCAST, "vectors", vectors, (len(items), factors))
    regulariser = arrays["regulariser"]
    if regulariser.dtype != np.float64 or regulariser.shape != (1,) or not 0 <= regulariser[0] < np.inf:
        raise BadMessage("The regulariser of a Broadcast must be one 64-bit float, finite and not negative.")
    if "complete" in arrays:
        vectors, weights = (placed(part, items, n_items) for part in (vectors, weights))
        items = np.arange(n_items, dtype=np.int32)
    model = with_item_weights(FrugalModel(vectors, weights, regulariser), _item_weights(arrays, n_items))
    return RowsMessage(numbers["round"], numbers["version"], items, model)


def _restored(codes: Array, scales: Array, shape: tuple[int, ...]) -> FloatMatrix:
    """The rows that codes stand for, checked."""
    if codes.dtype != np.int8 or codes.shape != shape:
        raise BadMessage(
            f"The codes of a Broadcast must be 8-bit integers of shape {shape}; found {codes.dtype} of {codes.shape}."
        )
    if np.any(codes < -LEVELS):
        raise BadMessage(f"The codes of a Broadcast go from -{LEVELS} to {LEVELS}; found {int(codes.min())}.")
    check_values(_BROADCAST, "scales", scales, shape[:1])
    if np.any(scales < 0):
        raise BadMessage("The scales of a Broadcast must not be negative.")
    with np.errstate(over="ignore"):
        rows = restored(codes, scales)
    if not np.isfinite(rows).all():
        raise BadMessage("A Broadcast's codes and scales make values that are not finite numbers.")
    return rows


def _item_weights(arrays: dict[str, Array], n_items: int) -> ItemWeights | None:
    """The item-item weights of a broadcast, checked; None where it has none. They may be of fewer items."""
    parts = {name.removeprefix(RIDGE): part for name, part in arrays.items() if name.startswith(RIDGE)}
    if not parts:
        return None
    known = len(parts["scales"]) if "scales" in parts else n_items
    return ItemWeights.read(parts, min(known, n_items)).extended(n_items)


@cache
def update_bytes(n_items: int, factors: int) -> int:
    """How many bytes an Update of this many items takes on the wire."""
    return size(FrugalUpdate.of(np.zeros(n_items, dtype=np.float32), np.zeros(factors, dtype=np.float32), 1.0))


@cache
def model_bytes(rows: int, factors: int, *, all_rows: bool, as_codes: bool, weighted: bool) -> int:
    """How many bytes this many rows of a model take on the wire; `all_rows`: they are all there are."""
    n_items = rows if all_rows else rows + 1
    weights = np.full(n_items, 0.5 if weighted else 1.0, dtype=np.float32)
    blank = FrugalModel(np.zeros((n_items, factors), dtype=np.float32), weights, np.zeros(1))
    items = np.arange(rows, dtype=np.int32)
    return len(encode_model(blank, items, as_codes=as_codes, round_number=0, version=0))


@cache
def dense_bytes(n_items: int, factors: int) -> int:
    """How many bytes an Update takes that is written out, as it must be where only sums are read."""
    columns = factors + 1
    residuals, squares = np.zeros((n_items, columns), dtype=np.float32), np.zeros((columns, columns), dtype=np.float32)
    return len(encode_parts({"pulls": residuals, "squares": squares}))


# What the equations of few messages can give: a message that they cannot is false, and is refused where it is readable.


SLACK = 0.01
"""Strengths of 32-bit floats, and a vector that a browser has solved for in its own order."""


def why_implausible_frugal(
    rules: FrugalRules,
    update: FrugalUpdate,
    vectors: FloatMatrix,
    weights: FloatVector,
    gram: RealMatrix,
    regulariser: float,
) -> str | None:
    """Why no client can have sent this message, in a sentence; `vectors` as published, `gram` is their Y'DY."""
    scores = vectors @ update.vector
    liked, unobserved = float(rules.objective.liked), float(rules.objective.unobserved)
    own = update.strengths + unobserved * scores
    if_liked = liked * (1 - scores) + unobserved * scores
    slack = SLACK * (1 + np.abs(scores))
    has = np.abs(own - if_liked) < np.abs(own)
    if not np.all(np.where(has, np.abs(own - if_liked), np.abs(own)) <= slack):
        return "The strengths of a message must be those of some history; these are of none."
    profile = np.flatnonzero(has).astype(np.int32)
    if not len(profile):
        if rules.min_support > 1 and not update.vector.any() and not update.scale[0]:
            return None  # none of its items is supported
        return "A message must be that of a history; this one has no item."
    if float(update.scale[0]) > len(profile) ** -rules.user_weight_exponent * (1 + SLACK):
        return f"A message of {len(profile)} items counts less; its scale is {float(update.scale[0]):g}."
    if _surely_solves(rules, update.vector, vectors, weights, gram, regulariser, profile):
        return None
    solved = solve_user(rules.objective, regulariser, vectors, weights, gram, profile)
    if np.linalg.norm(solved - update.vector) > SLACK * (1 + np.linalg.norm(solved)):
        return "The vector of a message must be the one that its history gives; this one is not."
    return None


def _surely_solves(
    rules: FrugalRules,
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
    liked, unobserved = float(rules.objective.liked), float(rules.objective.unobserved)
    own, exact = vectors[profile].astype(np.float64), vector.astype(np.float64)
    pulls = weights[profile] * (liked - (liked - unobserved) * (own @ exact))
    residual = own.T @ pulls - unobserved * (gram @ exact) - regulariser * exact
    distance = float(np.linalg.norm(residual)) / regulariser
    return distance <= SLACK * (1 + float(np.linalg.norm(exact)) - distance)
