"""A model with which a device's numbers run out of range is refused, in a sentence, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from federank.arrays import FloatVector
from federank.errors import BadAnswer, BadMessage, Diverged


@contextmanager
def numbers_in_range() -> Iterator[None]:
    """Refuse the model and recipe of a round from which no message can be made."""
    try:
        yield
    except (BadMessage, Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model and recipe the device's numbers run out of range ({reason}); nothing was sent."
        ) from reason


def check_moved(vector: FloatVector) -> None:
    """Refuse the model and recipe of a round that moves the own vector out of range."""
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model and recipe the device's vector runs out of range; nothing was sent.")


def solved(solve: Callable[[], FloatVector]) -> FloatVector:
    """The own vector in closed form; the model is refused where there is none."""
    try:
        vector = solve()
    except (Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model the device's own vector cannot be solved for ({reason}); a newer model is needed."
        ) from reason
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model the device's own vector runs out of range; a newer model is needed.")
    return vector
