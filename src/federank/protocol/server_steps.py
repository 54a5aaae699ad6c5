"""Adam at the server: a step that remembers past rounds, shared by every family whose rounds end in a gradient.

    m <- beta1 m + (1 - beta1) g        v <- beta2 v + (1 - beta2) g^2
    x <- x - rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + 1e-8)          (Kingma and Ba, 2015, section 2)

g is the gradient of a whole round, t the number of the step. m and v are all that the server remembers, and part of a
checkpoint. Each number moves by about the rate whatever the size of the sum, which suits few and large rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix


class Adam(NamedTuple):
    """How large steps are, and how long past rounds are remembered."""

    learning_rate: float
    beta1: float
    beta2: float


def adam_step(
    adam: Adam, values: FloatMatrix, gradient: FloatMatrix, mean: FloatMatrix, square: FloatMatrix, steps: int
) -> FloatMatrix:
    """The values after one step of Adam, the `steps`-th; `mean` and `square` are brought forward in place."""
    beta1, beta2 = np.float32(adam.beta1), np.float32(adam.beta2)
    mean *= beta1
    mean += gradient * (1 - beta1)
    square *= beta2
    square += gradient * gradient * (1 - beta2)
    size = adam.learning_rate * np.sqrt(1 - adam.beta2**steps) / (1 - adam.beta1**steps)
    moved: FloatMatrix = (values - size * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return moved
