"""Sources of compiled code: modules of this package that compile something, and those that they import.

Machine code holds functions of many files, inlined, and constants that their modules import. numba compares the file of
one function; here all of them are read, which takes a tenth of a second, and their digest names the folder of what was
compiled from them.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import llvmlite
import numba
import numpy as np

PACKAGE = Path(__file__).parents[2]

_COMPILES = re.compile(rb"^(?:from|import) numba|own_numba as numba", re.MULTILINE)
"""What stands in a module that compiles something or tells numba how to."""

_IMPORTED = re.compile(rb"^\s*(?:from|import)\s+([\w.]+)(?:\s+import\s+(\([^)]*\)|[^\n]*))?", re.MULTILINE)
"""Statements that import a module, or names from one."""


@cache
def versioned_sources() -> dict[str, str]:
    """Digests of all sources of compiled code, by the names of their modules."""
    paths = sorted(PACKAGE.rglob("*.py"))
    texts = {_name(path): path.read_bytes() for path in paths}
    found = [name for name, text in texts.items() if _COMPILES.search(text)]
    for name in found:  # grows meanwhile
        found += [other for other in dict.fromkeys(_imports(texts[name])) if other in texts and other not in found]
    return {name: sha256(texts[name]).hexdigest() for name in sorted(found)}


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(text: bytes) -> list[str]:
    """Names of what a module imports, modules among them."""
    found = []
    for module, names in _IMPORTED.findall(text):
        found += [module.decode(), *(f"{module.decode()}.{name}" for name in re.findall(r"\w+", names.decode()))]
    return found


def version() -> str:
    """Digest of all sources of compiled code, and of the versions of what compiles it."""
    compilers = sys.version_info[:3], numba.__version__, llvmlite.__version__, np.__version__
    return sha256(repr((compilers, versioned_sources())).encode()).hexdigest()[:16]
