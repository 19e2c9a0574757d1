"""Evaluation of the equations that problems print, by SymPy, line by line."""

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


def evaluate(lines, values, functions=None):
    """Values of all left-hand sides, in their order, by name; those of one name are in a list.

    Parameters
    ----------
    values : dict
        Of symbols, by name; arrays have samples along their last axis.
    functions : dict
        What names of functions stand for, such as averages over samples; those of the lines are added.
    """
    known, found = dict(values), {}
    functions = {} if functions is None else functions
    functions["dot"] = lambda a, b: np.tensordot(a, b, axes=(0, 0))
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
        call = sp.lambdify(asked, line.right, [functions, "scipy"])
        name = str(line.left)
        known[name] = call(*(known[str(each)] for each in asked))
        found.setdefault(name, []).append(known[name])
    return found
