"""Scalar functions, as people write them, handed to compiled kernels by address.

A kernel that takes an address is compiled and cached once and serves every activation and prior, a
user's own included. numba's first-class function objects would do the same, but unboxing one costs
15 microseconds at every call of a kernel, more than a whole closure evaluation.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from inspect import isfunction, signature
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from numba.extending import intrinsic

from meanfield.numerics.compiled.code_objects import closed_over, names_in
from meanfield.numerics.compiled.vectorisable_math import MATH
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

ScalarFunction = Callable[[float], float]

LOOP: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}
"""Options of compiled loops: products and sums may be fused, and a division by zero is no branch."""


@lru_cache(maxsize=256)
def compile_scalar(function: ScalarFunction) -> int:
    """Compile a function of one float, and return the address of its machine code.

    The address stays valid as long as the process lives.
    """
    compiled: Any = numba.cfunc(numba.float64(numba.float64), cache=is_kept(function))(compilable(function))
    _KEPT_ALIVE.append(compiled)
    return int(compiled.address)


@lru_cache(maxsize=64)
def compile_loop(function: ScalarFunction) -> int:
    """Compile a function of one float into a loop over arrays, and return the address of its machine code.

    Unlike calls by address the loop knows its function, and takes `vectorisable_math.MATH` where that says math,
    so that several numbers are computed at once.
    """
    scalar: Any = numba.njit(compilable(function, {math: MATH}), forceinline=True, **LOOP)
    # numba keeps a loop on disk under its name, and does not look at what the name `scalar` in it stands for.
    loop = FunctionType(_loop.__code__, {**globals(), "scalar": scalar})
    loop.__qualname__ = f"loop.{function.__module__}.{function.__qualname__}"
    loop.__module__ = __name__
    pointer = types.CPointer(types.float64)
    compiled: Any = numba.cfunc(types.void(pointer, pointer, types.intp), cache=is_kept(function), **LOOP)(loop)
    _KEPT_ALIVE.append(compiled)
    return int(compiled.address)


def _loop(x, out, size):  # type: ignore[no-untyped-def]
    points, values = carray(x, size), carray(out, size)
    for i in range(size):
        values[i] = scalar(points[i])  # type: ignore[name-defined]  # noqa: F821


@lru_cache(maxsize=256)
def is_kept(function: ScalarFunction) -> bool:
    """Whether code may be kept on disk: other functions may come from anywhere, or close over any parameters."""
    ours = (function.__module__ or "").startswith("meanfield.")  # functions made by `exec` may have no module
    return ours and (function.__closure__ is None or _is_default(function))


def _is_default(function: ScalarFunction) -> bool:
    """Whether a function closes over nothing but the defaults of the factory in its module that made it."""
    made_by = getattr(import_module(function.__module__), function.__qualname__.partition(".")[0], None)
    defaults = {name: each.default for name, each in signature(made_by).parameters.items()} if made_by else {}
    return all(name in defaults and value == defaults[name] for name, value in closed_over(function).items())


_KEPT_ALIVE: list[Any] = []


def evaluate(function: ScalarFunction, x: FloatArray) -> FloatArray:
    """Values of a scalar function at all elements of an array, by its compiled code."""
    x = np.asarray(x, dtype=float)
    return np.asarray(_evaluate(compile_scalar(function), x.ravel())).reshape(x.shape)


@numba.njit(cache=True, nogil=True)
def _evaluate(address, x):  # type: ignore[no-untyped-def]
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = call_scalar(address, x[i])
    return result


@intrinsic
def call_scalar(typing_context, address, x):  # type: ignore[no-untyped-def]
    """Value at x of the function at `address`, inside compiled code: `call_scalar(address, x)`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        double = ir.DoubleType()
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(double, [double]).as_pointer())
        return builder.call(pointer, [arguments[1]])

    return types.float64(types.intp, types.float64), generate


@intrinsic
def call_loop(typing_context, address, x, out):  # type: ignore[no-untyped-def]
    """Values of the function of `compile_loop` at all x, inside compiled code: `call_loop(address, x, out)`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        double, size = ir.DoubleType().as_pointer(), ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(ir.VoidType(), [double, double, size]).as_pointer())
        points, values = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
        )
        builder.call(pointer, [points.data, values.data, points.nitems])
        return context.get_dummy_value()

    return types.void(types.intp, x, out), generate


def compilable(function: Any, instead: Mapping[Any, Any] | None = None) -> Any:
    """Function of one number for compiled code: functions that it calls are compiled, too.

    One that is compiled already is taken as it was written, and other arguments than the first keep their defaults.
    What is no function is returned as it is.

    Parameters
    ----------
    instead : mapping, optional
        What it takes in place of modules and builtin functions.
    """
    plain = with_compiled_calls(function, instead or {})
    if not isfunction(plain):
        return plain
    if not any(argument.default is not argument.empty for argument in signature(plain).parameters.values()):
        return plain
    whole: Any = numba.njit(plain)
    return lambda x: whole(x)


def with_compiled_calls(function: Any, instead: Mapping[Any, Any]) -> Any:
    """Function of any arguments that calls compiled functions, and other things in place of some.

    One that is compiled already is taken as it was written; what is no function is returned as it is.

    Parameters
    ----------
    instead : mapping
        What it takes in place of modules, builtin functions and universal functions of NumPy's kind.
    """
    plain = getattr(function, "py_func", function)
    return _Changed(instead).of(plain, ()) if isfunction(plain) else function


class _Changed:
    """Functions that name other things than they were written with."""

    def __init__(self, instead: Mapping[Any, Any]) -> None:
        self._instead = instead

    def of(self, function: FunctionType, callers: tuple[FunctionType, ...]) -> FunctionType:
        """The changed function; functions that call each other in a circle stay as they are."""
        inside = (*callers, function)
        known = {name: function.__globals__.get(name, vars(builtins).get(name)) for name in names_in(function.__code__)}
        changed, inner = self._others(known, inside), self._others(closed_over(function), inside)
        if not changed and not inner:
            return function
        code, names = function.__code__, function.__globals__ | changed
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = tuple(CellType(inner[name]) if name in inner else cell for name, cell in cells) or None
        made = FunctionType(code, names, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _others(self, named: Mapping[str, Any], inside: tuple[FunctionType, ...]) -> dict[str, Any]:
        """Replacements of named objects, of those that have one."""
        return {
            name: found for name, value in named.items() if (found := self._replacement_of(value, inside)) is not value
        }

    def _replacement_of(self, value: Any, inside: tuple[FunctionType, ...]) -> Any:
        """Replacement of an object that a function names, or the object itself."""
        if isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc):
            return self._instead.get(value, value)
        if not isfunction(value) or value in inside:
            return value
        return numba.njit(self.of(value, inside))
