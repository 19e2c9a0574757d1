"""Arrows between the rooms of the library: downwards, without circles, and into no family from outside of it."""

import ast
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

from tests import PACKAGE

FLOORS = (
    ("errors", "typing"),
    ("arguments",),
    ("process",),
    ("numerics",),
    ("ingredients",),
    ("networks",),
    ("problems",),
    ("results",),
    ("ensembles", "mckean_vlasov"),
    ("one_vector", "samples", "several_vectors"),
    ("comparison",),
    ("citation", "explanation", "fitting", "plotting", "sweep"),
    ("report",),
    ("methods",),
    ("families",),
    ("interactive", "testing"),
    ("alpha_contrastive", "contrastive", "hidden_manifold", "latent_tree", "update_rule"),
    ("__init__", "cli", "extend"),
    ("commands",),
    ("__main__",),
)
"""Rooms from the ground up. A room imports itself and floors below; rooms of one floor do not import each other."""

FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

MOST_LINES = 350

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of statements that hold statements."""


def name_of(path: Path) -> str:
    """The dotted name of a module within the package, "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str, at_start: bool = False) -> frozenset[str]:
    """Modules of the package that a module imports, anywhere in it or only when it is imported itself."""
    found = set()
    tree = tree_of(module)
    for node in _statements(tree, at_start):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "meanfield":
            origin = (node.module or "").partition(".")[2]
            inner = {f"{origin}.{alias.name}".lstrip(".") for alias in node.names}
            found |= {name if name in MODULES else origin for name in inner}
        elif isinstance(node, ast.Import):
            found |= {a.name.partition(".")[2] for a in node.names if a.name.partition(".")[0] == "meanfield"}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{module}: a relative import"
    return frozenset(found - {module})


def _statements(tree, at_start):
    """All statements, or those of an import: not bodies of functions, nor what type checkers alone read."""
    for node in chain.from_iterable(getattr(tree, block, ()) for block in BLOCKS):
        if at_start and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if at_start and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _statements(node, at_start)


def room_of(module: str) -> str:
    return module.partition(".")[0] or "__init__"


def family_of(module: str) -> str | None:
    rooms = module.split(".")
    return rooms[1] if rooms[0] == "families" and len(rooms) > 1 else None


def test_every_module_is_in_a_known_room():
    assert {module: room_of(module) for module in MODULES if room_of(module) not in FLOOR} == {}


def test_arrows_point_down():
    arrows = [(module, other) for module in MODULES for other in imports_of(module)]
    between = [(module, other) for module, other in arrows if room_of(module) != room_of(other)]
    assert [pair for pair in between if FLOOR[room_of(pair[1])] >= FLOOR[room_of(pair[0])]] == []


def test_nobody_outside_a_family_imports_it():
    arrows = [(module, other) for module in MODULES for other in imports_of(module)]
    assert [pair for pair in arrows if family_of(pair[1]) not in (None, family_of(pair[0]))] == []


def test_there_are_no_circles():
    state: dict[str, bool] = {}

    def visit(module, path):
        state[module] = True
        for other in sorted(imports_of(module, at_start=True) & MODULES.keys()):
            assert not state.get(other), f"circle: {' -> '.join([*path, module, other])}"
            if other not in state:
                visit(other, [*path, module])
        state[module] = False

    for module in MODULES:
        if module not in state:
            visit(module, [])


def test_modules_fit_in_a_head():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: lines for module, lines in lengths.items() if lines > MOST_LINES} == {}


def test_the_package_itself_holds_the_face_and_little_else():
    loose = {path.stem for path in PACKAGE.glob("*.py")}
    namespaces = {"alpha_contrastive", "contrastive", "hidden_manifold", "latent_tree", "update_rule"}
    assert loose <= namespaces | {
        "__init__",
        "methods",
        "errors",
        "arguments",
        "typing",
        "cli",
        "testing",
        "extend",
        "__main__",
    }


def test_the_walk_sees_imports():
    assert "errors" in imports_of("problems.file")
    assert any(other.startswith("families.contrastive") for other in imports_of("families.contrastive.family"))
    assert all(FLOOR[low] <= FLOOR[high] for low, high in pairwise(sorted(FLOOR, key=FLOOR.__getitem__)))
