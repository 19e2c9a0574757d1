"""Shorter ways through the compiler of numba to the same results.

Before numba generates code, it asks hundreds of thousands of times for the options of functions that it has compiled,
and for the variables of each statement. It finds the types of an operation anew wherever it is written, parses a module
for each question about the size of a type, and looks for new registrations for each function. Together they cost a
third of the time of a first result.

Imports numba, and is imported when something else has imported it, if its version is one of
`meanfield.process.numba_versions`.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from llvmlite.binding import ffi
from numba.core import base, ir, targetconfig
from numba.core.types.functions import BaseFunction
from numba.core.typing.context import BaseContext

_WITHOUT_VARIABLES = {bool, int, str, type(None), type(operator.add), ir.Const, ir.Global, ir.Loc}
"""Types of what most parts of statements are."""

_MODULE_OF_OPERATORS = operator.add.__module__

_OF_A_FUNCTION_ALONE = {"no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"}
"""Options that say what becomes of a function, and nothing about how those that it calls are compiled."""


def take_shortcuts() -> None:
    """Replace methods of numba in this process."""
    config: Any = targetconfig.TargetConfig
    config.values, config.__eq__, config.__hash__ = _options, _compile_callees_alike, _hash_of_options
    statement: Any = ir.Inst
    statement._rec_list_vars = _variables
    kind: Any = llvm.Type
    kind.get_abi_size = _size
    function: Any = BaseFunction
    function.get_call_type = _signature
    contexts: tuple[Any, ...] = base.BaseContext, BaseContext
    for context in contexts:
        context.refresh = _refresh_with(context.refresh)
    _leave_lock_unwatched()


@lru_cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _options(self: Any) -> Any:
    """Values of all options by their names, without a call for each of them."""
    kind: Any = type(self)
    return _defaults(kind) | self._values


def _compile_callees_alike(self: Any, other: Any) -> Any:
    """Whether two functions have the same options, but for those that do not concern what they call.

    By its options numba finds again what it has compiled for another caller.
    """
    if not isinstance(other, targetconfig.TargetConfig):
        return NotImplemented
    ours, theirs = _options(self), _options(other)
    return ours.keys() == theirs.keys() and all(
        value == theirs[name] for name, value in ours.items() if name not in _OF_A_FUNCTION_ALONE
    )


def _hash_of_options(self: Any) -> int:
    """The hash of their names, as in numba; it sorts them for each question."""
    kind: Any = type(self)
    return _hash_of_names(kind)


@lru_cache
def _hash_of_names(kind: Any) -> int:
    return hash(tuple(sorted(kind.options)))


_variables_of_any: Any = ir.Inst._rec_list_vars


def _variables(self: Any, value: Any) -> list[Any]:
    """Variables in a part of a statement, without a call for each part that has none."""
    kind = type(value)
    if kind not in (dict, list, tuple):
        return _variables_of_any(self, value)  # type: ignore[no-any-return]
    found = []
    for part in value.values() if kind is dict else value:
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind not in _WITHOUT_VARIABLES:
            found += self._rec_list_vars(part)
    return found


_size_of_any: Any = llvm.Type.get_abi_size
_sizes: dict[tuple[str, str], int] = {}


def _size(self: Any, target: Any, context: Any = None) -> int:
    """Size of a type of LLVM, for which llvmlite parses a module; that of a type with a name depends on its context."""
    key = str(self), str(target)
    if context is not None or "%" in key[0]:
        return _size_of_any(self, target, context)  # type: ignore[no-any-return]
    if key not in _sizes:
        _sizes[key] = _size_of_any(self, target)
    return _sizes[key]


_signature_of_any: Any = BaseFunction.get_call_type
_signatures: dict[Any, tuple[Any, Any]] = {}


def _signature(self: Any, context: Any, kinds: Any, named: Any) -> Any:
    """Signature of a call with arguments of these types; those of operators and ufuncs are found once."""
    function = self.typing_key
    if named or not (getattr(function, "__module__", None) == _MODULE_OF_OPERATORS or isinstance(function, np.ufunc)):
        return _signature_of_any(self, context, kinds, named)
    options = targetconfig.ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    key = self, context, tuple(kinds), options
    if key not in _signatures:
        found = _signature_of_any(self, context, kinds, named)
        key = self, context, tuple(kinds), options and options.copy()  # numba changes them
        _signatures[key] = found, self._impl_keys[found.args]
    found, self._impl_keys[found.args] = _signatures[key]  # what implements it may be another one for other options
    return found


def _refresh_with(refresh: Any) -> Any:
    """Method of a context of numba that registers what is new, for when there is something."""

    def refresh_if_needed(self: Any) -> None:
        registered = _registered(self)
        if registered != self.__dict__.get("_registered"):
            self._registered = registered  # what `refresh` itself registers is found by the next one
            refresh(self)
        elif hasattr(self, "typing_context"):
            self.typing_context.refresh()

    return refresh_if_needed


def _registered(context: Any) -> list[int]:
    """Numbers of what the registries of a context hold, which only grow."""
    return [
        len(getattr(registry, name)) for registry, seen in context._registries.items() for name in seen._registrations
    ]


def _leave_lock_unwatched() -> None:
    """Have LLVM called without a word from numba, whose timers of its lock take longer than most of the calls."""
    for callbacks in list(ffi.lib._lock._cblist):
        if callbacks[0].__module__ == base.__name__:
            ffi.unregister_lock_callback(*callbacks)
