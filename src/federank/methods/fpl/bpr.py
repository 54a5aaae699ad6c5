"""Pairwise learning to rank: the maths of BPR, FPL and FedeRank.

A user's score of an item is x_ui = b_i + p_u . q_i. For a pair (i, j), i liked by the user and j not, the step
raises x_ui - x_uj by gradient ascent on ln sigma(x_ui - x_uj) (Rendle et al., 2009). With g = 1 / (1 + e^x):

    user          g (q_i - q_j) - lambda_user p_u
    positive i    g p_u - lambda_positive q_i      and its bias  g
    negative j   -g p_u - lambda_negative q_j      and its bias -g

All use the values before the step; callers multiply by the learning rate. Biases are not regularized.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank._numerics.rows import dot, inlined

_LOG2_E = np.float32(np.log2(np.e))
_ONE = np.float32(1.0)
_FARTHEST = np.float32(80.0)  # e^80 is still a float32, and 1 / (1 + e^80) is effectively zero
_ROUND = np.float32(1.5 * 2**23)  # adding it to a small number leaves the nearest integer in the lowest bits

# 2^f on [-1/2, 1/2] as a polynomial of degree 6 (interpolated at Chebyshev points): within 1 unit in the last place.
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c)
    for c in np.polynomial.chebyshev.Chebyshev.interpolate(np.exp2, 6, domain=[-0.5, 0.5])
    .convert(kind=np.polynomial.Polynomial)
    .coef
)


@inlined
def slope(x: Any) -> Any:
    """1 / (1 + e^x) in float32, for any x: it saturates instead of overflowing."""
    # e^x = 2^y = 2^n 2^f, n an integer, |f| <= 1/2: n goes into the exponent's bits, f into the polynomial.
    y = min(max(x, -_FARTHEST), _FARTHEST) * _LOG2_E
    rounded = np.float32(y + _ROUND)
    f = y - (rounded - _ROUND)
    f2 = f * f
    # Estrin's scheme: a dependency chain half as long as Horner's.
    fraction = (_C0 + f * _C1) + f2 * ((_C2 + f * _C3) + f2 * ((_C4 + f * _C5) + f2 * _C6))
    power = np.int32((rounded.view(np.int32) << np.int32(23)) + np.int32(127 << 23)).view(np.float32)
    return _ONE / (_ONE + fraction * power)


@inlined
def pair_slope(p: Any, q_i: Any, q_j: Any, b_i: Any, b_j: Any) -> Any:
    """g of one pair: how wrong the user's ranking of i and j still is."""
    return slope(dot(p, q_i - q_j) + (b_i - b_j))


@inlined
def user_gradient(g: Any, p: Any, q_i: Any, q_j: Any, regulariser: Any) -> Any:
    """Gradient of the user's vector."""
    return g * (q_i - q_j) - regulariser * p


@inlined
def item_gradient(g: Any, p: Any, q: Any, regulariser: Any) -> Any:
    """Gradient of an item's vector: g for the positive of a pair, -g for the negative."""
    return g * p - regulariser * q
