"""The best N of a row of scores, without what the person already has.

Ties are broken by the item's number, smaller first, so that a list never depends on how it was computed. A score
that is not a number is never recommended, nor is minus infinity.

One pass over a row. The best N so far stand in a heap with the worst of them on top, and that one is the bar that
the next item must clear. Few items do: so a row is read in strips, and a strip is looked into only if one of its
scores clears the bar; comparing a strip is a handful of vector instructions. Whether the person already has
an item is asked only of items that clear it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntMatrix, IntVector, RealMatrix
from federank._numerics.compiling import at_once, compiled
from federank._numerics.rows import holds

if TYPE_CHECKING:
    from federank.data.interactions import Profiles

_STRIP = 64


def top_n(scores: FloatMatrix, users: IntVector, seen: Profiles, n: int) -> tuple[IntMatrix, FloatMatrix]:
    """The n best items of each row, best first, and their scores; -1 and -inf where fewer are left.

    Row k of `scores` (users x items) belongs to `users[k]`, whose items in `seen` are left out.
    """
    items = np.full((len(users), n), -1, dtype=np.int32)
    best = np.full((len(users), n), -np.inf, dtype=scores.dtype)
    if n and scores.size:
        scores, users, starts, has = (_read_only(array) for array in (scores, users, seen.starts, seen.items))
        _fill(scores, users, starts, has, items, best)
    return items, best.astype(np.float32, copy=False)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same values in one block, not to be written to: one form, so that one compilation serves every caller."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled(allocates=False)
def _fill(scores: Any, users: Any, starts: Any, seen_items: Any, items: Any, best: Any) -> Any:
    """Fill a row of `items` and `best`, which say -1 and -inf so far, for each row of scores."""
    n_items = scores.shape[1]
    for row in range(len(users)):
        first, last = starts[users[row]], starts[users[row] + 1]
        values, heap_items, heap = scores[row], items[row], best[row]
        for strip in range(0, n_items, _STRIP):
            end = min(strip + _STRIP, n_items)
            clearing = 0
            for item in range(strip, end):
                clearing += values[item] > heap[0]
            if clearing == 0:
                continue
            for item in range(strip, end):
                # False for a score that is not a number; and as items come in ascending order, of two equal
                # scores the smaller item got here first and stays.
                if values[item] > heap[0] and not holds(seen_items, first, last - first, item):
                    put_on_top(heap, heap_items, len(heap), values[item], item)
        sort_best_first(heap, heap_items)


# A heap of rows or items with their scores, the worst on top: of equal scores the larger number.


@compiled(allocates=False)
def is_worse(score: Any, item: Any, other_score: Any, other_item: Any) -> Any:
    """Whether an item comes after another one in a list: a lower score, or a tie and a larger number."""
    return score < other_score or (score == other_score and item > other_item)


@compiled(allocates=False)
def put_on_top(heap: Any, heap_items: Any, size: Any, score: Any, item: Any) -> Any:
    """Put one item in the place of the top of a heap of `size`."""
    position = 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and is_worse(heap[child + 1], heap_items[child + 1], heap[child], heap_items[child]):
            child += 1
        if not is_worse(heap[child], heap_items[child], score, item):
            break
        heap[position], heap_items[position] = heap[child], heap_items[child]
        position = child
    heap[position], heap_items[position] = score, item


@compiled(allocates=False)
def sort_best_first(heap: Any, heap_items: Any) -> Any:
    """Turn a heap into a list: its top, the worst, goes to the end, again and again."""
    for last in range(len(heap) - 1, 0, -1):
        score, item = heap[last], heap_items[last]
        heap[last], heap_items[last] = heap[0], heap_items[0]
        put_on_top(heap, heap_items, last, score, item)


# Products of tall matrices, such as items x factors, on threads: rows in blocks of one size.


_BLOCK = 512


def tall_product(tall: NDArray[np.floating], small: RealMatrix, threads: int = 1) -> RealMatrix:
    """Tall x small, in double precision."""
    product = np.empty((len(tall), small.shape[1]))

    def work(worker: int) -> None:
        for rows in _blocks(len(tall), worker, threads):
            np.matmul(tall[rows].astype(np.float64, copy=False), small, out=product[rows])

    at_once(work, threads)
    return product


def weighted_gram(tall: RealMatrix, weights: FloatVector, threads: int = 1) -> RealMatrix:
    """Tall' diag(weights) tall: blocks side by side, added up in their order."""
    width = tall.shape[1]
    parts = np.zeros((-(-len(tall) // _BLOCK), width, width))

    def work(worker: int) -> None:
        for rows in _blocks(len(tall), worker, threads):
            parts[rows.start // _BLOCK] = (tall[rows] * weights[rows, None]).T @ tall[rows]

    at_once(work, threads)
    gram: RealMatrix = parts.sum(axis=0)
    return gram


def _blocks(rows: int, worker: int, threads: int) -> list[slice]:
    """The blocks of one worker."""
    return [slice(start, start + _BLOCK) for start in range(worker * _BLOCK, rows, threads * _BLOCK)]


def gram_matrix(vectors: FloatMatrix, weights: FloatVector, threads: int = 1) -> RealMatrix:
    """Y'DY, compiled, in double precision; each thread makes some of its rows, which changes no bit."""
    rows, columns = np.ascontiguousarray(vectors), vectors.shape[1]
    products = np.zeros((columns, columns))

    def work(worker: int) -> None:
        _gram_rows(rows, weights, worker * columns // threads, (worker + 1) * columns // threads, products)

    at_once(work, threads)
    return products


@compiled
def _gram_rows(vectors: FloatMatrix, weights: FloatVector, first: int, last: int, products: RealMatrix) -> None:
    """Rows `first` to just before `last` of Y'DY, into `products`, which are zeros."""
    # Not by the matrix product's library: its threads wait for busy cores, and their number may change the last bits.
    rows, columns = vectors.shape
    row = np.empty(columns)
    for number in range(rows):
        for column in range(columns):
            row[column] = vectors[number, column]
        for one in range(first, last):
            value = weights[number] * row[one]
            for other in range(columns):
                products[one, other] += value * row[other]
