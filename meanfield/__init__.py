"""Training dynamics in the high-dimensional limit, proved against SGD.

One line leads to a picture, `meanfield.quick()`. A problem goes into a method, which returns an xarray Dataset:

>>> import meanfield
>>> problem = meanfield.load_problem("data/problems/sparse_prior.toml")
>>> density = meanfield.solve_density(problem)
>>> sgd = meanfield.simulate_sgd(problem)
>>> report = meanfield.compare(density, sgd)

The same verbs take problems of every family; what only one family has stands in its namespace, such as
`meanfield.contrastive`. Public names are listed in `__init__.pyi`, and each is imported when it is first used.
"""

import warnings
from importlib import import_module

from meanfield.process.after_import import import_after
from meanfield.process.public_names import homes_in_stub, importer

__version__ = "0.1.0"

NAMESPACES = ("alpha_contrastive", "contrastive", "hidden_manifold", "latent_tree", "update_rule")
"""Modules with what belongs to a single family of problems."""

_VERBS = (  # that everybody needs
    "compare",
    "explain",
    "load",
    "load_problem",
    "quick",
    "run_sweep",
    "save",
    "simulate_sgd",
    "solve",
    "solve_density",
    "solve_order_parameters",
    "with_value",
)

_HOMES = homes_in_stub(__file__)
_MOVED = {name: home for name, home in _HOMES.items() if home.removeprefix("meanfield.") in NAMESPACES}
_public = importer(__name__, _HOMES)

import_after("xarray", "meanfield.results.accessor")

__all__ = sorted(_HOMES.keys() - _MOVED.keys())


def __dir__() -> list[str]:
    """Names that everybody needs; `__all__` has those of functions of one's own, long runs and tables, too."""
    return sorted({*_VERBS, *NAMESPACES, "InputError", "Problem", "extend", "plotting"})


def __getattr__(name: str) -> object:
    """Import a public name; one that has moved to the namespace of its family warns once, with the new one."""
    if name in _MOVED:
        new = f"{_MOVED[name]}.{name}"
        warnings.warn(f"meanfield.{name} is deprecated; use {new}", DeprecationWarning, stacklevel=2)
        found = globals()[name] = getattr(import_module(_MOVED[name]), name)
        return found
    return _public(name)
