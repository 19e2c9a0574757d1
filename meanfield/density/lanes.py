"""`LANES` numbers side by side as one value of compiled code.

LLVM vectorises a loop over lanes only if it can prove that arrays do not overlap and that unrolling does not pay more,
and says nothing when it gives up. A value of type `Lanes` is a vector from the start and stays in registers: two of
AVX-512, four of AVX2. It knows + - * / with lanes and with numbers, and the functions below.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

LANES = 16
"""Enough to hide the latency of divisions, few enough to waste little on the last block of nodes."""

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
CONTRACT = ("contract",)
"""Products and sums may fuse."""


class LanesType(types.Type):  # type: ignore[misc]
    """Numba's name for the type of the values."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


Lanes = LanesType()


@register_model(LanesType)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, VECTOR)


def _spread(builder: Any, x: Any) -> Any:
    """The same number in all lanes; lanes as they are."""
    if x.type == VECTOR:
        return x
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _register_arithmetic(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Arithmetic(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, _: Any) -> Any:
            if Lanes in arguments and all(kind in (Lanes, types.float64) for kind in arguments):
                return signature(Lanes, *arguments)
            return None

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        x, y = (_spread(builder, argument) for argument in arguments)
        return getattr(builder, instruction)(x, y, flags=CONTRACT)

    for kinds in ((Lanes, Lanes), (Lanes, types.float64), (types.float64, Lanes)):
        lower_builtin(symbol, *kinds)(generate)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _register_arithmetic(_symbol, _instruction)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), VECTOR.as_pointer())


@intrinsic
def load(typing_context, array, index):  # type: ignore[no-untyped-def]
    """`LANES` consecutive numbers of a flat array."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_pointer(context, builder, signature.args[0], *arguments), align=8)

    return Lanes(array, types.uint64), generate


@intrinsic
def store(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Write lanes into a flat array."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, value = arguments
        builder.store(value, _pointer(context, builder, signature.args[0], array, index), align=8)
        return context.get_dummy_value()

    return types.none(array, types.uint64, Lanes), generate


@intrinsic
def spread(typing_context, x):  # type: ignore[no-untyped-def]
    """A number in all lanes."""
    return Lanes(types.float64), lambda context, builder, signature, arguments: _spread(builder, *arguments)


@intrinsic
def where_less(typing_context, x, limit, yes, no):  # type: ignore[no-untyped-def]
    """`yes` in the lanes where x < limit, a number, and `no` in the others."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        x, limit, yes, no = arguments
        return builder.select(builder.fcmp_ordered("<", x, _spread(builder, limit)), yes, no)

    return Lanes(Lanes, types.float64, Lanes, Lanes), generate
