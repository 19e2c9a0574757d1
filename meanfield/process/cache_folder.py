"""Where compiled code is kept if numba finds no place for it; imported before anything is compiled.

numba keeps it in NUMBA_CACHE_DIR if that is set, else beside the source, else in the user's cache folder. Where none of
them can be written, as in many containers, a decorated function would end the import with an error.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings

import numba


def ensure_cache_folder() -> None:
    """Keep compiled code in a temporary folder of this process, and warn, if there is no better place."""
    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="meanfield-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
        warnings.warn(
            "compiled code cannot be kept, because neither the folder of the package nor your cache folder can be "
            "written: every process compiles for a minute; set NUMBA_CACHE_DIR to a folder that can be written",
            stacklevel=2,
        )


def _nothing() -> None:
    """What numba is asked to find a place for."""


ensure_cache_folder()
