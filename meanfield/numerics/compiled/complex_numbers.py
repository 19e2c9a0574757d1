"""Functions of floats, compiled for complex numbers next to the real line: those of math, powers, and comparisons.

numba takes x**n of complex x from the angle of x, which for negative x loses an imaginary part far below rounding, as
that of a complex step is. Products keep it. Complex numbers have no order; next to the real line that of real parts
decides, so that abs, min and max are those of the side on which x is.
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

from meanfield.process import own_numba as numba


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


def less(a: Any, b: Any) -> Any:
    """Whether the real part of a is below that of b."""
    return a.real < b.real


@overload(less)
def _less(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: a.real < b.real


def at_most(a: Any, b: Any) -> Any:
    """Whether the real part of a is not above that of b."""
    return a.real <= b.real


@overload(at_most)
def _at_most(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: a.real <= b.real


@numba.njit
def _magnitude(x):  # type: ignore[no-untyped-def]
    return -x if x.real < 0.0 else x


@numba.njit
def _largest(a, b):  # type: ignore[no-untyped-def]
    return a + 0.0 * b if a.real >= b.real else b + 0.0 * a


@numba.njit
def _smallest(a, b):  # type: ignore[no-untyped-def]
    return a + 0.0 * b if a.real <= b.real else b + 0.0 * a


OPERATORS = {
    operator.pow: (power, False),
    operator.ipow: (power, False),
    operator.lt: (less, False),
    operator.gt: (less, True),
    operator.le: (at_most, False),
    operator.ge: (at_most, True),
}
"""What stands for operators, and whether it takes their sides in the other order."""


@register_pass(mutates_CFG=False, analysis_only=False)
class _Operators(FunctionPass):  # type: ignore[misc]
    """Puts functions in place of operators."""

    _name = "operators_of_complex_numbers"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the function; whether anything was changed."""
        blocks, before = state.func_ir.blocks, 0
        for block in blocks.values():
            before += len(block.body)
            block.body = [part for statement in block.body for part in _with_functions(statement)]
        if sum(len(block.body) for block in blocks.values()) == before:
            return False
        state.func_ir._definitions = build_definitions(blocks)
        return True


def _with_functions(statement: Any) -> list[Any]:
    value = getattr(statement, "value", None)
    if not isinstance(value, ir.Expr) or value.op not in ("binop", "inplace_binop"):
        return [statement]
    if value.fn not in OPERATORS:
        return [statement]
    target, place = statement.target, statement.loc
    function, reversed_ = OPERATORS[value.fn]
    sides = [value.rhs, value.lhs] if reversed_ else [value.lhs, value.rhs]
    variable = ir.Var(target.scope, f"{target.name}.function", place)
    named = ir.Global(function.__name__, function, place)
    return [ir.Assign(named, variable, place), ir.Assign(ir.Expr.call(variable, sides, (), place), target, place)]


class ComplexCompiler(CompilerBase):  # type: ignore[misc]
    """The compiler of numba, with these operators."""

    def define_pipelines(self) -> list[Any]:
        """See numba."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Operators, InlineClosureLikes)
        passes.finalize()
        return [passes]


_MATH = ModuleType("complex_math")
_MATH.__dict__.update(vars(cmath), log1p=np.log1p, expm1=np.expm1, log2=np.log2, pow=power, fabs=_magnitude)

INSTEAD = {
    math: _MATH,
    abs: _magnitude,
    max: _largest,
    min: _smallest,
    **{vars(math)[name]: found for name, found in vars(_MATH).items() if callable(vars(math).get(name))},
}
"""What stands for math and its functions, and for builtin functions."""
