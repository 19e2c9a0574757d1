"""Lists of compiled code on disk that every process can read, whatever it can import.

numba lists the code of a function, for all types of arguments that it was compiled for, in one file, in which types are
pickled. A type may belong to the module of a user: the coefficients of a family of one's own, or a function. Where that
module cannot be imported the list could not be read, and nothing that calls the function could run. So code for types
of other packages is listed in files of its own, one for all types of the same modules; and a list that cannot be read,
because what it names is not there any more, counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from numba.core import caching, types

OURS = ("builtins", "meanfield", "numba", "numpy")
"""Packages that every process can import."""


def keep_foreign_types_apart() -> None:
    """Change where numba lists compiled code, in this process."""
    lists: Any = caching.IndexDataCacheFile
    load, save, read = lists.load, lists.save, lists._load_index

    def load_from_list(self: Any, key: Any) -> Any:
        return load(_list_for(self, key), key)

    def save_to_list(self: Any, key: Any, data: Any) -> None:
        save(_list_for(self, key), key, data)

    def read_if_possible(self: Any) -> Any:
        try:
            return read(self)
        except (ImportError, AttributeError):  # of modules and types that were renamed or removed
            return {}

    lists.load, lists.save, lists._load_index = load_from_list, save_to_list, read_if_possible


def _list_for(shared: Any, key: Any) -> Any:
    """The list of a function, or that for types of other packages, by the types at the start of the key."""
    kinds = getattr(key[0], "args", key[0])
    foreign = {module for kind in kinds for module in _modules(kind) if module.partition(".")[0] not in OURS}
    if not foreign:
        return shared
    name = sha256(" ".join(sorted(foreign)).encode()).hexdigest()[:16]
    base = shared._index_name.removesuffix(".nbi")
    return type(shared)(shared._cache_path, f"{base}.{name}", shared._source_stamp)


def _modules(kind: Any) -> Iterator[str]:
    """Modules of the classes and functions that a type is made of."""
    if isinstance(kind, types.BaseNamedTuple):
        yield kind.instance_class.__module__  # type: ignore[attr-defined]
    if isinstance(kind, types.Dispatcher):
        yield kind.dispatcher.py_func.__module__ or ""  # `exec` defines functions of no module
    if isinstance(kind, types.BaseTuple):
        for part in kind.types:  # type: ignore[attr-defined]
            yield from _modules(part)
