"""Problems of the theory page, by what differs from the first of them."""

import math

import numpy as np

import meanfield
from meanfield.problems.file import problem_from

FIRST = {
    "family": "hidden_manifold",
    "inputs": {"nonlinearity": "sign", "aspect_ratio": 0.5},
    "teacher": {"overlap": [[1.0, 0.0], [0.0, 1.0]], "output_weights": [1.0, 1.0]},
    "student": {
        "output_weights": [1.0, 1.0],
        "on_teacher": [[0.3, 0.0], [0.05, 0.25]],
        "elsewhere": [[0.49, 0.0], [0.0, 0.49]],
    },
    "training": {"learning_rate": 0.2, "output_learning_rate": 0.0},
    "time": {"stop": 100.0, "outputs": 11},
    "order_parameters": {"tolerance": 1e-10},
}


def data(**changes):
    """Data of a problem; each change is a table whose keys replace those of the first problem."""
    return {
        name: {**FIRST.get(name, {}), **changes.get(name, {})} if isinstance(FIRST.get(name, {}), dict) else FIRST[name]
        for name in {**FIRST, **changes}
    }


def problem(**changes):
    return problem_from(data(**changes))


def solved(method="order_parameters", **changes):
    return meanfield.solve(problem(**changes), method)


def numbers(result, t):
    """Q11 Q12 Q22 R11 R12 R21 R22 and the generalisation error at a time."""
    at = result.sel(time=t)
    Q, R = at["Q"].values, at["R"].values
    return np.array([Q[0, 0], Q[0, 1], Q[1, 1], *R.ravel(), float(at["generalisation_error"])])


def slow_erf(x):
    """Another name of erf(x/sqrt 2), for which no closed form is known."""
    return math.erf(x / math.sqrt(2.0))


def slow_slope(x):
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)


SLOW = meanfield.Activation(slow_erf, slow_slope)


def explosive(x):
    """A nonlinearity without a variance."""
    return np.exp(x * x)


EXPLOSIVE = explosive


def constant(x):
    """A nonlinearity that carries nothing."""
    return 1.0


def shifted_sign(x):
    """Sign of x plus 1: a nonlinearity with a mean."""
    return 2.0 if x > 0 else 0.0
