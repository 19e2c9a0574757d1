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

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
