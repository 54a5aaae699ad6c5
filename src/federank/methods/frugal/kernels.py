"""The compiled loops of few messages: the reference engine's messages, summed without being made.

A message is w x' for all items and x x'. Its first part is -w0 (x . y) x' for an item that the user does not have,
so the sum of that over all clients is -w0 Y X'X: one small product instead of a row for every client and item.
What a loop over clients adds is only what their own items have more. A client costs a few rows per own item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import dot, inlined, load_row, store_row
from federank.methods.frugal.objective import Objective


class RoundContext(NamedTuple):
    """What every client of a round knows, and what follows from it for all of them alike."""

    objective: Objective
    vectors: FloatMatrix  # items x padded factors, as published
    weights: FloatVector  # d
    gram: RealMatrix  # Y'DY
    plain_gram: RealMatrix  # Y'Y
    regulariser: float
    inverse: RealMatrix  # (w0 Y'DY + lambda I)^-1: all that is needed where alpha + 1 = w0
    activity: float
    clip: float


class Sums(NamedTuple):
    """What a shard's messages add up to."""

    own: FloatMatrix  # items x padded factors: what own items have more than -w0 (x . y) x'
    squares: RealMatrix  # (factors + 1) x (factors + 1): sum of a [x, 1] [x, 1]'
    messages: LongVector  # one number: how many


class Workspace(NamedTuple):
    """Scratch for one worker."""

    row: FloatMatrix  # 1 x padded factors
    aim: RealVector
    solved: RealVector
    sides: RealMatrix


def new_workspace(factors: int, width: int) -> Workspace:
    """Scratch for one worker."""
    return Workspace(
        np.zeros((1, width), dtype=np.float32), np.empty(factors), np.empty(factors), np.empty((factors, factors))
    )


@inlined
def _solve(context: Any, items: Any, begin: Any, end: Any, workspace: Any, width: Any) -> None:
    """A user's vector into `workspace.row`, from the items of their profile."""
    factors = len(workspace.aim)
    total = load_row(context.vectors, items[begin], width) * context.weights[items[begin]]
    for k in range(begin + 1, end):
        total = total + load_row(context.vectors, items[k], width) * context.weights[items[k]]
    store_row(workspace.row, 0, total)
    more = np.float64(context.objective.liked) - np.float64(context.objective.unobserved)
    for f in range(factors):
        workspace.aim[f] = np.float64(context.objective.liked) * workspace.row[0, f]
        workspace.solved[f] = 0.0
    if more == 0.0:
        for f in range(factors):
            value = workspace.aim[f]
            for g in range(factors):
                workspace.solved[g] += value * context.inverse[f, g]
    else:
        _own_sides(context, items, begin, end, workspace, more)
        _solve_symmetric(workspace.sides, workspace.aim)
        for f in range(factors):
            workspace.solved[f] = workspace.aim[f]
    for f in range(factors):
        workspace.row[0, f] = np.float32(workspace.solved[f])
    workspace.row[0, factors] = np.float32(1)  # the constant; no item vector has anything there


@inlined
def _own_sides(context: Any, items: Any, begin: Any, end: Any, workspace: Any, more: Any) -> None:
    """The lower half of w0 Y'DY + (1 + alpha - w0) Y_u'DY_u + lambda I, for this client alone."""
    factors = len(workspace.aim)
    for f in range(factors):
        for g in range(f + 1):
            workspace.sides[f, g] = context.objective.unobserved * context.gram[f, g]
        workspace.sides[f, f] += context.regulariser
    for k in range(begin, end):
        item = items[k]
        for f in range(factors):
            weighted = more * context.weights[item] * context.vectors[item, f]
            for g in range(f + 1):
                workspace.sides[f, g] += weighted * context.vectors[item, g]


@inlined
def _solve_symmetric(sides: Any, aim: Any) -> None:
    """Solve in place by Cholesky's decomposition L L' of the lower triangle of `sides`; `aim` becomes the answer."""
    size = len(aim)
    for row in range(size):
        for column in range(row + 1):
            rest = sides[row, column]
            for k in range(column):
                rest -= sides[row, k] * sides[column, k]
            sides[row, column] = np.sqrt(rest) if row == column else rest / sides[column, column]
    for row in range(size):  # L z = aim
        for k in range(row):
            aim[row] -= sides[row, k] * aim[k]
        aim[row] /= sides[row, row]
    for row in range(size - 1, -1, -1):  # L' x = z
        for k in range(row + 1, size):
            aim[row] -= sides[k, row] * aim[k]
        aim[row] /= sides[row, row]


@inlined
def _scale(context: Any, items: Any, begin: Any, end: Any, workspace: Any, width: Any) -> Any:
    """The most that a message may be multiplied by to keep to its largest norm."""
    factors = len(workspace.aim)
    length, residuals = 1.0, 0.0
    for f in range(factors):
        x = np.float64(workspace.row[0, f])
        length += x * x
        for g in range(factors):
            residuals += x * context.plain_gram[f, g] * workspace.row[0, g]
    residuals *= np.float64(context.objective.unobserved) ** 2
    x = load_row(workspace.row, 0, width)
    for k in range(begin, end):
        score = np.float64(dot(x, load_row(context.vectors, items[k], width)))
        residuals += (context.objective.liked * (1.0 - score)) ** 2 - (context.objective.unobserved * score) ** 2
    norm = np.sqrt(length * (max(residuals, 0.0) + length))
    return context.clip / norm


@compiled(allocates=False)
def sum_messages(
    context: RoundContext,
    starts: LongVector,
    items: IntVector,
    clients: IntVector,
    total: Sums,
    workspace: Workspace,
    width: Any,
) -> None:
    """Add these clients' messages to a shard's sums."""
    factors = len(workspace.aim)
    liked, unobserved = context.objective.liked, context.objective.unobserved
    for place in range(len(clients)):
        begin, end = starts[clients[place]], starts[clients[place] + 1]
        total.messages[0] += 1
        if begin == end:  # no item of theirs is supported: a message of zeros
            continue
        _solve(context, items, begin, end, workspace, width)
        weight = np.float64(end - begin) ** -context.activity
        if context.clip > 0:
            weight = min(weight, _scale(context, items, begin, end, workspace, width))
        scale = np.float32(weight)
        x = load_row(workspace.row, 0, width)
        for k in range(begin, end):
            item = items[k]
            score = dot(x, load_row(context.vectors, item, width))
            more = scale * (liked * (np.float32(1) - score) + unobserved * score)
            store_row(total.own, item, load_row(total.own, item, width) + x * more)
        for f in range(factors + 1):
            value = np.float64(scale) * np.float64(workspace.row[0, f])
            for g in range(factors + 1):
                total.squares[f, g] += value * workspace.row[0, g]


@compiled(allocates=False)
def solve_users(
    context: RoundContext,
    starts: LongVector,
    items: IntVector,
    first: int,
    last: int,
    vectors: FloatMatrix,
    workspace: Workspace,
    width: Any,
) -> None:
    """The vectors of the users from `first` to just before `last`; of those without a profile, zeros."""
    factors = len(workspace.aim)
    for user in range(first, last):
        if starts[user] < starts[user + 1]:
            _solve(context, items, starts[user], starts[user + 1], workspace, width)
            for f in range(factors):
                vectors[user, f] = workspace.row[0, f]
        else:
            for f in range(factors):
                vectors[user, f] = np.float32(0)


@compiled(allocates=False)
def add_up(
    partitions: FloatMatrix,
    vectors: FloatMatrix,
    squares: RealMatrix,
    unobserved: float,
    first: int,
    last: int,
    summed: Any,
) -> None:
    """The sum of all messages for the items from `first` to just before `last`: partitions in order, less w0 Y X'X."""
    columns = squares.shape[0]
    for item in range(first, last):
        for f in range(columns):
            summed[item, f] = 0.0
        for f in range(columns - 1):
            value = unobserved * np.float64(vectors[item, f])
            for g in range(columns):
                summed[item, g] -= value * squares[f, g]
        for partition in range(partitions.shape[0]):
            for f in range(columns):
                summed[item, f] += partitions[partition, item, f]
