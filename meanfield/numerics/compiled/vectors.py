"""SIMD vectors as values of compiled code: several numbers side by side, in lanes.

LLVM vectorises a loop over lanes only if it can prove that arrays do not overlap and that unrolling does not pay more,
and says nothing when it gives up. A value of type `LanesType` is a vector from the start and stays in registers: 16
lanes in two of AVX-512, or four of AVX2. It knows + - * / with lanes and with numbers, and the functions below. How
many lanes there are, of float64 or float32, belongs to its type; where no argument tells how many, a constant does.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

WIDE_LANES = 16
"""Number of lanes for many nodes: enough to hide the latency of divisions, few enough to waste little on the last
block."""

NARROW_LANES = 4
"""Number of lanes for few nodes, which waste less; divisions then wait for each other."""

CONTRACT = ("contract",)
"""Flags of the arithmetic: products and sums may be fused."""


def lanes_for(nodes: int) -> int:
    """Number of lanes with which that many nodes are solved fastest."""
    return NARROW_LANES if nodes <= NARROW_LANES else WIDE_LANES


class LanesType(types.Type):  # type: ignore[misc]
    """Type of vectors of float64 or float32 in numba."""

    def __init__(self, count: int, element: types.Float = types.float64) -> None:
        self.count, self.element = count, element
        super().__init__(name=f"Lanes({count}, {element})")


@register_model(LanesType)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, _vector(lanes))


def _vector(lanes: LanesType) -> ir.VectorType:
    return ir.VectorType(ir.DoubleType() if lanes.element == types.float64 else ir.FloatType(), lanes.count)


def _spread(builder: Any, x: Any, lanes: LanesType) -> Any:
    """Vector with the same number in all lanes; a vector as it is."""
    if x.type == _vector(lanes):
        return x
    nothing = ir.Constant(_vector(lanes), ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(first, nothing, places)


def _register_arithmetic(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Arithmetic(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, _: Any) -> Any:
            lanes = next((kind for kind in arguments if isinstance(kind, LanesType)), None)
            if lanes is not None and all(kind in (lanes, lanes.element) for kind in arguments):
                return signature(lanes, *arguments)
            return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y = (_spread(builder, argument, signature.return_type) for argument in arguments)
        return getattr(builder, instruction)(x, y, flags=CONTRACT)

    for number in (types.float64, types.float32):
        for kinds in ((LanesType, LanesType), (LanesType, number), (number, LanesType)):
            lower_builtin(symbol, *kinds)(generate)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _register_arithmetic(_symbol, _instruction)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: LanesType) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _vector(lanes).as_pointer())


@intrinsic
def load(typing_context, array, index, lanes):  # type: ignore[no-untyped-def]
    """Vector of consecutive numbers of a flat array, as many as the constant `lanes` says."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, _ = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index, signature.return_type)
        return builder.load(pointer, align=signature.return_type.element.bitwidth // 8)

    if not isinstance(lanes, types.IntegerLiteral):
        return None
    return LanesType(lanes.literal_value, array.dtype)(array, types.uint64, lanes), generate


@intrinsic
def store(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Write a vector into a flat array."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, value = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index, signature.args[2])
        builder.store(value, pointer, align=signature.args[2].element.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.uint64, value), generate


@intrinsic
def spread(typing_context, x, lanes):  # type: ignore[no-untyped-def]
    """Vector with a number in all of its lanes, as many as the constant `lanes` says."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _spread(builder, arguments[0], signature.return_type)

    if not isinstance(lanes, types.IntegerLiteral):
        return None
    element = x if x == types.float32 else types.float64
    return LanesType(lanes.literal_value, element)(element, lanes), generate


@intrinsic
def where_less(typing_context, x, limit, yes, no):  # type: ignore[no-untyped-def]
    """Choice in each lane: `yes` where x < limit, a number, else `no`; one of these may be a number, too."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        x, limit, yes, no = (_spread(builder, argument, signature.return_type) for argument in arguments)
        return builder.select(builder.fcmp_ordered("<", x, limit), yes, no)

    return x(x, types.float64, yes, no), generate


@intrinsic
def smaller(typing_context, x, y):  # type: ignore[no-untyped-def]
    """Smaller one of two vectors in each lane; that of `y` where one of them is not a number."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(builder.fcmp_ordered("<", *arguments), *arguments)

    return x(x, x), generate


@intrinsic
def choose_smaller(typing_context, x, y, yes, no):  # type: ignore[no-untyped-def]
    """Choice in each lane between four vectors: `yes` where x < y, else `no`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        x, y, yes, no = arguments
        return builder.select(builder.fcmp_ordered("<", x, y), yes, no)

    return x(x, x, x, x), generate


@intrinsic
def square_root(typing_context, x):  # type: ignore[no-untyped-def]
    """Square root in each lane."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (value,) = arguments
        name, kind = f"llvm.sqrt.v{value.type.count}f64", ir.FunctionType(value.type, [value.type])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, [value])

    return x(x), generate
