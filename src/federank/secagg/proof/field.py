"""The field of p = 2^64 - 2^32 + 1 elements: arithmetic on arrays of 64-bit words, each below p.

2^64 = 2^32 - 1 and 2^96 = -1 in it, so a product of two words is reduced by three additions. p - 1 is a multiple of
2^32, so it has roots of unity of every order at which polynomials are evaluated here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank._numerics.compiling import compiled

Elements = NDArray[np.uint64]
"""Elements of the field, below p; as bytes they are little-endian."""

MODULUS = 2**64 - 2**32 + 1
_GENERATOR = 7
_P, _EPSILON = np.uint64(MODULUS), np.uint64(2**32 - 1)
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)


def root_of_unity(order: int) -> int:
    """An element whose powers are all roots of this order, which is a power of two."""
    root: int = pow(_GENERATOR, (MODULUS - 1) // order, MODULUS)
    return root


def element(number: int) -> Elements:
    """An integer of any sign as an array of one element."""
    return np.array([number % MODULUS], dtype=np.uint64)


@compiled(allocates=False)
def _add(one: np.uint64, other: np.uint64) -> np.uint64:
    total = one + other
    if total < one:  # 2^64 was lost
        return total + _EPSILON
    return total - _P if total >= _P else total


@compiled(allocates=False)
def _subtract(one: np.uint64, other: np.uint64) -> np.uint64:
    return one - other if one >= other else one - other - _EPSILON


@compiled(allocates=False)
def _multiply(one: np.uint64, other: np.uint64) -> np.uint64:
    a, b, c, d = one >> _HALF, one & _LOW, other >> _HALF, other & _LOW
    middle, other_middle, lowest = a * d, b * c, b * d
    carried = (lowest >> _HALF) + (middle & _LOW) + (other_middle & _LOW)
    low = (carried << _HALF) | (lowest & _LOW)
    high = a * c + (middle >> _HALF) + (other_middle >> _HALF) + (carried >> _HALF)
    # low + 2^64 (high & LOW) + 2^96 (high >> 32), with 2^96 = -1 and 2^64 = 2^32 - 1
    negative = high >> _HALF
    result = low - negative
    if low < negative:
        result -= _EPSILON
    more = (high & _LOW) * _EPSILON
    total = result + more
    if total < result:
        total += _EPSILON
    return total - _P if total >= _P else total


@compiled
def sums(one: Elements, other: Elements) -> Elements:
    """Element by element."""
    result = np.empty_like(one)
    for number in range(len(one)):
        result[number] = _add(one[number], other[number])
    return result


@compiled
def differences(one: Elements, other: Elements) -> Elements:
    """Element by element."""
    result = np.empty_like(one)
    for number in range(len(one)):
        result[number] = _subtract(one[number], other[number])
    return result


@compiled
def products(one: Elements, other: Elements) -> Elements:
    """Element by element."""
    result = np.empty_like(one)
    for number in range(len(one)):
        result[number] = _multiply(one[number], other[number])
    return result


@compiled
def combined(weights: Elements, rows: NDArray[np.uint64]) -> Elements:
    """The rows, each times its weight, added up."""
    result = np.zeros(rows.shape[1], dtype=np.uint64)
    for row in range(len(weights)):
        for column in range(rows.shape[1]):
            result[column] = _add(result[column], _multiply(weights[row], rows[row, column]))
    return result


@compiled
def ntt(rows: NDArray[np.uint64], root: np.uint64) -> NDArray[np.uint64]:
    """Each column, coefficients of a polynomial, as its values at the powers of a root of order len(rows)."""
    order, width = rows.shape
    result = np.empty_like(rows)
    for row in range(order):
        place, turned = row, 0
        span = order
        while span > 1:
            turned = 2 * turned + place % 2
            place //= 2
            span //= 2
        result[turned] = rows[row]
    span = 1
    while span < order:
        step, halvings = root, order // (2 * span)
        while halvings > 1:
            step = _multiply(step, step)
            halvings //= 2
        for begin in range(0, order, 2 * span):
            twiddle = _ONE
            for row in range(begin, begin + span):
                for column in range(width):
                    even, odd = result[row, column], _multiply(twiddle, result[row + span, column])
                    result[row, column] = _add(even, odd)
                    result[row + span, column] = _subtract(even, odd)
                twiddle = _multiply(twiddle, step)
        span *= 2
    return result


@compiled
def rows_of_products(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The inner product of the left and the right half of each row, one below the other."""
    order, width = rows.shape
    result = np.zeros((order, 1), dtype=np.uint64)
    half = width // 2
    for row in range(order):
        for column in range(half):
            result[row, 0] = _add(result[row, 0], _multiply(rows[row, column], rows[row, half + column]))
    return result


def interpolated(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The coefficients of the polynomials that have these values at the powers of the root of their order."""
    order = len(rows)
    backwards = ntt(rows, np.uint64(pow(root_of_unity(order), -1, MODULUS)))
    scale = np.full(backwards.size, pow(order, -1, MODULUS), dtype=np.uint64)
    return products(backwards.ravel(), scale).reshape(rows.shape)


def powers(base: int, count: int) -> Elements:
    """1, base, base^2, ..."""
    result, value = np.empty(count, dtype=np.uint64), 1
    for number in range(count):
        result[number], value = value, value * base % MODULUS
    return result


def weights_at(point: int, order: int) -> Elements:
    """What a polynomial's values at the roots of this order are weighted with to give its value at a point."""
    root, result = 1, np.empty(order, dtype=np.uint64)
    step, scale = root_of_unity(order), (pow(point, order, MODULUS) - 1) * pow(order, -1, MODULUS)
    for number in range(order):
        result[number] = root * scale * pow(point - root, -1, MODULUS) % MODULUS
        root = root * step % MODULUS
    return result


def total(elements: Elements) -> int:
    """All of them, added up."""
    numbers: list[int] = elements.tolist()
    return sum(numbers) % MODULUS


def inner(one: Elements, other: Elements) -> int:
    """The inner product of two arrays."""
    return total(products(one, other))
