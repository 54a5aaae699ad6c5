"""Rows of factors as values: the one thing that lets a formula be written once and still run at full speed.

Interpreted, a row is a NumPy vector. Compiled, it is one wide register value of the processor's vector unit, so
that `g * (q_i - q_j) - rate * p` becomes a handful of instructions with no loop and no temporary array. The
formulas in this package (see `methods/fpl/method.py`) are written with `+`, `-`, `*` and `dot` on rows and do not know
which of the two they are.

Tables of factors keep their rows padded with zeros to a multiple of eight, the width of common vector units; a
zero column stays zero under every step, so padding changes no result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, overload, register_jitable, register_model, type_callable

from federank._numerics.arrays import FloatMatrix

# ruff: noqa: ARG001 (Numba prescribes the parameters)


LANES = 8

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Mark a function as readable Python that compiled code may call, always inlined there."""
    return cast(Function, register_jitable(forceinline=True)(function))


def outlined(function: Function) -> Function:
    """The same for a rare branch: kept as a function of its own, so that it does not swell the loop around it.

    Its arguments should be numbers: handing arrays to a function that is not inlined costs a count of references.
    """
    return cast(Function, register_jitable(function))


@inlined
def holds(profile: Any, start: Any, size: Any, item: Any) -> Any:
    """Whether an ascending profile contains this item."""
    low, span = np.int64(start), np.int64(size)
    while span > 1:
        half = span >> 1
        low += half if profile[low + half] <= item else 0
        span -= half
    return size > 0 and profile[low] == item


def padded_width(factors: int) -> int:
    """How wide a table's rows are for this many factors."""
    return -(-factors // LANES) * LANES


def load_row(table: FloatMatrix, row: int, width: Any) -> Any:
    """The row of a table as a value. `width` is a tuple as long as the rows are wide: a constant to the compiler."""
    return table[row].copy()


def store_row(table: FloatMatrix, row: int, value: Any) -> None:
    """Write a value back into its table."""
    table[row] = value


def fetch_row(table: FloatMatrix, row: int, width: Any) -> None:
    """Say that a row will be needed soon, so that memory can bring it near; changes nothing."""


def fetch_place(values: Any, position: int) -> None:
    """The same for one value of a vector, and so for its neighbours in memory."""


def dot(one: Any, other: Any) -> Any:
    """The inner product of two rows."""
    return np.float32((one * other).sum())


class Row(types.Type):  # type: ignore[misc]
    """Numba's type of a row: `width` 32-bit floats in vector registers."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Row({width})")


@register_model(Row)
class _RowModel(models.PrimitiveModel):  # type: ignore[misc]
    """A row in machine terms: as many eight-lane vectors as it takes."""

    def __init__(self, dmm: Any, fe_type: Row) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(_VECTOR, fe_type.width // LANES))


_VECTOR = ir.VectorType(ir.FloatType(), LANES)


def _addresses(context: Any, builder: Any, table_type: Any, table: Any, row: Any, width: int) -> list[Any]:
    """Addresses of the vectors in a row of a C-contiguous float32 table."""
    array = context.make_array(table_type)(context, builder, table)
    first = builder.mul(row, ir.Constant(ir.IntType(64), width))
    return [
        builder.bitcast(
            builder.gep(array.data, [builder.add(first, ir.Constant(ir.IntType(64), offset))]), _VECTOR.as_pointer()
        )
        for offset in range(0, width, LANES)
    ]


def _packed(builder: Any, vectors: list[Any]) -> Any:
    row = ir.Constant(ir.ArrayType(_VECTOR, len(vectors)), ir.Undefined)
    for position, vector in enumerate(vectors):
        row = builder.insert_value(row, vector, position)
    return row


def _vectors(builder: Any, kind: Any, value: Any, width: int) -> list[Any]:
    """The vectors of a row; of a scalar, the same vector with the scalar in every lane."""
    if isinstance(kind, Row):
        return [builder.extract_value(value, position) for position in range(width // LANES)]
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return [builder.shuffle_vector(first, undefined, everywhere)] * (width // LANES)


@intrinsic
def _load(typing_context: Any, table: Any, row: Any, width: Any) -> Any:
    n = len(width)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        positions = _addresses(context, builder, signature.args[0], args[0], args[1], n)
        return _packed(builder, [builder.load(position, align=4) for position in positions])

    return Row(n)(table, types.int64, width), codegen


def _ask_for(builder: Any, address: Any) -> None:
    """Ask memory for the 64 bytes around an address."""
    number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(prefetch, [builder.bitcast(address, pointer), number(0), number(3), number(1)])


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any, width: Any) -> Any:
    n = len(width)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        positions = _addresses(context, builder, signature.args[0], args[0], args[1], n)
        # One request per 64-byte line; a row that does not start on a line ends in one more.
        for position in (*positions[:: 64 // (4 * LANES)], positions[-1]):
            _ask_for(builder, position)
        return context.get_dummy_value()

    return types.void(table, types.int64, width), codegen


@intrinsic
def _fetch_value(typing_context: Any, values: Any, position: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        _ask_for(builder, builder.gep(array.data, [args[1]]))
        return context.get_dummy_value()

    return types.void(values, types.int64), codegen


@intrinsic
def _store(typing_context: Any, table: Any, row: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        width = signature.args[2].width
        positions = _addresses(context, builder, signature.args[0], args[0], args[1], width)
        for position, vector in zip(positions, _vectors(builder, signature.args[2], args[2], width), strict=True):
            builder.store(vector, position, align=4)
        return context.get_dummy_value()

    return types.void(table, types.int64, value), codegen


@intrinsic
def _total(typing_context: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _vectors(builder, signature.args[0], args[0], signature.args[0].width)
        together = vectors[0]
        for vector in vectors[1:]:
            together = builder.fadd(together, vector, flags=("contract", "nsz"))
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), _VECTOR])
        add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        # `reassoc` allows the lanes to be added in halves, quarters, ...: a tree instead of a chain.
        return builder.call(add_up, [ir.Constant(ir.FloatType(), 0.0), together], fastmath=("reassoc", "nsz"))

    return types.float32(value), codegen


@overload(load_row, jit_options={"forceinline": True}, strict=False)
def _load_row(table: Any, row: Any, width: Any) -> Any:
    return lambda table, row, width: _load(table, row, width)


@overload(store_row, jit_options={"forceinline": True}, strict=False)
def _store_row(table: Any, row: Any, value: Any) -> Any:
    return lambda table, row, value: _store(table, row, value)


@overload(fetch_row, jit_options={"forceinline": True}, strict=False)
def _fetch_row(table: Any, row: Any, width: Any) -> Any:
    return lambda table, row, width: _fetch(table, row, width)


@overload(fetch_place, jit_options={"forceinline": True}, strict=False)
def _fetch_place(values: Any, position: Any) -> Any:
    return lambda values, position: _fetch_value(values, position)


@overload(dot, jit_options={"forceinline": True}, strict=False)
def _dot(one: Any, other: Any) -> Any:
    return lambda one, other: _total(one * other)


def _row_of(context: Any) -> Any:
    """Row with row, or row with a float32 on either side, gives a row."""

    def typer(one: Any, other: Any) -> Any:
        if isinstance(one, Row) and other in (one, types.float32):
            return one
        if isinstance(other, Row) and one == types.float32:
            return other
        return None

    return typer


def _lane_by_lane(instruction: str) -> Any:
    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        width = signature.return_type.width
        one, other = (_vectors(builder, kind, value, width) for kind, value in zip(signature.args, args, strict=True))
        operate = getattr(builder, instruction)
        # `contract` allows a product and a sum to become one fused instruction.
        return _packed(builder, [operate(a, b, flags=("contract", "nsz")) for a, b in zip(one, other, strict=True)])

    return lower


for _operator, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    type_callable(_operator)(_row_of)
    for _kinds in ((Row, Row), (Row, types.Float), (types.Float, Row)):
        lower_builtin(_operator, *_kinds)(_lane_by_lane(_instruction))
