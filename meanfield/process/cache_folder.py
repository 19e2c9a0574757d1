"""Cache folder for compiled code where numba finds none; imported before anything is compiled.

numba keeps it in NUMBA_CACHE_DIR if that is set, else beside the source, else in the user's cache folder. Where none of
them can be written, as in many containers, a decorated function would end the import with an error. numba itself takes
half a second to import, so that the question waits until something imports it.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def ensure_cache_folder() -> None:
    """Keep compiled code in a temporary folder of this process, and warn, if there is no better place."""
    import numba

    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:
        numba.config.CACHE_DIR = _temporary_folder()  # type: ignore[attr-defined]


def prepare_numba() -> None:
    """What numba needs before it compiles: a cache folder, entry points, and somebody who says what takes so long."""
    ensure_cache_folder()
    from meanfield.process.compilation_notice import announce_compilation
    from meanfield.process.numba_versions import is_numba_known

    if is_numba_known():
        from meanfield.process.cache_index import keep_foreign_types_apart
        from meanfield.process.compiler_shortcuts import take_shortcuts
        from meanfield.process.entry_points import compile_entry_points_alone

        keep_foreign_types_apart()
        take_shortcuts()
        compile_entry_points_alone()
    announce_compilation()


def has_compiled_code() -> bool:
    """Whether an earlier process has compiled code of this package and kept it."""
    from pathlib import Path

    import numba

    kept = Path(str(numba.njit(cache=True)(_nothing).stats.cache_path))
    root = Path(__file__).parents[1] if kept.name == "__pycache__" else kept.parent
    return any(root.rglob("*.nbi"))


def _temporary_folder() -> str:
    import atexit
    import shutil
    import tempfile
    import warnings

    folder = tempfile.mkdtemp(prefix="meanfield-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings.warn(
        "compiled code cannot be kept, because neither the folder of the package nor your cache folder can be "
        "written: every process compiles for half a minute; set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=3,
    )
    return folder


def _nothing() -> None:
    """Function for which numba is asked to find a cache folder."""


class NumbaFinder:
    """Finder of modules that finds numba where Python does, and prepares it after its import."""

    def find_spec(self, name: str, path: None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find numba, and leave every other module to the finders that follow."""
        spec = PathFinder.find_spec(name) if name == "numba" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_prepare(module: ModuleType) -> None:
            execute(module)
            prepare_numba()

        spec.loader.exec_module = execute_and_prepare  # type: ignore[method-assign]
        return spec


if "numba" in sys.modules:
    prepare_numba()
else:
    sys.meta_path.insert(0, NumbaFinder())  # type: ignore[arg-type]  # no abstract base: that costs an import
