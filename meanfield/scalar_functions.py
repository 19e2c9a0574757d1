"""Scalar functions handed to compiled kernels by address.

A kernel that takes an address is compiled and cached once and serves every activation and prior, a
user's own included. numba's first-class function objects would do the same, but unboxing one costs
15 microseconds at every call of a kernel, more than a whole closure evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

ScalarFunction = Callable[[float], float]


def compile_scalar(function: ScalarFunction) -> int:
    """Compile a function of one float, cached on disk, and return the address of its machine code.

    The address stays valid as long as the process lives.
    """
    compiled: Any = numba.cfunc(numba.float64(numba.float64), cache=True)(function)
    _KEPT_ALIVE.append(compiled)
    return int(compiled.address)


_KEPT_ALIVE: list[Any] = []


@intrinsic
def call_scalar(typing_context, address, x):  # type: ignore[no-untyped-def]
    """`call_scalar(address, x)` inside compiled code: the value at x of the function at `address`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        double = ir.DoubleType()
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(double, [double]).as_pointer())
        return builder.call(pointer, [arguments[1]])

    return types.float64(types.intp, types.float64), generate
