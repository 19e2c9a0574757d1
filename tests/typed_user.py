"""What a user's type checker sees of the installed package; `make test-dist` runs mypy --strict on it, nobody runs it.

Were types missing, everything would be `Any`, and mypy would call the comments on the last lines unused.
"""

import xarray as xr

import meanfield

problem: meanfield.Problem = meanfield.load_problem("problem.toml")
changed: meanfield.Problem = meanfield.with_value(problem, "time.stop", 1.0)
result: xr.Dataset = meanfield.solve_density(problem)
report: xr.Dataset = meanfield.compare(result, meanfield.simulate_sgd(problem))
made: meanfield.Problem = meanfield.Problem(family="latent_tree", title="a tree")
assert isinstance(problem, meanfield.contrastive.Problem)
rate: float = problem.model.learning_rate
same: meanfield.contrastive.Problem = meanfield.with_value(problem, "prior.strength", 1.0)
threshold: float = meanfield.contrastive.collapse_threshold(same)

name: int = meanfield.__version__  # type: ignore[assignment]
unknown = problem.modle  # type: ignore[attr-defined]
another = meanfield.load_problem("problem.toml").model  # type: ignore[attr-defined]
nothing = meanfield.solve_desnity(problem)  # type: ignore[attr-defined]
foreign = meanfield.contrastive.learnability(changed)  # type: ignore[arg-type]
meanfield.solve_density("problem.toml")  # type: ignore[arg-type]
