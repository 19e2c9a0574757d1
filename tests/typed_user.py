"""What a user's type checker sees of the installed package; `make test-dist` runs mypy --strict on it, nobody runs it.

Were types missing, everything would be `Any`, and mypy would call the comments on the last lines unused.
"""

import xarray as xr

import meanfield

problem: meanfield.Problem = meanfield.load_problem("problem.toml")
result: xr.Dataset = meanfield.solve_density(problem)
report: xr.Dataset = meanfield.compare(result, meanfield.simulate_sgd(problem))
rate: float = problem.model.learning_rate

name: int = meanfield.__version__  # type: ignore[assignment]
unknown = problem.modle  # type: ignore[attr-defined]
meanfield.solve_density("problem.toml")  # type: ignore[arg-type]
