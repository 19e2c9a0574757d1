"""Problems of the theory page, by what differs from the first of them."""

import numpy as np

import meanfield
from meanfield.families.alpha_contrastive.limit.circle import on_circle
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


def assert_gradient(field):
    """Check at one filter on the circle that a field is a gradient, and that Jacobians are derivatives of the field."""
    step = 1e-3

    def along(angle):
        w = on_circle(np.array([angle]))
        F = field.field(w)[0]
        return float(field.objective(w)[0]), float(F[1] * w[0, 0] - F[0] * w[0, 1])

    sides = [along(0.4 + k * step) for k in (-2, -1, 1, 2)]
    G, F = [(a - 8.0 * b + 8.0 * c - d) / (12.0 * step) for a, b, c, d in zip(*sides, strict=True)]
    allowed = 1e-9  # differences of fourth order: 1e-12 of fifth derivatives of up to 1e3
    assert abs(G - along(0.4)[1]) < allowed
    w = on_circle(np.array([0.4]))[0]
    J, _ = field.jacobians(w, np.array([[-w[1]], [w[0]]]))
    assert abs(F - J[0, 0]) < allowed
