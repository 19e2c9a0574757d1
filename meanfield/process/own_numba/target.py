"""Target of compilation for functions of this package: numba's CPU, whose contexts it shares.

Registries of types and of implementations are those of numba, so that everything that one target has compiled is a
function to the other, too. What our contexts have of their own are shorter ways through numba to the same results: it
finds the types of an operation anew wherever it is written, parses a module for each question about the size of a type,
compares options by hundreds of thousands of calls, and looks for new registrations for each function.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numba.core import compiler, cpu, typing
from numba.core.descriptors import TargetDescriptor
from numba.core.registry import cpu_target
from numba.core.target_extension import CPU, target_override
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

from meanfield.process.own_numba.library import Library

NAME = "meanfield"
"""Name of the target among those of numba."""

_MODULE_OF_OPERATORS = operator.add.__module__

_OF_A_FUNCTION_ALONE = {"no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"}
"""Options that say what becomes of a function, and nothing about how those that it calls are compiled."""


class Target(CPU):
    """The processor, for functions of this package."""


class Flags(compiler.Flags):
    """Options of a function, by which numba finds again what it has compiled for another caller.

    They never equal those of numba's own functions, which need code that is complete.
    """

    def values(self) -> dict[str, Any]:
        """All options by their names, without a call for each of them."""
        return _defaults(type(self)) | self._values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return False
        ours, theirs = self.values(), other.values()
        return all(value == theirs[name] for name, value in ours.items() if name not in _OF_A_FUNCTION_ALONE)

    def __hash__(self) -> int:
        return hash(Flags)


@lru_cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


class TypingContext(typing.Context):
    """numba's knowledge of types, of which operators are looked up once."""

    def __init__(self) -> None:
        self.__dict__.update(vars(cpu_target.typing_context))
        self._seen: list[int] = []
        self._signatures: dict[Any, tuple[Any, Any]] = {}

    def refresh(self) -> None:
        """Have numba register what is new, for when there is something."""
        if _is_new(self, self._seen):
            cpu_target.typing_context.refresh()

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Signature of a call with arguments of these types; those of operators and ufuncs are found once."""
        kind = func if isinstance(func, BaseFunction) else self._lookup_global(func)
        if kws or not isinstance(kind, BaseFunction) or not _is_operation(kind.typing_key):
            return super().resolve_function_type(func, args, kws)
        options = ConfigStack.top_or_none()
        key = kind, tuple(args), options
        if key not in self._signatures:
            found = super().resolve_function_type(func, args, kws)
            if found is None or found.args not in kind._impl_keys:
                return found
            key = kind, tuple(args), options and options.copy()  # numba changes them
            self._signatures[key] = found, kind._impl_keys[found.args]
        # What implements it may be another function for other options.
        found, kind._impl_keys[found.args] = self._signatures[key]
        return found


def _is_operation(function: Any) -> bool:
    return getattr(function, "__module__", None) == _MODULE_OF_OPERATORS or isinstance(function, np.ufunc)


class Context(cpu.CPUContext):
    """numba's knowledge of implementations, whose code is written into libraries of our own."""

    def __init__(self, typing_context: TypingContext) -> None:
        shared: Any = cpu_target.target_context
        self.__dict__.update(vars(shared))
        self.__dict__.pop("nrt", None)  # knows its context
        self.typing_context, self.target_name, self.target = typing_context, NAME, Target
        self.cached_internal_func: dict[Any, Any] = {}  # of numba's libraries
        self._internal_codegen = copy.copy(shared.codegen())
        self._internal_codegen._library_class = Library
        self._seen: list[int] = []
        self._sizes: dict[str, int] = {}

    def refresh(self) -> None:
        """Have numba register what is new, for when there is something."""
        if _is_new(self, self._seen):
            cpu_target.target_context.refresh()
        self.typing_context.refresh()

    @contextmanager
    def push_code_library(self, lib: Any) -> Iterator[None]:
        """Have numba write a function into a library; what it compiles for that meanwhile is ours as well."""
        with target_override(NAME), super().push_code_library(lib):
            yield

    def get_abi_sizeof(self, ty: Any) -> int:
        """Size of a type of LLVM; that of a type with a name depends on where it is defined."""
        key = str(ty)
        if "%" in key:
            return super().get_abi_sizeof(ty)
        if key not in self._sizes:
            self._sizes[key] = super().get_abi_sizeof(ty)
        return self._sizes[key]


def _is_new(context: Any, seen: list[int]) -> bool:
    """Whether the registries of a context, which only grow, hold more than was seen; from now on it counts as seen.

    What numba registers while it refreshes is found by the next refresh.
    """
    registered = [
        len(getattr(registry, name))
        for registry, loader in context._registries.items()
        for name in loader._registrations
    ]
    if registered and registered == seen:
        return False
    seen[:] = registered
    return True


class _Descriptor(TargetDescriptor):
    """Descriptor that numba asks for the contexts of a target, which are made once."""

    options = cpu.CPUTargetOptions

    @cached_property
    def typing_context(self) -> TypingContext:
        return TypingContext()

    @cached_property
    def target_context(self) -> Context:
        return Context(self.typing_context)


descriptor = _Descriptor(NAME)
