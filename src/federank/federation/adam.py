"""Adam as a server step, for methods whose rounds end in a gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix


class Adam(NamedTuple):
    """Settings of Adam."""

    learning_rate: float
    beta1: float
    beta2: float


def adam_step(
    adam: Adam, values: FloatMatrix, gradient: FloatMatrix, mean: FloatMatrix, square: FloatMatrix, steps: int
) -> FloatMatrix:
    """The values after step number `steps` of Adam; `mean` and `square` are updated in place."""
    beta1, beta2 = np.float32(adam.beta1), np.float32(adam.beta2)
    mean *= beta1
    mean += gradient * (1 - beta1)
    square *= beta2
    square += gradient * gradient * (1 - beta2)
    size = adam.learning_rate * np.sqrt(1 - adam.beta2**steps) / (1 - adam.beta1**steps)
    moved: FloatMatrix = (values - size * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return moved
