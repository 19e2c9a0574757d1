"""Folder for compiled code, one for each version of its sources.

It lies where numba would keep code of this package: in NUMBA_CACHE_DIR if that is set, else in the `__pycache__` of the
package, else in the user's cache folder. Where none of them can be written, as in many containers, it is temporary.

Machine code holds functions of many files, inlined, and constants that their modules import. numba compares the file of
one function; here all modules that compile something, and those that they import, are read, which takes a tenth of a
second, and their digest names the folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache

PACKAGE = Path(__file__).parents[2]

_COMPILES = re.compile(rb"^(?:from|import) numba|own_numba as numba", re.MULTILINE)
"""Line of a module that compiles something or tells numba how to."""

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


PREFIX = "meanfield-"

FOLDERS_KEPT = 4
"""Number of versions whose folders are kept: those that were used last, by other branches or environments."""


def folder() -> Path:
    """The folder of this version; it may not exist."""
    return _folder(str(config.CACHE_DIR))


@cache
def _folder(provided: str) -> Path:
    """The folder, by what NUMBA_CACHE_DIR says."""
    try:
        place = _place()
    except RuntimeError:
        place = _temporary_folder()
    found = place / f"{PREFIX}{version()}"
    with contextlib.suppress(OSError):
        if not found.exists():
            _forget_old_versions(place)
            found.mkdir()
        os.utime(found)
    return found


def _place() -> Path:
    """Folder in which numba keeps code of the first file of this package.

    Raises
    ------
    RuntimeError
        If no place can be written.
    """
    code = _nothing.__code__.replace(co_filename=str(PACKAGE / "__init__.py"))
    return Path(FunctionCache(FunctionType(code, {})).cache_path)


def _nothing() -> None:
    """Function for which numba is asked to find a place."""


def _forget_old_versions(place: Path) -> None:
    """Delete folders of other versions but for those that were used last; whoever reads one compiles again."""
    others = sorted(place.glob(f"{PREFIX}*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for other in others[FOLDERS_KEPT - 1 :]:
        shutil.rmtree(other, ignore_errors=True)


def has_compiled_code() -> bool:
    """Whether an earlier process has compiled code of this version and kept it."""
    return any(folder().glob("*.nbc"))


def _temporary_folder() -> Path:
    import atexit
    import tempfile
    import warnings

    made = tempfile.mkdtemp(prefix=PREFIX)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    warnings.warn(
        "compiled code cannot be kept, because neither the folder of the package nor your cache folder can be "
        "written: every process compiles for half a minute; set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=2,
    )
    return Path(made)
