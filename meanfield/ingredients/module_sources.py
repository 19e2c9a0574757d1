"""Files of modules of users, which may be edited while a process runs: what is imported is what they say.

Python imports a module once, and takes code that it compiled before where a file has the same size and the time stamp
of the same second. Both would keep what a user has changed from being seen, without a word.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from meanfield.ingredients.fingerprints import Fingerprint, fingerprint, fingerprint_of, fingerprint_of_code
from meanfield.ingredients.user_modules import is_users


class Source(NamedTuple):
    """Source of a module, as far as it counts."""

    fingerprint: str
    """Fingerprint of the code without docstrings: comments do not change it."""
    imports: tuple[str, ...]
    """Names of modules that it imports, and of what it takes from them, which may be modules as well."""


_IMPORTED: dict[str, tuple[ModuleSpec | None, str]] = {}
"""Fingerprints of modules as they were imported, and their specifications, which are others after a reload."""

_BESIDE: dict[str, Path] = {}
"""Folder of the problem file from which each module of a user was imported, those that it imports included."""


def import_current(module: str, folder: Path | None = None) -> ModuleType:
    """Import a user's module as its file says now, and so the user's modules that it imports.

    It is looked for on the Python path, then in the working directory, and then in `folder`, that of a problem file. A
    module that others imported, and that differs from its file, is left alone with a warning: it may have been changed
    in memory on purpose.
    """
    folders = [Path.cwd(), *([] if folder is None else [folder.resolve()])]
    if folder is not None:
        _forget_others(folders[-1])
    with _on_path(folders):
        _forget_changed(module)
        found = importlib.import_module(module)
        _note_imported(module)
    for top in {name.partition(".")[0] for name in _modules_of(module)}:
        place = _place_of(top)
        if place in folders:
            _BESIDE[top] = place
    return found


def _forget_others(folder: Path) -> None:
    """Forget modules that came from beside another problem file, and are beside this one, too."""
    for top, known in _BESIDE.items():
        beside = (folder / f"{top}.py").exists() or (folder / top).is_dir()
        if beside and known != folder and _place_of(top) == known:
            for name in [name for name in sys.modules if name.partition(".")[0] == top]:
                del sys.modules[name]
            importlib.invalidate_caches()


def _forget_changed(module: str) -> None:
    """Forget a user's module, and those that it imports, where a file says something else now, or that of an import."""
    sources = _modules_of(module)
    waiting = [name for name in sources if _is_ours(name) and _IMPORTED[name][1] != sources[name].fingerprint]
    changed = set(waiting)
    while waiting:
        last = waiting.pop()
        importers = {name for name in sources if last == name.rpartition(".")[0] or last in sources[name].imports}
        waiting += importers - changed
        changed |= importers
    for name in changed:
        package, _, last = name.rpartition(".")
        forgotten, holder = sys.modules.pop(name, None), sys.modules.get(package)
        if holder is not None and getattr(holder, last, None) is forgotten:
            delattr(holder, last)  # where `from package import last` looks first
    for name in sources:
        if name not in sys.modules:
            _drop_stale_cache(name)
        elif not _is_ours(name):
            _warn_of_edits(sys.modules[name])


def _note_imported(module: str) -> None:
    """Keep what a user's module, and those that it imports, were made of."""
    for name, source in _modules_of(module).items():
        if name in sys.modules and not _is_ours(name):
            _IMPORTED[name] = sys.modules[name].__spec__, source.fingerprint


@contextmanager
def _on_path(folders: Iterable[Path]) -> Iterator[None]:
    """Context in which imports also search `folders`, after everything else."""
    before = list(sys.path)
    sys.path += [str(folder) for folder in folders]
    try:
        yield
    finally:
        sys.path[:] = before


def fingerprint_of_module(module: str, what: str) -> Fingerprint:
    """Fingerprint of all code of a module, and of the user's modules that it imports; of a package, its version."""
    _note_imported(module)
    codes = {name: _IMPORTED[name][1] for name in _modules_of(module) if name in _IMPORTED}
    return fingerprint_of([codes, None if codes else sys.modules.get(module)], what)


def _place_of(top: str) -> Path | None:
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


def _modules_of(module: str) -> dict[str, Source]:
    """Sources of a user's module, and of the user's modules that it imports, after the packages that hold them."""
    found: dict[str, Source] = {}
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
        file = _file_of(name)
        if file is not None:
            package = name if getattr(_specification(name), "submodule_search_locations", None) else parent
            found[name] = _read(*file, package)
            waiting += [other for other in found[name].imports if other not in seen]
    return found


def _file_of(module: str) -> tuple[bytes, str] | None:
    """Bytes and path of the file of a user's module, or of a folder of modules; none for all others."""
    top = module.partition(".")[0]
    if top == "__main__" or not is_users(top):
        return None
    spec = _specification(module)
    folders = list(getattr(spec, "submodule_search_locations", None) or ())
    if spec is not None and spec.origin is None and folders and is_users(module, folders[0]):
        return b"", folders[0]
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or not is_users(module, spec.origin):
        return None
    try:
        return spec.loader.get_data(str(spec.origin)), str(spec.origin)
    except OSError:
        return None


def _specification(module: str) -> ModuleSpec | None:
    """Specification of a module, imported or not; none where there is no such module. Nothing is imported here."""
    parent = module.rpartition(".")[0]
    if module in sys.modules:
        return getattr(sys.modules[module], "__spec__", None)
    if not parent:
        return PathFinder.find_spec(module)
    folders = getattr(_specification(parent), "submodule_search_locations", None)
    return None if folders is None else PathFinder.find_spec(module, folders)


@lru_cache(maxsize=4096)
def _read(source: bytes, path: str, package: str) -> Source:
    """Source from the bytes of a file; imports that are relative begin in a package."""
    try:
        code, tree = compile(source, path, "exec", optimize=2, dont_inherit=True), ast.parse(source)
    except (SyntaxError, ValueError):  # its import will tell
        return Source(hashlib.sha256(source).hexdigest(), ())
    return Source(fingerprint_of_code(code), tuple(dict.fromkeys(_imports(tree, package))))


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            beginning = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*beginning, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


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
    file = _file_of(module.__name__)
    other = sorted(_differences(module, file[0])) if file else []
    if other:
        warnings.warn(
            f"{module.__file__} and the module in memory differ in {', '.join(other)}: one was changed after the "
            f"import. What is in memory is taken; importlib.reload({module.__name__}) or a new process takes the file",
            stacklevel=2,
        )


def _differences(module: ModuleType, source: bytes) -> Iterator[str]:
    """Names of functions and of constants of a module that its file has otherwise."""
    try:
        tree = ast.parse(source)
        whole = compile(tree, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return
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
