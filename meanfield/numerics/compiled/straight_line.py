"""Straight-line code of functions of small arrays: they are run once with symbols in place of numbers.

Compiled functions of arrays create an array for each operation, which takes longer than the arithmetic, and compile for
seconds. What a function does to each number of its small arrays, written down, is arithmetic of numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

OPERATORS: dict[Any, str] = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/", np.power: "**",
    np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">=", np.equal: "==", np.not_equal: "!=",
}  # fmt: skip
"""Operators of what is written by them."""

TRUTHS: dict[Any, str] = {np.logical_and: "and", np.logical_or: "or", np.bitwise_and: "and", np.bitwise_or: "or"}
"""Operators of truth values."""

NOT = (np.logical_not, np.invert)


class StraightLine(NamedTuple):
    """Operations of a function.

    Parameters
    ----------
    lines : list of str
        Assignments to names, in order.
    values : list of str
        Names or numbers that it returns.
    functions : mapping of str to callable
        What names of functions in lines stand for.
    """

    lines: list[str]
    values: list[str]
    functions: Mapping[str, Callable[..., Any]]


class UntraceableError(Exception):
    """Error of an operation that is not written down."""


class _Tape:
    """Operations in order; what was done before is not done again."""

    def __init__(self, known: Mapping[Any, Any]) -> None:
        self.known = known
        self.functions: dict[str, Any] = {}
        self.names: dict[str, str] = {}

    def write(self, ufunc: np.ufunc, inputs: Sequence[Any]) -> _Symbol:
        """Symbol for a function of symbols and numbers."""
        texts, truths = [_text(each) for each in inputs], [_is_truth(each) for each in inputs]
        if ufunc in TRUTHS or ufunc in NOT:
            if not all(truths):
                raise UntraceableError
            text = f"not {texts[0]}" if ufunc in NOT else f" {TRUTHS[ufunc]} ".join(texts)
        elif all(truths):  # NumPy's sum of truth values is one
            raise UntraceableError
        elif ufunc in OPERATORS:
            text = f" {OPERATORS[ufunc]} ".join(texts)
        elif ufunc is np.negative:
            text = f"-{texts[0]}"
        else:
            name, function = f"of_{ufunc.__name__}", self.known.get(ufunc, ufunc)
            if function is ufunc and getattr(np, ufunc.__name__, None) is not ufunc:
                raise UntraceableError
            self.functions[name] = function
            text = f"{name}({', '.join(texts)})"
        if len(self.names) >= 500:  # compiled in two seconds
            raise UntraceableError
        number = ufunc(*map(_number, inputs))
        return _Symbol(self.names.setdefault(text, f"v{len(self.names)}"), self, number)


class _Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand-in for a number, with one of those that it stands for."""

    __hash__ = object.__hash__

    def __init__(self, name: str, tape: _Tape, number: Any) -> None:
        self.name, self.tape, self.number = name, tape, number

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:
            raise UntraceableError
        if not any(isinstance(each, np.ndarray | list | tuple) for each in inputs):
            return self.tape.write(ufunc, inputs)
        return _elementwise(ufunc, inputs)

    def __bool__(self) -> bool:
        raise UntraceableError  # the way of a function that asks depends on the number

    def __getattr__(self, name: str) -> Any:
        """Functions of a number as methods, which NumPy calls for arrays of objects."""
        ufunc = None if name.startswith("_") else getattr(np, name, None)
        if not isinstance(ufunc, np.ufunc) or ufunc.nin != 1:
            raise AttributeError(name)
        return lambda: self.tape.write(ufunc, [self])


class _Symbols(np.ndarray[Any, Any]):
    """Array of symbols."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [each.view(np.ndarray) if isinstance(each, _Symbols) else each for each in inputs]
        if method == "__call__" and not options and ufunc.signature is None:
            return _elementwise(ufunc, plain)
        if options.get("out") is not None:
            raise UntraceableError
        return _as_symbols(getattr(ufunc, method)(*plain, **options))  # by operations of the elements


def _as_symbols(values: Any) -> Any:
    return values.view(_Symbols) if isinstance(values, np.ndarray) and values.dtype == object else values


def _elementwise(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    arrays = np.broadcast_arrays(*(np.asarray(each, dtype=object) for each in inputs))
    out = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(out.shape):
        elements = [each[place] for each in arrays]
        symbol: Any = next((each for each in elements if isinstance(each, _Symbol)), None)
        out[place] = ufunc(*elements) if symbol is None else symbol.tape.write(ufunc, elements)
    return out.view(_Symbols)


def _number(value: Any) -> Any:
    return value.number if isinstance(value, _Symbol) else value


def _is_truth(value: Any) -> bool:
    return isinstance(_number(value), bool | np.bool_)


def _text(value: Any) -> str:
    """Text of a symbol or a number."""
    if isinstance(value, _Symbol):
        return value.name
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, bool | int | float) or not math.isfinite(number):
        raise UntraceableError
    return f"({number!r})"


def straight_line(
    function: Callable[..., Any], arguments: Sequence[tuple[Sequence[str], tuple[int, ...]]], known: Mapping[Any, Any]
) -> StraightLine | None:
    """Operations of a function, or None if they are not the same for all numbers, too many, or none of NumPy's.

    They are not taken either where they do not give what the function gives of numbers, as it may ask for their type.

    Parameters
    ----------
    function : callable
    arguments : sequence of (sequence of str, tuple of int)
        Texts of the numbers of each argument, and its shape, `()` for a number.
    known : mapping
        What stands for functions that numba does not know.
    """
    tape, rng = _Tape(known), np.random.default_rng(0)
    given: list[Any] = []
    plain: list[Any] = []
    for texts, shape in arguments:
        numbers, symbols = rng.normal(size=len(texts)), np.empty(len(texts), dtype=object)
        symbols[:] = [_Symbol(text, tape, number) for text, number in zip(texts, numbers, strict=True)]
        given.append(symbols.reshape(shape).view(_Symbols) if shape else symbols[0])
        plain.append(numbers.reshape(shape) if shape else numbers[0])
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(function(*given), dtype=object).ravel()
            values, expected = [_text(each) for each in found], np.ravel(function(*plain))
        # Sums in another order have other roundings.
        if not np.allclose([*map(_number, found)], expected, 1e-6, 1e-12, equal_nan=True):
            return None
    except Exception:  # whatever symbols cannot do
        return None
    return StraightLine([f"{name} = {text}" for text, name in tape.names.items()], values, tape.functions)
