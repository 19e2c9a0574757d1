"""Compiled code on disk counts as missing once a file has changed that it was made of.

numba compares the file of a function. The machine code of an entry point holds inner functions of other files, too, and
constants that their modules import: after an update it would go on to compute what the old sources said.

Imports numba, and is imported when something else has imported it, if its version is one of
`meanfield.process.numba_versions`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching

_IMPORTED = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
"""Names of modules in statements that import them."""


def forget_code_of_changed_sources(files_of: Callable[[Any], Iterable[str]]) -> None:
    """Change what numba keeps of a function on disk, and when it takes that, in this process.

    Parameters
    ----------
    files_of : callable
        Gives the files that the code of a library was made of; a library that comes from the disk gets them as its
        attribute `files`.
    """
    kept: Any = caching.CompileResultCacheImpl
    reduce, rebuild = kept.reduce, kept.rebuild

    def reduce_with_stamps(self: Any, compiled: Any) -> Any:
        return {file: _stamp(file) for file in files_of(compiled.library)}, reduce(self, compiled)

    def rebuild_if_current(self: Any, context: Any, state: Any) -> Any:
        stamps, payload = state if len(state) == 2 else (None, None)  # code without stamps is of older versions
        if stamps is None or any(_stamp(file) != stamp for file, stamp in stamps.items()):
            return None
        compiled = rebuild(self, context, payload)
        compiled.library.files = frozenset(stamps)
        return compiled

    kept.reduce, kept.rebuild = reduce_with_stamps, rebuild_if_current


def sources_of(function: Callable[..., Any]) -> frozenset[str]:
    """Files of a function and of modules that its own module imports, or names from them: it may hold constants."""
    if (function.__module__ or "numba").partition(".")[0] == "numba":  # whose version numba itself compares
        return frozenset()
    return _sources_of_file(function.__code__.co_filename)


@cache
def _sources_of_file(file: str) -> frozenset[str]:
    if not os.path.isfile(file):  # generated code
        return frozenset()
    imported = set(_IMPORTED.findall(Path(file).read_text(encoding="utf-8", errors="replace")))
    found = (getattr(sys.modules.get(name), "__file__", None) for name in imported)
    return frozenset([file, *filter(None, found)])


@cache
def _stamp(file: str) -> tuple[float, int] | None:
    """What tells that a file has changed; None if it is not there. Sources that this process has imported stay."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime, found.st_size
