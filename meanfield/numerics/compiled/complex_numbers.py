"""Functions of floats, compiled for complex numbers: those of math, and powers with whole exponents.

numba takes x**n of complex x from the angle of x, which for negative x loses an imaginary part far below rounding, as
that of a complex step is. Products keep it.
"""

from __future__ import annotations

import cmath
import math
import operator
from types import ModuleType
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import overload


def power(base: Any, exponent: Any) -> Any:
    """base**exponent, by products where the exponent is whole."""
    return base**exponent


@overload(power)
def _power(base, exponent):  # type: ignore[no-untyped-def]
    if isinstance(base, types.Complex) and isinstance(exponent, types.Integer):
        return _product
    if isinstance(base, types.Complex) and isinstance(exponent, types.Float):
        return _product_if_whole
    return lambda base, exponent: base**exponent


def _product(base, exponent):  # type: ignore[no-untyped-def]
    found, factor, left = base * 0 + 1, base, abs(exponent)
    while left > 0:
        if left % 2 == 1:
            found *= factor
        factor *= factor
        left //= 2
    return 1 / found if exponent < 0 else found


def _product_if_whole(base, exponent):  # type: ignore[no-untyped-def]
    return power(base, int(exponent)) if exponent == int(exponent) else base**exponent


@register_pass(mutates_CFG=False, analysis_only=False)
class _Powers(FunctionPass):  # type: ignore[misc]
    """Puts `power` in place of the operator."""

    _name = "powers_of_complex_numbers"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the function; whether anything was changed."""
        blocks, before = state.func_ir.blocks, 0
        for block in blocks.values():
            before += len(block.body)
            block.body = [part for statement in block.body for part in _with_power(statement)]
        if sum(len(block.body) for block in blocks.values()) == before:
            return False
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _with_power(statement: Any) -> list[Any]:
    value = getattr(statement, "value", None)
    if not isinstance(value, ir.Expr) or value.op not in ("binop", "inplace_binop"):
        return [statement]
    if value.fn not in (operator.pow, operator.ipow):
        return [statement]
    target, place = statement.target, statement.loc
    function = ir.Var(target.scope, f"{target.name}.power", place)
    call = ir.Expr.call(function, [value.lhs, value.rhs], (), place)
    return [ir.Assign(ir.Global("power", power, place), function, place), ir.Assign(call, target, place)]


class ComplexCompiler(CompilerBase):  # type: ignore[misc]
    """The compiler of numba, with these powers."""

    def define_pipelines(self) -> list[Any]:
        """See numba."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Powers, InlineClosureLikes)
        passes.finalize()
        return [passes]


_MATH = ModuleType("complex_math")
_MATH.__dict__.update(vars(cmath), log1p=np.log1p, expm1=np.expm1, log2=np.log2, pow=power)

INSTEAD = {
    math: _MATH,
    **{vars(math)[name]: found for name, found in vars(_MATH).items() if callable(vars(math).get(name))},
}
"""What stands for math and its functions."""
