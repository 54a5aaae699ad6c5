"""Random draws: every random choice is a function of (seed, user, round, counter).

There is no stream of random numbers to keep in step. A draw is keyed by the federation's seed, the user (or the
server), a purpose, the round and a counter; the result is four 32-bit words. So a run is the same for any number of
threads, in any engine, in any order, and after a resume, and a browser makes the same choices as a simulation.

The generator is Threefry-4x32 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC
2011): additions, rotations and exclusive-ors of 32-bit words, which Python, Numba and JavaScript all have. The key is
(seed, user, purpose, 0), the counter (round, counter, 0, 0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numba.extending import overload

from federank._numerics.arrays import FloatMatrix, FloatVector
from federank._numerics.rows import inlined, outlined

# ruff: noqa: ARG001 (Numba prescribes the parameters)


SELECT = 1  # server: who takes part in a round
TRIPLE = 2  # client: one (positive, negative) pair and its coin
MASK = 3  # client: whether this item's row may be sent in this round
ONLINE = 4  # simulation: whether a client is online in this round
DROPOUT = 5  # simulation: whether a client drops out before its upload
USER_FACTORS = 6  # initial user vectors, drawn by the client
ITEM_FACTORS = 7  # initial item vectors, drawn by the server
ITEM_BIASES = 8
NEGATIVE = 9  # client: a negative, after two draws that hit its own items
IMPLICIT_FACTORS = 10  # initial second item vectors of SVD++, drawn by the server
VIRTUAL = 11  # client: which unrated items get a virtual rating
ORDER = 12  # centralised training: the order of users' ratings
STICKY = 13  # client: which of its items may ever be sent
DENIABLE = 14  # client: the lifetime decision about an item, liked or not
NOISE = 15  # client: noise on its update
GROUP = 16  # study: the group of policies that a user belongs to
COHORT = 17  # simulation: a client's cohort, for its lifetime
ROUNDING = 19  # client: whether a number of a message is rounded up
SUM_NOISE = 20  # one of two servers: noise on a sum

SERVER = 0xFFFFFFFF  # in place of the user, for draws of the server
HELPER = 0xFFFFFFFE  # in place of the user, for draws of the second server
WORDS = 2.0**32
_ONES = 0xFFFFFFFF


def words_wrap_around() -> np.errstate:
    """A context for interpreted draws, in which sums of 32-bit words wrap around without a warning."""
    return np.errstate(over="ignore")


def _word(number: Any) -> Any:
    """A number's lowest 32 bits.

    Interpreted, a word is a plain int, which Python adds several times faster than NumPy scalars, or an array of words;
    compiled, it is the processor's own.
    """
    return number & _ONES


def _rotated(word: Any, by: int) -> Any:
    return ((word << by) | (word >> (32 - by))) & _ONES


def _as_word(number: Any) -> Any:
    """A part of a draw's key as a word."""
    word = np.uint32(number)
    return int(word) if word.ndim == 0 else word


@overload(_word, jit_options={"forceinline": True}, strict=False)
@overload(_as_word, jit_options={"forceinline": True}, strict=False)
def _compiled_word(number: Any) -> Any:
    return lambda number: np.uint32(number)


@overload(_rotated, jit_options={"forceinline": True}, strict=False)
def _compiled_rotated(word: Any, by: Any) -> Any:
    return lambda word, by: np.uint32(np.uint32(word << np.uint32(by)) | (word >> np.uint32(32 - by)))


@inlined
def _mixed(a: Any, b: Any, c: Any, d: Any, first: int, second: int) -> Any:
    """One round: mix the words in two pairs, (a, b) and (c, d)."""
    a = _word(a + b)
    c = _word(c + d)
    return a, _word(_rotated(b, first) ^ a), c, _word(_rotated(d, second) ^ c)


@inlined
def _odd_four_rounds(a: Any, b: Any, c: Any, d: Any) -> Any:
    a, b, c, d = _mixed(a, b, c, d, 10, 26)
    a, d, c, b = _mixed(a, d, c, b, 11, 21)
    a, b, c, d = _mixed(a, b, c, d, 13, 27)
    a, d, c, b = _mixed(a, d, c, b, 23, 5)
    return a, b, c, d


@inlined
def _even_four_rounds(a: Any, b: Any, c: Any, d: Any) -> Any:
    a, b, c, d = _mixed(a, b, c, d, 6, 20)
    a, d, c, b = _mixed(a, d, c, b, 17, 11)
    a, b, c, d = _mixed(a, b, c, d, 25, 10)
    a, d, c, b = _mixed(a, d, c, b, 18, 20)
    return a, b, c, d


@inlined
def _keyed(a: Any, b: Any, c: Any, d: Any, k0: Any, k1: Any, k2: Any, k3: Any, turn: int) -> Any:
    """Add the key to the words, and the number of the turn to the last."""
    return _word(a + k0), _word(b + k1), _word(c + k2), _word(_word(d + k3) + _word(turn))


@inlined
def threefry(k0: Any, k1: Any, k2: Any, k3: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Any:
    """Threefry-4x32-20: four words from a key and a counter of four words each."""
    k4 = _word(_word(0x1BD11BDA) ^ k0 ^ k1 ^ k2 ^ k3)
    a, b, c, d = _keyed(c0, c1, c2, c3, k0, k1, k2, k3, 0)
    a, b, c, d = _odd_four_rounds(a, b, c, d)
    a, b, c, d = _keyed(a, b, c, d, k1, k2, k3, k4, 1)
    a, b, c, d = _even_four_rounds(a, b, c, d)
    a, b, c, d = _keyed(a, b, c, d, k2, k3, k4, k0, 2)
    a, b, c, d = _odd_four_rounds(a, b, c, d)
    a, b, c, d = _keyed(a, b, c, d, k3, k4, k0, k1, 3)
    a, b, c, d = _even_four_rounds(a, b, c, d)
    a, b, c, d = _keyed(a, b, c, d, k4, k0, k1, k2, 4)
    a, b, c, d = _odd_four_rounds(a, b, c, d)
    return _keyed(a, b, c, d, k0, k1, k2, k3, 5)


@inlined
def words(seed: Any, user: Any, purpose: int, round_number: Any, counter: Any) -> Any:
    """The four random words of one draw."""
    zero = _word(0)
    a, b, c, d = threefry(
        _as_word(seed), _as_word(user), _as_word(purpose), zero, _as_word(round_number), _as_word(counter), zero, zero
    )
    return np.uint32(a), np.uint32(b), np.uint32(c), np.uint32(d)


@outlined
def first_word(seed: Any, user: Any, purpose: int, round_number: Any, counter: Any) -> Any:
    """The first word of one draw, for branches that are taken rarely."""
    word, _, _, _ = words(seed, user, purpose, round_number, counter)
    return word


@inlined
def below(word: Any, count: Any) -> Any:
    """An integer from 0 to count - 1. No value is favoured by more than count / 2^32."""
    return np.int64((np.uint64(word) * np.uint64(count)) >> np.uint64(32))


@inlined
def happens(word: Any, probability: Any) -> Any:
    """Whether an event of this probability happens: never for 0, always for 1."""
    return np.float64(word) < probability * WORDS


@inlined
def absent_item(profile: Any, start: Any, size: Any, rank: Any) -> Any:
    """Item number `rank` (from 0) of those missing from an ascending profile."""
    # profile[k] - k items are missing below profile[k]: count the profile's items below the wanted one.
    low, high = np.int64(0), np.int64(size)
    while low < high:
        middle = (low + high) >> 1
        if profile[start + middle] - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low


# Initial values, drawn by (seed, user or item, column).


@inlined
def normal_pair(first: Any, second: Any) -> Any:
    """Two independent standard normal numbers from two random words."""
    # The half keeps the logarithm away from zero.
    radius = np.sqrt(-2.0 * np.log((np.float64(first) + 0.5) / WORDS))
    angle = 2.0 * np.pi * np.float64(second) / WORDS
    return radius * np.cos(angle), radius * np.sin(angle)


def normal_rows(
    rows: int, columns: int, *, seed: int, purpose: int, scale: float, width: int | None = None, first_row: int = 0
) -> FloatMatrix:
    """Normal numbers of mean 0 and deviation `scale`; rows are padded with zeros to `width`. Compiles nothing."""

    def normal(a: Any, b: Any, c: Any, d: Any) -> Any:
        return scale * np.column_stack((*normal_pair(a, b), *normal_pair(c, d)))

    return _rows_of(normal, rows, columns, seed, purpose, width, first_row)


def uniform_rows(
    rows: int, columns: int, *, seed: int, purpose: int, span: float, width: int | None = None, first_row: int = 0
) -> FloatMatrix:
    """Uniform numbers in a range of width `span` around zero, named and padded in the same way."""

    def uniform(*drawn: Any) -> Any:
        return span * (np.column_stack(drawn).astype(np.float64) / WORDS - 0.5)

    return _rows_of(uniform, rows, columns, seed, purpose, width, first_row)


def _rows_of(
    numbers: Callable[..., Any], rows: int, columns: int, seed: int, purpose: int, width: int | None, first_row: int
) -> FloatMatrix:
    """A table of what these make of each draw's four words; a draw is named by its row and column."""
    table = np.zeros((rows, width or columns), dtype=np.float32)
    names = np.arange(first_row, first_row + rows, dtype=np.uint32)
    for first in range(0, columns, 4):
        with words_wrap_around():
            drawn = words(seed, names, purpose, 0, first // 4)
        table[:, first : min(first + 4, columns)] = numbers(*drawn)[:, : columns - first]
    return table


def first_items(
    n_items: int,
    factors: int,
    *,
    seed: int,
    scale: float,
    biases: Literal["normal", "zero"],
    width: int | None = None,
) -> tuple[FloatMatrix, FloatVector]:
    """The initial item vectors and biases of a federation, simulated or real."""
    vectors = normal_rows(n_items, factors, seed=seed, purpose=ITEM_FACTORS, scale=scale, width=width)
    if biases == "zero":
        return vectors, np.zeros(n_items, dtype=np.float32)
    return vectors, normal_rows(n_items, 1, seed=seed, purpose=ITEM_BIASES, scale=scale)[:, 0].copy()
