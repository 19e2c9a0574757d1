"""Functions of several numbers and vectors, compiled into one loop over rows of arguments, and called by address.

A row is what one sample shows such functions: some of its columns are the numbers that one argument stands for. Kernels
that take the address are compiled once, and serve every function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from numba.extending import intrinsic, overload

from meanfield.numerics.compiled.scalar_functions import with_compiled_calls
from meanfield.numerics.compiled.straight_line import StraightLine, straight_line
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Argument(NamedTuple):
    """Place of an argument: columns of a row, or of the constants that all rows share.

    Parameters
    ----------
    first : int
        Its first column.
    shape : tuple of int
        `()` for a number, else that of an array.
    constant : bool
        Whether it is found among the constants.
    apart : int
        Number of columns from one place along axis 0 to the next, if there are others between them.
    """

    first: int
    shape: tuple[int, ...] = ()
    constant: bool = False
    apart: int = 0

    @property
    def columns(self) -> tuple[int, ...]:
        """Its columns, in the order of its elements."""
        inner = math.prod(self.shape[1:])
        count = self.shape[0] if self.shape else 1
        return tuple(self.first + (self.apart or inner) * i + j for i in range(count) for j in range(inner))


class Bound(NamedTuple):
    """Function with the places of its arguments, and the shape of its value.

    Parameters
    ----------
    function : callable
        Function of a sample, which numba can compile.
    arguments : tuple of Argument
    shape : tuple of int
        It returns a number if that is `()`, and otherwise an array of that shape, or a number for all of it.
    """

    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    shape: tuple[int, ...] = ()


class RowFunction(NamedTuple):
    """Compiled function of rows.

    Parameters
    ----------
    address : int
        Address of `void(double* rows, double* constants, double* out, intp count)`; valid as long as the process lives.
    width, constants, outputs : int
        Numbers of columns of a row, of constants, and of values.
    """

    address: int
    width: int
    constants: int
    outputs: int

    def __call__(self, rows: FloatArray, constants: FloatArray) -> FloatArray:
        """Values of all rows.

        Parameters
        ----------
        rows : ndarray, shape (count, width)
        constants : ndarray, shape (constants,)

        Returns
        -------
        ndarray, shape (count, outputs)
        """
        rows, constants = np.ascontiguousarray(rows, dtype=float), np.ascontiguousarray(constants, dtype=float)
        if rows.shape[1:] != (self.width,) or constants.shape != (self.constants,):
            raise ValueError(f"rows of {rows.shape}, constants of {constants.shape} for a function of {self}")
        out = np.empty((len(rows), self.outputs))
        _evaluate(self.address, rows, constants, out)
        return out


def compile_rows(bound: Sequence[Bound], width: int, constants: int, order: Sequence[int] = ()) -> RowFunction:
    """Compile functions into one loop over rows that puts their values side by side.

    Parameters
    ----------
    bound : sequence of Bound
    width, constants : int
        Numbers of columns of a row, and of constants.
    order : sequence of int, optional
        Where each of the values goes; by default they stay in their order.

    Raises
    ------
    numba.core.errors.NumbaError
        If numba cannot compile one of them.
    """
    return _compiled(tuple(bound), width, constants, tuple(order))


@lru_cache(maxsize=256)
def _compiled(bound: tuple[Bound, ...], width: int, constants: int, order: tuple[int, ...]) -> RowFunction:
    """Compiled functions; the phases of a run, and the methods that solve one problem, share them."""
    outputs = sum(math.prod(each.shape) for each in bound)
    names: dict[str, Any] = {"__name__": __name__, "carray": carray, "write": _write, "read": _read_apart}
    lines = [
        "def loop(rows, constants, out, count):",
        f"    x, k, values = carray(rows, (count, {width})), carray(constants, ({constants},)), "
        f"carray(out, (count, {outputs}))",
        "    for i in range(count):",
    ]
    first, texts = 0, []
    for number, each in enumerate(bound):
        last = first + math.prod(each.shape)
        straight = _straight(each)
        if straight is None:
            names[f"f{number}"] = with_compiled_calls(each.function, _special_ufuncs())
            value = f"f{number}({', '.join(map(_read, each.arguments))})"
            lines.append(
                f"        write({value}, values[i], {first}, {last})"
                if each.shape
                else f"        values[i, {first}] = {value}"
            )
        else:
            names |= straight.functions
            written = (f"values[i, {first + n}] = {value}" for n, value in enumerate(straight.values))
            code = [f"def f{number}(x, k, values, i):", *(f"    {line}" for line in (*straight.lines, *written))]
            texts.append("\n".join(code))
            exec(texts[-1], names)  # the text holds names and numbers alone
            names[f"f{number}"].__qualname__ = _name_of(texts[-1])
            lines.append(f"        f{number}(x, k, values, i)")
        names[f"f{number}"] = numba.njit(names[f"f{number}"], error_model="numpy")
        first = last
    if order:
        lines.insert(2, f"    order, kept = {order}, values[:1].copy()")
        lines += [f"        for j in range({outputs}):", "            kept[0, order[j]] = values[i, j]"]
        lines += [f"        for j in range({outputs}):", "            values[i, j] = kept[0, j]"]
    text = "\n".join(lines)
    exec(text, names)  # the text holds numbers alone, of places
    names["loop"].__qualname__ = _name_of("".join((*texts, text)))
    pointer = types.CPointer(types.float64)
    kept = len(texts) == len(bound)
    compiled: Any = numba.cfunc(types.void(pointer, pointer, pointer, types.intp), cache=kept)(names["loop"])
    _KEPT_ALIVE.append(compiled)
    return RowFunction(int(compiled.address), width, constants, outputs)


def _name_of(text: str) -> str:
    """Name on disk and in machine code, which is linked by names: what is written down is the same in every process."""
    return f"rows_{sha256(text.encode()).hexdigest()}"


def _straight(bound: Bound) -> StraightLine | None:
    """Operations of a function, or None if it is more than such."""
    arguments = [
        ([_read(Argument(column, (), each.constant)) for column in each.columns], each.shape)
        for each in bound.arguments
    ]
    found = straight_line(getattr(bound.function, "py_func", bound.function), arguments, _special_functions())
    if found is None or len(found.values) not in (1, math.prod(bound.shape)):
        return None
    return found._replace(values=found.values * (math.prod(bound.shape) // len(found.values)))


@numba.njit(error_model="numpy")
def _read_apart(numbers, shape, apart):  # type: ignore[no-untyped-def]
    """Array of numbers whose places along axis 0 are apart."""
    found = np.empty(shape)
    inner = found.size // shape[0]
    for i in range(found.size):
        found.flat[i] = numbers[i // inner * apart + i % inner]
    return found


def _write(value, row, first, last):  # type: ignore[no-untyped-def]
    """Write the elements of an array, or a number for all of them, to a row from one column to another.

    NaN where there are more or less.
    """


@overload(_write)
def _write_of(value, row, first, last):  # type: ignore[no-untyped-def]
    """For `row[first:last] = value` numba compiles what broadcasts shapes, which takes seconds."""

    def of_number(value, row, first, last):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            row[i] = value

    def of_sequence(value, row, first, last):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            row[i] = value[i - first] if len(value) == last - first else math.nan

    def of_array(value, row, first, last):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            row[i] = value.flat[i - first] if value.size == last - first else math.nan

    if isinstance(value, types.Array):
        return of_array
    return of_sequence if isinstance(value, types.Sequence) else of_number


_KEPT_ALIVE: list[Any] = []


def _read(argument: Argument) -> str:
    """Text of an expression that reads an argument."""
    row, first = ("k[" if argument.constant else "x[i, "), argument.first
    if not argument.shape:
        return f"{row}{first}]"
    if argument.apart:
        numbers = f"{row}{first}:{argument.columns[-1] + 1}]"
        return f"read({numbers}, {argument.shape}, {argument.apart})"
    numbers = f"{row}{first}:{first + math.prod(argument.shape)}]"
    return numbers if len(argument.shape) == 1 else f"{numbers}.reshape({argument.shape})"


@cache
def _special_functions() -> Mapping[Any, Any]:
    """What stands for functions of SciPy of numbers, which numba does not know."""
    formulas: dict[Any, Callable[[float], float]] = {
        scipy.special.erf: lambda x: math.erf(x),
        scipy.special.erfc: lambda x: math.erfc(x),
        scipy.special.expit: lambda x: 0.5 + 0.5 * math.tanh(0.5 * x),
        scipy.special.ndtr: lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5)),
    }
    for function, formula in formulas.items():
        formula.__qualname__ = function.__name__  # machine code is linked by names
    return {function: numba.njit(formula) for function, formula in formulas.items()}


@cache
def _special_ufuncs() -> Mapping[Any, Any]:
    """What stands for functions of SciPy of numbers and arrays, and for its module of them."""
    module = ModuleType("special")
    instead: dict[Any, Any] = {scipy.special: module}
    for function, formula in _special_functions().items():
        compiled: Any = numba.vectorize([types.float64(types.float64)])(formula.py_func)
        setattr(module, function.__name__, compiled)
        instead[function] = compiled
    return instead


@intrinsic
def call_rows(typing_context, address, rows, constants, out):  # type: ignore[no-untyped-def]
    """Values of all rows, inside compiled code: `call_rows(address, rows, constants, out)`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        double, size = ir.DoubleType().as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [double, double, double, size])
        pointer = builder.inttoptr(arguments[0], kind.as_pointer())
        given = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
        ]
        count = builder.extract_value(given[0].shape, 0)
        builder.call(pointer, [*(array.data for array in given), count])
        return context.get_dummy_value()

    return types.void(types.intp, rows, constants, out), generate


@numba.njit(cache=True, nogil=True)
def _evaluate(address, rows, constants, out):  # type: ignore[no-untyped-def]
    call_rows(address, rows, constants, out)
