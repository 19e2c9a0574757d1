"""SGD against the order parameters of the limit, and against a theory that is wrong.

All runs start with the overlaps of the limit, so that a mean over replicas differs from the ODE by chance, of order
1/sqrt(N replicas), and by O(1/N), which is less than half a standard error here. The seeds are fixed; had they been
drawn at random, one of the 40 numbers would be beyond `BOUND` standard errors in a tenth of all runs of this file.
"""

import numpy as np
import pytest

import meanfield
from tests.families.hidden_manifold.particles.problems import BOTH_LAYERS, LINEAR, SCALES, make_problem

BOUND = 3.5

RELU = ('student.activation = "relu"', 'teacher.activation = "relu"')
ALONG = "inputs.components = [{ weight = 0.5, mean = [3.0, 0.0] }, { weight = 0.5, mean = [-3.0, 0.0] }]"
CASES = {
    "erf": (),
    "ReLU, both layers": (
        *RELU,
        BOTH_LAYERS,
        'inputs.nonlinearity = "tanh"',
        "teacher.output_weights = [1.0, 0.8]",
        "student.output_weights = [0.5, 0.3]",
    ),
    "scales": (SCALES, 'inputs.nonlinearity = "scaled_erf"'),
    "means": (ALONG,),
    "chain": (
        LINEAR,
        'inputs.spectrum = { law = "atoms", eigenvalues = [0.4, 1.6], teacher = [0.0, 2.0] }',
        SCALES,
        "particles = { dimension = 10000, replicas = 24 }",
    ),
}
SLOW = ("erf", "ReLU, both layers", "scales")
"""Cases of what others have in addition: "means" is the first with components, and the chain has the same scales; both
layers are trained in test_committee.py, and steps of ReLU have the mean of the limit in test_fluctuations.py."""

SHORT = "time = { stop = 1.0, outputs = 2 }"


def numbers(result):
    """Q, R, the error and v at the end, shape (..., numbers)."""
    end = result.isel(time=-1)
    Q = end.Q.values[..., (0, 0, 1), (0, 1, 1)]
    R = end.R.values.reshape(*Q.shape[:-1], -1)
    return np.concatenate([Q, R, end.generalisation_error.values[..., None], end.v.values], axis=-1)


def deviations(runs, limit):
    """Difference of the means over replicas in standard errors; 0 where nothing moves."""
    spread = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return np.where(spread > 0, (runs.mean(axis=0) - limit) / np.where(spread > 0, spread, 1), 0)


@pytest.mark.parametrize(
    "lines",
    [pytest.param(lines, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, lines in CASES.items()],
)
def test_sgd_follows_the_limit(lines):
    problem = make_problem(
        "particles = { dimension = 1000, replicas = 12, snapshots = [] }", *lines, SHORT, "particles.seed = 4"
    )
    runs = numbers(meanfield.solve(problem, "particles"))
    moved = runs.mean(axis=0) - numbers(meanfield.solve(make_problem(*lines, "time.stop = 1e-6"), "order_parameters"))
    assert np.abs(deviations(runs, runs.mean(axis=0) - moved)).max() > 8  # training has done something
    assert np.abs(deviations(runs, numbers(meanfield.solve(problem, "order_parameters")))).max() < BOUND
    if any("components" in line for line in lines):
        single = make_problem(*(line for line in lines if "components" not in line), SHORT)
        wrong = deviations(runs, numbers(meanfield.solve(single, "order_parameters")))
        assert np.abs(wrong).max() > 10  # one Gaussian of the same mean and variance per latent is refused
