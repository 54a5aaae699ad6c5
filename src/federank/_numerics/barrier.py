"""A barrier for compiled code: workers wait for each other between the parts of a round.

Each worker is an ordinary thread that runs one long kernel without the interpreter's lock. A round is short (tenths
of a millisecond), so a waiting worker looks at a shared counter again and again instead of going to sleep; should
the others take long, it offers its core to anyone who wants it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from federank._numerics.rows import inlined

_PATIENCE = 2_000
_offer_core = types.ExternalFunction("sched_yield", types.int32())


def new_barrier() -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many workers have arrived, and how often all of them have; apart in memory from everything else."""
    return np.zeros(16, dtype=np.int64)


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def _add_one(typing_context: Any, counters: Any, position: Any) -> Any:  # noqa: ARG001 (Numba prescribes it)
    """Add one to a counter that others count on too; what it was before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _address(context, builder, signature, args), one, ordering="seq_cst")

    return types.int64(counters, types.int64), codegen


@intrinsic
def _look(typing_context: Any, counters: Any, position: Any) -> Any:  # noqa: ARG001
    """The value of a counter now, anyone who has changed it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, args), ordering="seq_cst", align=8)

    return types.int64(counters, types.int64), codegen


@inlined
def wait_for_all(barrier: Any, workers: Any) -> None:
    """Go on once every worker has come here."""
    if workers == 1:
        return
    turn = _look(barrier, 8)
    if _add_one(barrier, 0) % workers == workers - 1:
        _add_one(barrier, 8)
        return
    looks = 0
    while _look(barrier, 8) == turn:
        looks += 1
        if looks > _PATIENCE:
            _offer_core()
