"""Problems of the theory page, by what differs from the first of them."""

import numpy as np

import meanfield
from meanfield.problems.file import problem_from

LAW_F = {
    "law": "points",
    "points": [[1.5, 0.0], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9]],
    "probabilities": [0.3, 0.25, 0.2, 0.15, 0.1],
}
ANGLES = np.pi * np.array([-4 / 5, -1 / 2, -2 / 5, -1 / 6, 0, 1 / 5, 2 / 5, 3 / 5, 4 / 5])
NINE_POINTS = {"law": "points", "points": np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).tolist()}


def data(activation="relu", law=LAW_F, importance=None, **tables):
    """Data of a problem with a law; more tables as keywords."""
    first = {"family": "alpha_contrastive", "model": {"activation": activation}, "data": law}
    return first | {"importance": importance or {"kind": "quadratic"}} | tables


def kernel(kind, temperature, **more):
    return {"kind": kind, "temperature": temperature} | more


def problem(*arguments, **tables):
    return problem_from(data(*arguments, **tables))


def solved(method, *arguments, **tables):
    return meanfield.solve(problem(*arguments, **tables), method)
