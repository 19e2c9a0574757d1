"""Compiled code on disk: a file for each function and list of types of its arguments.

What is kept is made of versioned sources alone (`sources`), for types that every process knows: functions and types of
other packages may change at any time, and code that holds them is compiled in every process; a function of a user is
kept where it was written down wholly (`numerics.compiled.row_functions`). A file that is missing or damaged, in
whatever way, is written anew. Files are replaced as a whole, so that processes may share them.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from meanfield.process.atomic_files import write_atomically
from meanfield.process.locking import Answer, FolderLock
from meanfield.process.own_numba.folder import folder, versioned_sources

KNOWN = ("builtins", "copyreg", "meanfield", "numba", "numpy")
"""Packages whose types code may be kept for."""

DIGEST = sha256().digest_size

PATIENCE = 60.0
"""Seconds for which a process waits for another one that compiles the same; that one may have been stopped."""


def is_versioned(function: Callable[..., Any]) -> bool:
    """Whether the digest of sources knows a function: one of them holds it, or it is numba's own."""
    module = function.__module__ or ""  # `exec` defines functions of no module
    return module in versioned_sources() or module.startswith("numba.")


class Cache:
    """Compiled code of one function on disk, as numba's dispatchers expect it.

    Parameters
    ----------
    function : callable
        As it was written.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._enabled = is_versioned(function)

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(folder())

    def enable(self) -> None:
        """Keep code, and look for it."""
        self._enabled = is_versioned(self._function)

    def disable(self) -> None:
        """Leave the disk alone."""
        self._enabled = False

    def flush(self) -> None:
        """Forget what is kept."""
        for path in folder().glob(f"{self._name()}.*.nbc"):
            path.unlink(missing_ok=True)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Result of compilation that an earlier process has kept, or None."""
        if not self._enabled:
            return None
        context.refresh()
        key = self._key(signature, context.codegen())
        data = _undamaged(self._path(key))
        kept, parts = pickle.loads(data) if data else (None, ())
        if kept != key:
            return None
        found: Any = CompileResult._rebuild(context, *parts)
        # numba has run what a function needs that it calls by its address, and forgets it; who links this one needs it.
        getattr(found.library, "_reload_init", set()).update(found.reload_init or ())  # older versions have none
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a result of compilation, if it may be kept; a disk that is full is no reason to stop."""
        library = compiled.library
        if not self._enabled or library.has_dynamic_globals:
            return
        key = self._key(signature, library.codegen)
        if not _is_known(key) or not getattr(library, "is_wholly_versioned", lambda: True)():
            return
        data = dumps((key, compiled._reduce()))
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, lambda part: Path(part).write_bytes(sha256(data).digest() + data), flush=False)

    @contextlib.contextmanager
    def alone(self, signature: Any, context: Any) -> Iterator[bool]:
        """Context in which no other process compiles the same; whether one has done so until now.

        Processes that start together would compile the same functions at the same time, each for itself.
        """
        key = self._key(signature, context.codegen())
        lock = FolderLock(self._path(key).with_suffix(".lock"))
        answer, end, waited = Answer.UNKNOWN, time.monotonic() + PATIENCE, False
        if self._enabled and _is_known(key):
            with contextlib.suppress(OSError):  # a folder that cannot be written
                lock.folder.parent.mkdir(exist_ok=True)
                while (answer := lock.take()) is Answer.TAKEN and time.monotonic() < end:
                    waited = True
                    time.sleep(0.05)
        try:
            yield waited
        finally:
            if answer is Answer.OURS:
                lock.let_go()

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        """Types, processor, and what tells functions of one name apart."""
        code = self._function.__code__
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        inside = sha256(code.co_code + dumps((code.co_firstlineno, cells))).hexdigest()
        return signature, codegen.magic_tuple(), inside

    def _name(self) -> str:
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        # File systems allow 255 characters, some of which the rest of the name takes.
        return name.replace("<", "").replace(">", "")[-150:]

    def _path(self, key: tuple[Any, ...]) -> Path:
        return folder() / f"{self._name()}.{sha256(str(key).encode()).hexdigest()[:20]}.nbc"


def _undamaged(path: Path) -> bytes | None:
    """Content of a cache file, if its digest fits."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data[DIGEST:] if sha256(data[DIGEST:]).digest() == data[:DIGEST] else None


class _Reader(pickle.Unpickler):
    """Reader of what every process can read."""

    def find_class(self, module: str, name: str) -> Any:
        """Class or function by its name; those that rebuild functions are refused."""
        if module.partition(".")[0] not in KNOWN or module == "numba.core.serialize":
            raise pickle.UnpicklingError(module)
        return super().find_class(module, name)


def _is_known(key: tuple[Any, ...]) -> bool:
    """Whether every process can read a key: types of others can change, and functions among them are objects of one."""
    try:
        _Reader(BytesIO(pickle.dumps(key))).load()
    except (pickle.PickleError, AttributeError, TypeError):
        return False
    return True
