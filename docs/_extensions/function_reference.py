"""Activations, priors and penalties that a problem file can name, with their formulas as the code has them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from pieces import code, plain, table

from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.penalties import PENALTIES
from meanfield.ingredients.priors import PRIORS


def page() -> str:
    """All tables."""
    sigma = functions(ACTIVATIONS, ["value"])
    phi = functions(PRIORS, ["unit_force", "potential"])
    psi = functions(PENALTIES, ["value", "slope"])
    return "\n\n".join(
        [
            "(activations)=\n## Activations\n\nWhat `activation` in `[model]` can be, besides a function of your own.",
            table(["name", "sigma(x)", "kinks", "parameters"], sigma),
            "(priors)=\n## Priors\n\nWhat `name` in `[prior]` can be, besides a function of your own.",
            table(["name", "phi(w)", "Phi(w)", "kinks", "parameters"], phi),
            "(penalties)=\n## Penalties\n\nWhat `penalty` in `[decorrelation]` can be, besides a function of your own.",
            table(["name", "psi(x)", "psi'(x)", "kinks", "parameters"], psi),
        ]
    )


def functions(registered: Mapping[str, Any], formulas: list[str]) -> list[list[str]]:
    """A row for every entry; one that takes parameters is shown with their defaults."""
    rows = []
    for name, entry in registered.items():
        takes = inspect.isfunction(entry)
        made = entry() if takes else entry
        said = [formula(getattr(made, part)) for part in formulas]
        if takes:
            said[0] = f"{plain(entry.__doc__ or '')} {said[0]}"
        parameters = inspect.signature(entry).parameters.values() if takes else ()
        kinks = ", ".join(f"{kink:g}" for kink in made.kinks)
        rows.append([code(name), *said, kinks, ", ".join(code(parameter) for parameter in map(_default, parameters))])
    return rows


def formula(function: Callable[[float], float]) -> str:
    """What a function of one number returns, as its source says it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    *helpers, last = definition.body
    assert isinstance(last, ast.Return)
    assert last.value is not None
    return " with ".join(code(ast.unparse(part).replace("math.", "")) for part in (last.value, *helpers))


def _default(parameter: inspect.Parameter) -> str:
    return f"{parameter.name} = {parameter.default}"
