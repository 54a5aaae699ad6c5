"""Kinds of upload: what a device's bytes mean, in one place.

The store and the rounds handle an upload as bytes of a kind; only here is it known what the bytes hold. A kind says how
an upload is judged when it arrives (`judge`), and what it adds to the sum when its round is folded (`summand`). Today
there is one kind:

    plain    one device's Update, readable by the server

A masked or secret-shared upload would be another entry of `KINDS`: its `judge` can check sizes only, and its summands
make sense only added up, which is all that the fold does with them. Neither the rounds nor the store would change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from federank.errors import BadMessage
from federank.protocol.messages import Update, decode_update, update_bytes, update_of_ours

HEADER_ROOM = 1024
"""Bytes that a safetensors header may take beyond what ours takes: other writers order and pad it differently."""


class Form(NamedTuple):
    """What an upload of this federation must look like."""

    factors: int
    n_items: int
    most_rows: int
    most_norm: float

    @property
    def most_bytes(self) -> int:
        """The longest upload that can be right."""
        return update_bytes(self.most_rows, self.factors) + HEADER_ROOM


class Kind(NamedTuple):
    """How uploads of one kind are judged and added up."""

    judge: Callable[[bytes, Form], int]
    """Raise `BadMessage` where an upload is out of bounds; else how many of its rows will be shortened."""
    summand: Callable[[bytes, Form], Update]
    """What an accepted upload adds to its round's sum."""


def _judge_plain(body: bytes, form: Form) -> int:
    update = decode_update(body, form.factors, form.n_items)
    if len(update.items) > form.most_rows:
        raise BadMessage(f"The Update has {len(update.items)} rows; the task allows {form.most_rows} at most.")
    if _is_short(update, form.most_norm):
        return 0
    return int(np.count_nonzero(_squared_norms(update) > np.float64(form.most_norm) ** 2))


def _sum_plain(body: bytes, form: Form) -> Update:
    return shortened(update_of_ours(body), form.most_norm)


def shortened(update: Update, most_norm: float) -> Update:
    """The same Update with every row (vector and bias together) at most this long."""
    if _is_short(update, most_norm):
        return update
    squared = _squared_norms(update)
    long = squared > np.float64(most_norm) ** 2
    if not long.any():
        return update
    factor = np.ones(len(update.items), dtype=np.float64)
    factor[long] = most_norm / np.sqrt(squared[long])
    scale = factor.astype(np.float32)
    return update._replace(vectors=update.vectors * scale[:, None], biases=update.biases * scale)


def _is_short(update: Update, most_norm: float) -> bool:
    """Whether no row can be too long, by the largest of all numbers: one look that settles nearly every Update."""
    if not len(update.items):
        return True
    largest = max(float(np.abs(update.vectors).max()), float(np.abs(update.biases).max()))
    return largest * math.sqrt(update.vectors.shape[1] + 1) < 0.999 * most_norm


def _squared_norms(update: Update) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # In double precision: the square of a large float32 would overflow.
    vectors, biases = update.vectors.astype(np.float64), update.biases.astype(np.float64)
    squares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.einsum("ij,ij->i", vectors, vectors) + biases * biases
    return squares


KINDS: dict[str, Kind] = {"plain": Kind(_judge_plain, _sum_plain)}
"""Every kind of upload that this server takes."""
