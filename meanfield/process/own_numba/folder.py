"""Folder for compiled code, one for each version of its sources.

It lies where numba would keep code of this package: in NUMBA_CACHE_DIR if that is set, else in the `__pycache__` of the
package, else in the user's cache folder. Where none of them can be written, as in many containers, it is temporary.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import cache
from pathlib import Path
from types import FunctionType

from numba.core import config
from numba.core.caching import FunctionCache

from meanfield.process.own_numba.sources import PACKAGE, version

PREFIX = "meanfield-"

KEPT = 4
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
    """Where numba keeps code of the first file of this package.

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
    for other in others[KEPT - 1 :]:
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
