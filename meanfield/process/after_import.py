"""A module of another package that is not imported yet: what is to follow once it is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def import_after(name: str, follower: str) -> None:
    """Import a module of ours as soon as a package has been imported, at once if it has been.

    Python's list of finders has one more until then. Nothing of the package is changed: while its code runs, and after,
    its module has the loader that it has otherwise.

    Parameters
    ----------
    name, follower : str
        Names of the package and of the module.
    """
    if name in sys.modules:
        importlib.import_module(follower)
    else:
        sys.meta_path.insert(0, _Finder(name, follower))


class _Finder(MetaPathFinder):
    """Finder of one package, by all others, that goes when it is asked for it."""

    def __init__(self, name: str, follower: str) -> None:
        self.name, self.follower = name, follower

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.follower)
        return spec


class _Loader(Loader):
    """Loader of a package that leaves everything to its own one, and then imports what follows."""

    def __init__(self, own: Loader, follower: str) -> None:
        self.own, self.follower = own, follower

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.own
        self.own.exec_module(module)
        importlib.import_module(self.follower)
