"""All that is kept between calls is in the table of docs/developing.md, which says what it is kept by."""

import ast
import re
from collections.abc import Iterator

from tests import PACKAGE
from tests.test_architecture import MODULES, tree_of

DECORATORS = {"lru_cache", "cache", "remembered"}
EMPTY = (ast.Dict, ast.List, ast.Call)
PAGE = PACKAGE.parent / "docs" / "developing.md"


def caches() -> Iterator[str]:
    """Functions whose results are kept, containers of modules that begin empty, and properties of what may change.

    Those of `process` are of Python, numba and the machine.
    """
    for module, path in MODULES.items():
        if path.parent.name != "process" and "own_numba" not in path.parts:
            text, tree = path.read_text(encoding="utf-8"), tree_of(module)
            found = [*_containers(tree)]
            if any(
                name in text for name in DECORATORS
            ):  # also "cached_property"; others need no walk, which takes long
                found += [*_kept_results(tree), *_properties(tree)]
            yield from (f"{path.stem}.{name}" for name in found)


def _called(node: ast.AST) -> str:
    """Name of a decorator or of a function that is called."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _kept_results(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and DECORATORS & set(map(_called, node.decorator_list)):
            yield node.name
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and _called(node.func) in DECORATORS:
            yield ast.unparse(node.args[0])


def _containers(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, EMPTY):
            continue
        if ast.unparse(node.value) in ("{}", "[]", "set()"):
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _properties(tree: ast.Module) -> Iterator[str]:
    """Classes with cached properties that are neither frozen dataclasses nor parts of a problem, which are frozen."""
    for node in filter(lambda node: isinstance(node, ast.ClassDef), ast.walk(tree)):
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        kept = "cached_property" in {_called(each) for method in methods for each in method.decorator_list}
        frozen = any("frozen=True" in ast.unparse(each) for each in node.decorator_list)
        part = {"Part", "NamesFunctions"} & {ast.unparse(base) for base in node.bases}
        if kept and not frozen and not part:
            yield node.name


def test_the_table_has_all_that_is_kept():
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## What is kept between calls")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+\.\w+)`", section))
    found = set(caches())
    assert found - named == set(), (
        "say in docs/developing.md what these are kept by, and test that they do not go stale"
    )
    assert named - found == set(), "these are no more: remove them from docs/developing.md"
