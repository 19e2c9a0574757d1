"""Evaluation of the equations that problems print, by SymPy, line by line."""

from itertools import product

import numpy as np
import sympy as sp

from meanfield.explanation.equations import Equation, equations_of


def section(problem, title, symbols=False):
    """Lines of the section whose title begins so."""
    found = [each for each in equations_of(problem, symbols).sections if each.title.startswith(title)]
    assert len(found) == 1, title
    return found[0].lines


def lines_of(lines, *names):
    """Equations of some left-hand sides, by their names in LaTeX or SymPy, in their order."""
    equations = [line for line in lines if isinstance(line, Equation)]
    return [each for each in equations if str(each.left) in names or type(each.left).__name__ in names]


def evaluate(lines, values, functions=None, counts=None):
    """Values of all left-hand sides, in their order, by name; those of one name are in a list.

    Parameters
    ----------
    values : dict
        Of symbols, by name; arrays have samples along their last axes, and entries that indices count from 1.
    functions : dict
        What names of functions stand for, such as averages over samples; those of the lines are added.
    counts : dict
        Number of values of each index; left-hand sides with indices are whole arrays, and values of later lines.
    """
    known, found = dict(values), {}
    functions = {} if functions is None else functions
    functions.setdefault("dot", dot)
    for line in lines:
        if not isinstance(line, Equation) or not isinstance(line.right, sp.Expr):
            continue
        if isinstance(line.left, sp.Function):
            functions[type(line.left).__name__] = sp.lambdify(line.left.args, line.right, "scipy")
            continue
        asked = sorted({*line.right.free_symbols, *line.right.atoms(sp.IndexedBase)}, key=str)
        indices = {each for total in line.right.atoms(sp.Sum) for each in total.bound_symbols}
        bases = {each.label for each in line.right.atoms(sp.IndexedBase)}
        asked = [each for each in asked if each not in indices | bases and not isinstance(each, sp.Indexed)]
        matrices = [each for each in asked if isinstance(each, sp.MatrixSymbol)]
        plain = {each: sp.MatrixSymbol(f"X{i}", *each.shape) for i, each in enumerate(matrices)}  # names for Python
        given = [plain.get(each, each) for each in asked]
        call = sp.lambdify(given, line.right.xreplace(plain), [functions, "scipy"])
        name, places = str(line.left), ()
        if counts and isinstance(line.left, sp.Indexed) and not line.left.atoms(sp.Integer):
            name, places = str(line.left.base), [str(each) for each in line.left.indices]
        values = []
        for place in product(*(range(1, counts[each] + 1) for each in places)):
            at = known | dict(zip(places, place, strict=True))
            values.append(call(*(at[str(each)] for each in asked)))
        value = np.reshape(values, [counts[each] for each in places] + [*np.shape(values[0])]) if places else values[0]
        found.setdefault(name, []).append(value)
        known[name] = counted(value, places)
    return found


def counted(array, axes):
    """An array whose first axes, as many as given, count from 1."""
    return np.pad(array, [(1, 0)] * len(axes) + [(0, 0)] * (np.ndim(array) - len(axes))) if len(axes) else array


def dot(a, b):
    """Scalar products of vectors along the first axis, of each sample where both have samples."""
    return np.einsum("i...,i...->...", a, b) if np.shape(a) == np.shape(b) else np.tensordot(a, b, axes=(0, 0))


class Stack(np.ndarray):
    """Matrices along the first axis, of which SymPy takes one; numbers are matrices with one entry."""

    def dot(self, other):
        return self * other if np.ndim(other) == 0 or other.shape[-2:] == (1, 1) else self @ other

    @property
    def T(self):
        return self.swapaxes(-1, -2)


def stacks(values):
    """Matrices by name, each of them a stack."""
    return {name: np.asarray(value).view(Stack) for name, value in values.items()}


def unsaid(problem, symbols=False):
    """Keys of numbers of a problem, besides those of methods and times, that have no row in the table of symbols."""
    rows = [key for _, key, _ in equations_of(problem, symbols).symbols]
    skipped = {"title", "family", "time", "phases", *problem.settings}
    given = problem.model_dump(mode="json", exclude_defaults=True).items()
    keys = [key for name, value in given if name not in skipped for key in _numbers(name, value)]
    return [key for key in keys if not any(key == row or key.startswith((f"{row}.", f"{row}[")) for row in rows)]


def _numbers(path, value):
    """Paths of the numbers in a table."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _numbers(f"{path}.{name}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _numbers(f"{path}[{number}]", each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path
