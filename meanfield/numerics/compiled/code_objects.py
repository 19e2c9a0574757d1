"""Code of Python as what it does: instructions, constants, and the names of what it takes from elsewhere."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType
from typing import Any

_UNSEEN = frozenset({"EXTENDED_ARG", "NOP", "CACHE", "RESUME", "PRECALL"})
"""Instructions that do nothing, or that only say how another is stored."""


def contents(code: CodeType) -> Iterator[Any]:
    """Instructions and constants, code of functions within included, without where they stand in a file.

    A docstring is none of them, because no instruction takes it. Names of variables are.
    """
    flags = code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200)  # variable arguments, generators, coroutines
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, flags
    arguments = code.co_argcount + code.co_kwonlyargcount + bool(counts[3] & 0x04) + bool(counts[3] & 0x08)
    yield counts, code.co_varnames[:arguments], code.co_exceptiontable
    for step in dis.get_instructions(code):
        if step.opname not in _UNSEEN:
            yield step.opname
            yield step.argval if step.opcode in dis.hasconst else repr(step.argval)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of functions within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def names_in(code: CodeType) -> set[str]:
    """Names of globals and of attributes in code, and in functions within it."""
    return {name for each in _codes(code) for name in each.co_names}


def globals_in(code: CodeType) -> set[str]:
    """Names of globals in code, and in functions within it."""
    return _arguments_of(code, ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


def imports_in(code: CodeType) -> set[str]:
    """Names of modules that are imported in code, and in functions within it."""
    return _arguments_of(code, ("IMPORT_NAME",))


def closed_over(function: Callable[..., Any]) -> dict[str, Any]:
    """Values that a function closes over, by the names of variables; none of those to which nothing was assigned."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _arguments_of(code: CodeType, instructions: tuple[str, ...]) -> set[str]:
    return {step.argval for each in _codes(code) for step in dis.get_instructions(each) if step.opname in instructions}
