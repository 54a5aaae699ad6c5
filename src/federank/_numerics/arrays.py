"""The array types that signatures speak of.

Short names for NumPy arrays, so that a signature says what kind of numbers go in and come out. They bind
nothing at run time.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntVector = NDArray[np.int32]
"""Indices of users or items."""

LongVector = NDArray[np.int64]
"""Row offsets, and times in seconds since 1970."""

FloatVector = NDArray[np.float32]
"""Ratings, biases, one user's factors."""

FloatMatrix = NDArray[np.float32]
"""Factors: one row per user or item."""

RealVector = NDArray[np.float64]
"""Shares, probabilities and metrics, where accuracy matters more than memory."""

RealMatrix = NDArray[np.float64]
"""Sums and products, where accuracy matters more than memory."""

Ids = NDArray[Any]
"""The ids that a data set came with: 64-bit integers, or text (NumPy's variable-width strings)."""

IntMatrix = NDArray[np.int32]
"""Indices of items, one row per user."""
