"""Training dynamics in the high-dimensional limit, proved against SGD.

A problem goes into a method, which returns an xarray Dataset:

>>> import meanfield
>>> problem = meanfield.load_problem("data/problems/sparse_prior.toml")
>>> density = meanfield.solve_density(problem)
>>> sgd = meanfield.simulate_sgd(problem)
>>> report = meanfield.compare(density, sgd)

Public names are listed in `__init__.pyi`; each is imported when it is first used, because numba, scipy and xarray take
seconds that `--help` and Ctrl-C should not wait for.
"""

from types import FunctionType

import lazy_loader

from meanfield.process.floating_point import with_own_errstate
from meanfield.process.numba_settings import check_numba_settings

__version__ = "0.1.0"

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name, unless the compiled loops that most of them need cannot run."""
    if name in __all__:
        check_numba_settings()
    found = _public(name)
    if isinstance(found, FunctionType):
        found = globals()[name] = with_own_errstate(found, __name__)
    return found
