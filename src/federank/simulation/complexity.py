"""The cost of a round for a client and the server: bytes and multiplications.

A `Cost` is of a round in which every client takes part once. Client figures are means over all clients; server figures
are for all of them together. FedRec and FCF count theirs, and compare them with the papers' formulas.

Multiplications are counted by running the reference steps on counting arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Cost(NamedTuple):
    """The cost of a round, counted or by a formula."""

    vectors_up: float
    vectors_down: float
    bytes_up: float
    """Of the message as sent."""
    bytes_up_written_out: float
    """Of the message with a row for every item; the same if rows are sent anyway."""
    bytes_down: float
    device_operations: float | None
    """None if not counted."""
    server_operations: float


def cost_figures(counted: Cost, formula: Cost | None) -> dict[str, float]:
    """Both costs by their names in studies; the formula's names start with `formula:`."""
    sides = {"": counted} | ({} if formula is None else {"formula:": formula})
    return {f"{side}{name}": value for side, cost in sides.items() for name, value in _named(cost).items()}


def _named(cost: Cost) -> dict[str, float]:
    both_ways = {
        "device_bytes": cost.bytes_up + cost.bytes_down,
        "device_bytes_written_out": cost.bytes_up_written_out + cost.bytes_down,
    }
    return {name: value for name, value in (cost._asdict() | both_ways).items() if value is not None}


class Counted(np.ndarray[Any, Any]):
    """An array that counts the multiplications it takes part in; results count too."""

    made = 0
    """Multiplications since `multiplications` was called."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Any:
        plain = [part.view(np.ndarray) if isinstance(part, Counted) else part for part in inputs]
        if how.get("out"):
            how["out"] = tuple(part.view(np.ndarray) if isinstance(part, Counted) else part for part in how["out"])
        answer = getattr(ufunc, method)(*plain, **how)
        if ufunc is np.multiply and method == "__call__":
            Counted.made += int(np.size(answer))
        elif ufunc is np.matmul:
            Counted.made += int(np.size(answer)) * int(np.shape(plain[0])[-1])
        return answer.view(Counted) if isinstance(answer, np.ndarray) else answer


def multiplications(steps: Callable[[], object]) -> int:
    """Number of multiplications of these steps on the counting arrays they were given."""
    Counted.made = 0
    steps()
    return Counted.made
