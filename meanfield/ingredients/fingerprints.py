"""Fingerprints of functions, data and files: equal where the same numbers follow from them, in any process.

A function is what it does: its instructions and constants, its defaults, the values that it closes over, and what it
names, as far as that stands in modules of users. For what packages hold, their versions stand. Comments, docstrings,
line numbers and the place of a file do not count.
"""

from __future__ import annotations

import builtins
import hashlib
import platform
import sys
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypedDict

import numpy as np

from meanfield.ingredients.user_modules import homes_of, is_followed, is_users, version_of
from meanfield.numerics.compiled.code_objects import closed_over, contents, globals_in, imports_in, names_in
from meanfield.process.checksum import digest_of_file


class Fingerprint(TypedDict):
    """Fingerprint of a function or file that a problem names; all values are texts, for JSON."""

    what: str
    """Path of a file, or address "module:name"."""
    sha256: str
    """Fingerprint, 64 hexadecimal digits; empty where it is unknown, because a result alone names it."""
    version: str
    """Python and the packages whose versions are part of it, such as "python 3.11, numpy 2.2.0"; empty for files."""


def fingerprint(found: Any) -> str:
    """SHA-256, in hexadecimal digits, of what decides the numbers that follow from an object.

    Parameters
    ----------
    found : object
        A function, compiled by numba or not, a class, an array, a Dataset, or any value made of such.

    Returns
    -------
    str
        64 digits, the same in every process with the same versions of Python and packages.
    """
    return _walked(found)[0]


def fingerprint_of(found: Any, what: str) -> Fingerprint:
    """Fingerprint of an object at the address `what`, with the versions that are part of it."""
    sha256, versions = _walked(found)
    return Fingerprint(what=what, sha256=sha256, version=", ".join(f"{name} {versions[name]}" for name in versions))


def fingerprint_of_file(path: str | Path) -> Fingerprint:
    """Fingerprint of the bytes of a file; of one that cannot be read it is unknown.

    See Also
    --------
    meanfield.process.checksum.digest_of_file
    """
    try:
        return Fingerprint(what=str(path), sha256=digest_of_file(path), version="")
    except OSError:
        return unknown(str(path))


def unknown(what: str) -> Fingerprint:
    """Fingerprint of something that is not looked at."""
    return Fingerprint(what=what, sha256="", version="")


def fingerprint_of_code(code: CodeType) -> str:
    """Fingerprint of code alone, without what it names."""
    walk = _Walk(frozenset())
    walk.code(code)
    return walk.digest()


def _walked(found: Any) -> tuple[str, dict[str, str]]:
    walk = _Walk(homes_of(found))
    walk.add(found)
    for name, version in sorted(walk.versions.items()):
        walk.text(name, version)
    return walk.digest(), dict(sorted(walk.versions.items(), key=lambda pair: (pair[0] != "python", pair[0])))


class _Walk:
    """Walk through an object and what it is made of, in an order that depends on nothing else."""

    def __init__(self, homes: frozenset[str]) -> None:
        self._homes, self._hash = homes, hashlib.sha256()
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        self._path: list[int | tuple[str, str]] = []
        self.versions: dict[str, str] = {}

    def digest(self) -> str:
        return self._hash.hexdigest()

    def text(self, *words: str) -> None:
        for word in words:
            self._bytes(word.encode("utf-8", "surrogatepass"))

    def _bytes(self, data: bytes | memoryview) -> None:
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    def add(self, value: Any) -> None:
        """Add a value of any kind."""
        if value is None or type(value) in (bool, int, float, complex, str, type(...)):
            self.text(type(value).__name__, str(value) if isinstance(value, str) else repr(value))
        elif isinstance(value, bytes | bytearray):
            self.text("bytes")
            self._bytes(bytes(value))
        elif isinstance(value, np.ndarray | np.generic):
            self._array(value)
        elif isinstance(value, ModuleType | type | FunctionType) or hasattr(value, "py_func"):
            self._once(value)
        elif id(value) in self._path:  # a list that holds itself
            self.text("circle", str(len(self._path) - self._path.index(id(value))))
        else:
            self._path.append(id(value))
            self._made_of(value)
            self._path.pop()

    def _once(self, value: Any) -> None:
        """Add what may be named many times, and by itself, such as a function; later only which it was."""
        if id(value) in self._numbers:
            self.text("again", str(self._numbers[id(value)]))
            return
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)  # or its identity could become that of another
        if isinstance(value, ModuleType):
            self._module(value, sorted(name for name in vars(value) if not name.startswith("__")))
        elif not is_followed(value, self._homes):
            self._of_package(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        else:
            options = getattr(value, "targetoptions", {})  # with which numba compiles it
            self.text("compiled", *sorted(f"{name}={option}" for name, option in options.items()))
            self.add(value.py_func)

    def _array(self, value: Any) -> None:
        """Values of an array, or of one of its numbers."""
        value = np.asarray(value)
        self.text("array", repr(np.lib.format.dtype_to_descr(value.dtype)), repr(value.shape))
        if value.dtype.hasobject:
            self.add(value.tolist())
        else:
            self._bytes(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data if value.size else b"")

    def _made_of(self, value: Any) -> None:
        """Values that are made of others."""
        if isinstance(value, partial):
            self._parts("partial", value.func, value.args, value.keywords)
        elif isinstance(value, MethodType):
            self._parts("method", value.__func__, value.__self__)
        elif isinstance(value, property | staticmethod | classmethod | cached_property):
            inner = [getattr(value, name, None) for name in ("fget", "fset", "fdel", "__func__", "func")]
            self._parts(type(value).__name__, *inner)
        elif isinstance(value, CodeType):
            self.code(value)
        elif isinstance(value, set | frozenset):
            self.text("set", *sorted(map(fingerprint, value)))
        elif type(value).__module__.partition(".")[0] == "xarray":
            self._labelled(value)
        elif isinstance(value, Mapping):
            keys = sorted(value, key=lambda key: key if isinstance(key, str) else fingerprint(key))
            self._parts(type(value).__qualname__, *(part for key in keys for part in (key, value[key])))
        elif isinstance(value, tuple | list):
            self._parts(type(value).__qualname__, *value)
        elif isinstance(value, Path):
            self.text("path", str(value))
        else:
            self._object(value)

    def _parts(self, kind: str, *parts: Any) -> None:
        self.text(kind, str(len(parts)))
        for part in parts:
            self.add(part)

    def _labelled(self, value: Any) -> None:
        """Dataset, array or variable of xarray: values with their names, dims and attributes."""
        inner = [value.attrs]
        if hasattr(value, "data_vars"):
            inner += [{str(name): value.variables[name] for name in value.variables}, sorted(map(str, value.coords))]
        else:
            inner += [list(map(str, value.dims)), value.values]
            inner += [{str(name): value.coords[name].variable for name in getattr(value, "coords", ())}]
        self._parts("labelled", *inner)

    def _object(self, value: Any) -> None:
        """An object of any class, by the class and its state."""
        if isinstance(value, BuiltinFunctionType | np.ufunc) or hasattr(value, "__wrapped__"):
            self._wrapping(value)
            return
        self.add(type(value))
        state = getattr(value, "__dict__", None)
        if state is not None:
            derived = {name for name in state if isinstance(getattr(type(value), name, None), cached_property)}
            self.add({name: part for name, part in state.items() if name not in derived})
            return
        try:
            made = value.__reduce_ex__(2)
        except Exception:  # a lock, a file: nothing but what it is
            made = ()
        self.add(made[1:3] if isinstance(made, tuple) else made)

    def _wrapping(self, value: Any) -> None:
        """A function that is none of Python: one of C, or one that wraps another."""
        if hasattr(value, "__wrapped__"):
            self._parts(type(value).__qualname__, value.__wrapped__)
            return
        self._of_package(value)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            self.add(owner)

    def _of_package(self, value: Any) -> None:
        """Fingerprint of code of a package, by its name and version, or of a user's compiled C, by its file."""
        module = str(getattr(value, "__module__", None) or type(value).__module__)
        self.text("of package", module, str(getattr(value, "__qualname__", getattr(value, "__name__", ""))))
        self._package(module)

    def _package(self, module: str) -> None:
        """The version of a package, or the file of a user's module that is none of Python."""
        file = getattr(sys.modules.get(module), "__file__", None)
        if not is_users(module):
            self.versions |= version_of(module)
        elif file is not None and not file.endswith((".py", ".ipynb")):
            self.text(fingerprint_of_file(file)["sha256"])

    def _module(self, module: ModuleType, names: list[str]) -> None:
        """A module, as far as it is a user's: what stands in it under some names."""
        self.text("module", module.__name__)
        self._package(module.__name__)
        if is_users(module.__name__):
            self._parts("names", *(part for name in names for part in (name, getattr(module, name))))

    def _class(self, kind: type) -> None:
        self._parts("class", *kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            if not name.startswith("__") or isinstance(value, FunctionType | classmethod | staticmethod | property):
                self.text(name)
                self.add(value)

    def _function(self, function: FunctionType) -> None:
        """A function of Python with everything that it does its work with."""
        self.versions["python"] = ".".join(platform.python_version_tuple()[:2])
        self.versions |= version_of(str(function.__module__))
        self.text("function")
        self.code(function.__code__)
        self._parts("given", function.__defaults__, function.__kwdefaults__, vars(function), closed_over(function))
        attributes = sorted(names_in(function.__code__))
        for name in sorted(globals_in(function.__code__)):
            self.text(name)
            value = function.__globals__.get(name, _MISSING)
            if isinstance(value, ModuleType):
                self._part_of(value, attributes)
            elif value is not _MISSING or not hasattr(builtins, name):
                self.add(None if value is _MISSING else value)
        for name in sorted(imports_in(function.__code__)):
            if name in sys.modules:
                self._part_of(sys.modules[name], attributes)

    def _part_of(self, module: ModuleType, attributes: list[str]) -> None:
        """A module, as far as a function takes attributes of it, or of modules in it."""
        inside = "module", module.__name__
        if inside in self._path:
            return
        self._path.append(inside)
        self.text("module", module.__name__)
        self._package(module.__name__)
        for name in attributes if is_users(module.__name__) else ():
            value = getattr(module, name, _MISSING)
            if isinstance(value, ModuleType):
                self._part_of(value, attributes)
            elif value is not _MISSING:
                self.text(name)
                self.add(value)
        self._path.pop()

    def code(self, code: CodeType) -> None:
        """Instructions and constants of code."""
        self._parts("code", *contents(code))


_MISSING = object()
