"""Files of modules of users, which may be edited while a process runs: what is imported is what they say.

Python imports a module once, and takes code that it compiled before where a file has the same size and the time stamp
of the same second. Both would keep what a user has changed from being seen, without a word.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from meanfield.ingredients.fingerprints import Fingerprint, fingerprint, fingerprint_of, fingerprint_of_code
from meanfield.ingredients.user_modules import is_users


class Source(NamedTuple):
    """Source of a module, as far as it counts."""

    code: CodeType
    tree: ast.Module
    fingerprint: str
    """Of the code without docstrings: comments do not change it."""


_IMPORTED: dict[str, tuple[ModuleSpec | None, str]] = {}
"""Fingerprints of modules as they were imported, and their specifications, which are others after a reload."""


def forget_changed(module: str) -> None:
    """Forget a user's module, and the user's modules that it imports, where a file says something else now.

    With a module those go that import it. One that others imported, and that differs from its file, is left alone with
    a warning: it may have been changed in memory on purpose.
    """
    names = list(_modules_of(module))
    changed = {name for name in names if _is_ours(name) and _IMPORTED[name][1] != _said_by(name)}
    for name in [name for name in names if changed.intersection(_modules_of(name))]:
        package, _, last = name.rpartition(".")
        forgotten, holder = sys.modules.pop(name, None), sys.modules.get(package)
        if holder is not None and getattr(holder, last, None) is forgotten:
            delattr(holder, last)  # where `from package import last` looks first
    for name in names:
        if name not in sys.modules:
            _drop_stale_cache(name)
        elif not _is_ours(name):
            _warn_of_edits(sys.modules[name])


def note_imported(module: str) -> None:
    """Keep what a user's module, and those that it imports, were made of."""
    for name in _modules_of(module):
        if name in sys.modules and not _is_ours(name):
            _IMPORTED[name] = sys.modules[name].__spec__, _said_by(name)


def fingerprint_of_module(module: str, what: str) -> Fingerprint:
    """Fingerprint of all code of a module, and of the user's modules that it imports; of a package, its version."""
    note_imported(module)
    codes = {name: _IMPORTED[name][1] for name in _modules_of(module) if name in _IMPORTED}
    return fingerprint_of([codes, None if codes else sys.modules.get(module)], what)


def tops_of(module: str) -> set[str]:
    """Names of a user's module or package, and of those that it imports."""
    return {name.partition(".")[0] for name in _modules_of(module)}


def place_of(top: str) -> Path | None:
    """Folder in which an imported module or package stands."""
    found = sys.modules.get(top)
    file = getattr(found, "__file__", None)
    folders = list(getattr(found, "__path__", ()))
    where = Path(folders[0]) if folders else None if file is None else Path(file)
    return None if where is None else where.parent


def _is_ours(name: str) -> bool:
    """Whether a module is as we saw it last: neither new nor reloaded by somebody else."""
    found = sys.modules.get(name)
    return found is not None and name in _IMPORTED and found.__spec__ is _IMPORTED[name][0]


def _modules_of(module: str) -> Iterator[str]:
    """Names of a user's module, and of the user's modules that it imports, after the packages that hold them."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        parent = name.rpartition(".")[0]
        if parent and parent not in seen:
            waiting += [name, parent]
            continue
        if name in seen:
            continue
        seen.add(name)
        source = _source_of(name)
        if source is not None:
            yield name
            package = name if getattr(_specification(name), "submodule_search_locations", None) else parent
            waiting += [other for other in _imports(source.tree, package) if other not in seen]


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Names of modules that a module imports, and of what it takes from them, which may be modules as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            beginning = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*beginning, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _source_of(module: str) -> Source | None:
    """Source of a user's module, or of a folder of modules; none for all others."""
    top = module.partition(".")[0]
    if top == "__main__" or not is_users(top):
        return None
    spec = _specification(module)
    folders = list(getattr(spec, "submodule_search_locations", None) or ())
    if spec is not None and spec.origin is None and folders and is_users(module, folders[0]):
        return _read(b"", folders[0])
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or not is_users(module, spec.origin):
        return None
    try:
        return _read(spec.loader.get_data(str(spec.origin)), str(spec.origin))
    except OSError:
        return None


def _said_by(module: str) -> str:
    """Fingerprint of the source of a module; empty if there is none any more."""
    source = _source_of(module)
    return "" if source is None else source.fingerprint


def _specification(module: str) -> ModuleSpec | None:
    """Specification of a module, imported or not; none where there is no such module. Nothing is imported here."""
    parent = module.rpartition(".")[0]
    if module in sys.modules:
        return getattr(sys.modules[module], "__spec__", None)
    if not parent:
        return PathFinder.find_spec(module)
    folders = getattr(_specification(parent), "submodule_search_locations", None)
    return None if folders is None else PathFinder.find_spec(module, folders)


@lru_cache(maxsize=256)
def _read(source: bytes, path: str) -> Source:
    try:
        code, tree = compile(source, path, "exec", optimize=2, dont_inherit=True), ast.parse(source)
    except (SyntaxError, ValueError):  # its import will tell
        return Source(compile("", path, "exec"), ast.Module([], []), hashlib.sha256(source).hexdigest())
    return Source(code, tree, fingerprint_of_code(code))


def _drop_stale_cache(module: str) -> None:
    """Remove Python's own compiled code of a module if it is not that of its file."""
    spec = _specification(module)
    if spec is None or spec.cached is None or not os.path.isfile(spec.cached):
        return
    loader: Any = spec.loader
    try:
        if loader.get_code(module) != loader.source_to_code(loader.get_data(spec.origin), spec.origin):
            os.unlink(spec.cached)
    except (OSError, SyntaxError, ValueError, EOFError):
        return


def _warn_of_edits(module: ModuleType) -> None:
    """Warn where a module that somebody else imported is not what its file says."""
    source = _source_of(module.__name__)
    other = sorted(_differences(module, source.tree)) if source else []
    if other:
        warnings.warn(
            f"{module.__file__} and the module in memory differ in {', '.join(other)}: one was changed after the "
            f"import. What is in memory is taken; importlib.reload({module.__name__}) or a new process takes the file",
            stacklevel=2,
        )


def _differences(module: ModuleType, tree: ast.Module) -> Iterator[str]:
    """Names of functions and of constants of a module that its file has otherwise."""
    whole = compile(tree, "", "exec", dont_inherit=True)
    codes = {code.co_name: code for code in whole.co_consts if isinstance(code, CodeType)}
    assigned = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and defined.count(node.name) == 1 and not node.decorator_list:
            held = getattr(vars(module).get(node.name), "__code__", None)
            if held is None or fingerprint_of_code(held) != fingerprint_of_code(codes[node.name]):
                yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            try:
                written = ast.literal_eval(node.value)
            except ValueError:
                continue
            if assigned.count(name) == 1 and fingerprint(written) != fingerprint(vars(module).get(name)):
                yield name
