"""The predicted spread of q against SGD."""

import numpy as np
import pytest

from meanfield import simulate_sgd
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.problems import problem_keys
from validation.contrastive.figures import finite_n_bands

QUICK = ("tanh, opposite noise", "relu, two features, noise")
"""Models that have what the others have: one feature or two, with noise."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in finite_n_bands.MODELS]
)
def test_spread_over_few_runs(name):
    """Standard errors of 3.5 % of a deviation over 400 runs, and 3 % or so for the next order at N = 1000."""
    problem = problem_keys.with_value(finite_n_bands.problems()[name], "particles.dimension", 1000)
    problem = problem_keys.with_value(problem, "particles.replicas", 400)
    predicted, found = (run(problem).q_covariance.values[-1] for run in (solve_order_parameters, simulate_sgd))
    ratio = np.sqrt(np.diag(found) / np.diag(predicted))
    np.testing.assert_allclose(ratio, 1, atol=0.14)  # see above; seven looks in all models, one false alarm in 100
