"""The records of Frugal: what clients download and upload, what the server sums and keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.topn import gram_matrix
from federank.federation.method import Aggregate
from federank.federation.wire import Array, array, values, zeros
from federank.methods.frugal.item_weights import ItemWeights, no_weights

if TYPE_CHECKING:
    from federank.methods.frugal.private_messages import Directions


@dataclass(frozen=True, eq=False)
class FrugalModel:
    """What clients have: item vectors, how much each item counts (0: it is not supported), and lambda."""

    vectors: Array = array("items", "factors")
    weights: Array = array("items", minimum=0)
    regulariser: Array = array(1, dtype="f8", minimum=0)
    ridge_starts: Array = array("ends", dtype="i4", minimum=0)  # item-item weights (item_weights.py), where there are
    ridge_items: Array = array("pairs", dtype="i4", minimum=0)
    ridge_codes: Array = array("pairs", dtype="i1", minimum=-127)
    ridge_scales: Array = array("targets", minimum=0)

    @cached_property
    def item_weights(self) -> ItemWeights | None:
        """Item-item weights; None where there are none."""
        if self.ridge_starts is None or not len(self.ridge_starts):
            return None  # not there yet, or in no round of this federation
        parts = self.ridge_starts, self.ridge_items, self.ridge_codes, self.ridge_scales
        return ItemWeights(*parts).extended(len(self.weights))

    @cached_property
    def gram(self) -> RealMatrix:
        """Y'DY: once per version, for all clients."""
        return gram_matrix(self.vectors, self.weights)

    @cached_property
    def product(self) -> RealMatrix:
        """The same for a server, which compiles nothing."""
        gram: RealMatrix = self.vectors.T.astype(np.float64) @ (self.vectors * self.weights[:, None])
        return gram

    @cached_property
    def directions(self) -> Directions:
        """What clients of a private federation look for."""
        from federank.methods.frugal.private_messages import directions_of  # made from records

        return directions_of(self.vectors, self.weights)

    @cached_property
    def supported(self) -> FrugalModel:
        """The items that weigh something."""
        items = np.flatnonzero(self.weights)
        return FrugalModel(self.vectors[items], self.weights[items], self.regulariser)


def without_ridge(kind: type[Any], method: Any, **free: int) -> Any:
    """A record of zeros, without item-item weights."""
    return zeros(kind, method, ends=0, pairs=0, targets=0, **free)


RIDGE = "ridge_"
"""Begins the names of item-item weights among other arrays."""


def with_item_weights(record: Any, item_weights: ItemWeights | None) -> Any:
    """A model or state with these item-item weights, or with none."""
    near = no_weights(0) if item_weights is None else item_weights
    parts = values(near) if item_weights else {name: part[:0] for name, part in values(near).items()}
    return replace(record, **{RIDGE + name: part for name, part in parts.items()})


def placed(rows: NDArray[Any], items: IntVector, n_items: int) -> NDArray[Any]:
    """Rows of these items among those of the full catalogue, which are zeros."""
    table = np.zeros((n_items, *rows.shape[1:]), dtype=rows.dtype)
    table[items] = rows
    return table


@dataclass(frozen=True, eq=False)
class ServerState(FrugalModel):
    """The model, and what the next server step needs."""

    sketch: Array = array("items", "sketched", dtype="f8")  # spectral: what is known of all users' items
    curvature: Array = array("solved", "solved", dtype="f8")  # least squares: the mean of H
    mean: Array = array("items", "moments")  # Adam: moments of past gradients
    square: Array = array("items", "moments")
    counts: Array = array("items", dtype="f8")  # users of each item among those whose uploads are known
    received: Array = array(1, dtype="f8")  # how many uploads these are
    counted: Array = array("items", dtype="f8")  # users of each item by uploads of counts alone
    counters: Array = array(1, dtype="f8")  # how many of those there are
    folds: Array = array(1, dtype="i8")  # server steps so far
    began: Array = array(1, dtype="i8")  # server steps before this season
    before: Array = array(1, dtype="i8")  # users of the model that the federation began with
    capped: Array = array(1, dtype="i8")  # items that the last exposure cap has shortened
    asks: Array = array(1, dtype="i8")  # the stage of the next secure round
    seen: Array = array("items", "kept")  # item-item weights: A and the users of each item, of the newest rounds
    through: Array = array("items", "kept")  # B of these rounds


@dataclass(frozen=True, eq=False)
class PrivateState(FrugalModel):
    """The same under differential privacy (private_server.py). What has columns has none until there is something."""

    counts: Array = array("items", dtype="f8")  # popularity, of at most 1
    summed: Array = array("items", dtype="f8")  # popularity as all cohorts together have reported it
    earlier: Array = array("items", "earlier_columns", dtype="f8")  # what earlier cohorts' items have in common
    newest: Array = array("items", "newest_columns", dtype="f8")  # the same after the newest step
    joined: Array = array("items", "joined_columns", dtype="f8")  # this cohort's rounds, where they are read together
    received: Array = array(1, dtype="f8")
    counters: Array = array(1, dtype="f8")  # uploads of popularity
    folds: Array = array(1, dtype="i8")
    began: Array = array(1, dtype="i8")
    again: Array = array(1, dtype="i8")  # rounds of popularity with too few supported items
    capped: Array = array(1, dtype="i8")


@dataclass(eq=False, kw_only=True)
class FrugalSums(Aggregate):
    """Sums of updates: rows of the items that they cover, and the square of the vector."""

    residuals: Array = array("items", "columns", dtype="f8")
    squares: Array = array("columns", "columns", dtype="f8")
    counts: RealVector | None = None  # where the server reads uploads: users of each item, by uploads of counts
    counters: int = 0  # how many of those there are


class SummedMessages(NamedTuple):
    """All that the server takes from a round: the sums of `FrugalSums` for the items that uploads covered."""

    residuals: RealMatrix  # S for every item, and the column of the constant 1
    squares: RealMatrix  # H, with the row and column of the constant 1
    messages: int


@dataclass(eq=False, kw_only=True)
class ItemRows(Aggregate):
    """Sums of counts, or of private updates."""

    rows: Array = array("items", "directions", dtype="f8")


@dataclass(frozen=True, eq=False)
class FrugalUpdate:
    """An upload: two factors of a matrix, and the weight of the user."""

    strengths: Array = array("covered")  # one number per supported item; of counts: 1 or 0 for each of the catalogue
    vector: Array = array("own")  # the user's, solved from the shared profile; of counts: none
    scale: Array = array(1, minimum=0, maximum=1)  # the user's weight, less where the upload is clipped

    @classmethod
    def of(cls, strengths: FloatVector, vector: FloatVector, scale: float) -> FrugalUpdate:
        """The message with this scale."""
        return cls(strengths, vector, np.array([scale], dtype=np.float32))


@dataclass(frozen=True, eq=False)
class PrivateParts:
    """A private update: the matrix row x pointed."""

    row: Array = array("covered", dtype="f8")
    pointed: Array = array("directions", dtype="f8")
