"""Independent evaluations of the closures, written from their definition in theory.md, section 2.

Nothing here uses the package's quadrature, activations, laws or coordinates: see `oracle_quadrature`, `oracle_laws` and
`oracle_activations`. The brackets are those of h12 and h21, from their values on a grid.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
import sympy as sp

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from tests.oracles.activations import sigma
from tests.oracles.quadrature import grid

NOISES = {
    "none": None,
    "independent": {"variance": [0.3, 0.3], "correlation": 0.0},
    "correlated": {"variance": [0.3, 0.3], "correlation": 0.5},
    "opposite": {"variance": [0.3, 0.3], "correlation": -1.0},
    "unequal": {"variance": [0.4, 0.1], "correlation": -0.3},
    "one view": {"variance": [0.0, 0.5], "correlation": 0.0},
}

HIDDEN = {
    "three_point": {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05},
    "gaussian": {"law": "gaussian", "second_moment": 1.2},
    "asymmetric": {"law": "discrete", "values": [-1.0, 0.0, 2.0], "probabilities": [0.5, 0.25, 0.25]},
    "shifted": {"law": "discrete", "values": [-0.5, 1.5], "probabilities": [0.25, 0.75]},
    "uniform": {"law": "uniform", "second_moment": 1.1},
    "laplace": {"law": "laplace", "second_moment": 1.2},
    "student_t": {"law": "student_t", "degrees_of_freedom": 12.0, "second_moment": 1.2},
    "mixture": {
        "law": "gaussian_mixture", "means": [-0.7, 1.3], "variances": [0.5, 0.04], "probabilities": [0.6, 0.4]
    },
}  # fmt: skip


def make_problem(
    activation="quadratic", hidden=("three_point",), noise="none", centering="none", tau=0.3, m=4, overlaps=None, **rest
):
    """A problem from names in the tables above, or from tables written out; one table of vectors is a joint law."""
    joint = isinstance(hidden, dict)
    laws = [None] * len(hidden["values"][0]) if joint else [HIDDEN[h] if isinstance(h, str) else h for h in hidden]
    overlaps = overlaps or [0.1] * len(laws)
    name, parameters = (activation, None) if isinstance(activation, str) else activation
    data = {
        "model": {"activation": name, "centering": centering, "learning_rate": tau, "batch_size": m},
        "features": [
            {"initial_overlap": q} | ({} if joint else {"hidden": h}) for h, q in zip(laws, overlaps, strict=True)
        ],
        "time": {"stop": 1.0},
    }
    if parameters:
        data["model"]["activation_parameters"] = parameters
    if joint:
        data["hidden"] = hidden
    noise = NOISES[noise] if isinstance(noise, str) else noise
    if noise is not None:
        data["augmentation"] = noise
    return Problem.model_validate(data | rest)


def make_closure(*args, **kwargs):
    return Closure(make_problem(*args, **kwargs))


def noise_covariance(problem):
    """V, shape (2, 2)."""
    if problem.augmentation is None:
        return np.zeros((2, 2))
    v11, v22 = problem.augmentation.variance
    v12 = problem.augmentation.correlation * np.sqrt(v11 * v22)
    return np.array([[v11, v12], [v12, v22]])


def hidden_tables(problem):
    """The hidden laws as they were written: a list with one table per feature, or the table of a joint law."""
    if problem.hidden is not None:
        return problem.hidden.model_dump()
    return [feature.hidden.model_dump() for feature in problem.features]


class Expectation:
    """The activation on the grid of (Theta1, Theta2), for one problem and one q; centring does not matter."""

    def __init__(self, problem, q):
        self.q = np.asarray(q, dtype=float)
        self.activation = sigma(problem.model.activation, problem.model.activation_parameters)
        self.grid = grid(hidden_tables(problem), self.q, noise_covariance(problem), self.activation)
        views = self.grid.theta1, self.grid.theta2
        self.sigma = [self.activation.value(theta) for theta in views]
        self.slope = [self.activation.slope(theta) for theta in views]
        self._brackets = {}

    def brackets(self, centred):
        """All brackets of theory.md, section 2, with or without the mean outputs subtracted."""
        if centred not in self._brackets:
            grid, (slope1, slope2) = self.grid, self.slope
            y1, y2 = self.outputs(centred)
            s1, s2 = self.sigma[0] - y1, self.sigma[1] - y2
            h12, h21 = 2 * s1 * slope2, 2 * s2 * slope1
            h = grid.over_d(h12 + h21)
            c_h = grid.f_c @ h
            b = {"h'": grid.score @ h if grid.by_stein else self.by_curvature(centred), "c h": c_h}
            b["h h"] = np.array([grid(h12**2), grid(h21**2), grid(h12 * h21)])
            b["variances"] = np.array([grid(s1**2), grid(s2**2), grid(s1 * s2)])
            b["slopes"] = self.slopes
            if not grid.on_the_sphere:
                b["(c - q w.x) h"] = c_h - self.q * (self.q @ c_h + np.sqrt(max(1 - self.q @ self.q, 0)) * grid.f_e @ h)
            self._brackets[centred] = b
        return self._brackets[centred]

    def outputs(self, centred):
        """What is subtracted from both views."""
        return [self.grid(value) for value in self.sigma] if centred else (0.0, 0.0)

    @cached_property
    def slopes(self):
        slope1, slope2 = self.slope
        return np.array([self.grid(slope2**2), self.grid(slope1**2), self.grid(slope1 * slope2)])

    def by_curvature(self, centred):
        """<h12' + h21'> with sigma'' spelt out: smooth parts and point masses at the kinks."""
        grid, activation = self.grid, self.activation
        y1, y2 = self.outputs(centred)
        curvature1, curvature2 = (activation.curvature(theta) for theta in (grid.theta1, grid.theta2))
        total = grid(2 * self.slope[0] * self.slope[1])
        total += grid((self.sigma[0] - y1) * curvature2 + (self.sigma[1] - y2) * curvature1)
        for kink, jump in activation.kinks.items():
            total += jump * grid.at_kink(kink, 1, lambda x: activation.value(x) - y2)
            total += jump * grid.at_kink(kink, 2, lambda x: activation.value(x) - y1)
        return 2 * total


class Reference:
    """g and Lambda of a problem at q, with the size of their largest terms.

    Attributes
    ----------
    pull : ndarray, shape (d1,)
        What one SGD step adds to q to first order in tau, norm restored: no derivative of h enters.
    """

    def __init__(self, problem, q, expectation=None):
        tau, m = problem.model.learning_rate, problem.model.batch_size
        v = noise_covariance(problem)
        mean = expectation or Expectation(problem, q)
        b = mean.brackets(problem.model.centering != "none")
        keep, spread = (1 - 1 / m, (m - 1) / m**2) if problem.model.centering == "batch" else (1.0, 0.0)

        squares = keep**2 * b["h h"] + 4 * spread * b["variances"] * b["slopes"]
        terms = tau**2 / (4 * m) * np.array([1 + v[1, 1], 1 + v[0, 0], 2 * (1 + v[0, 1])]) * squares
        self.g = tau / 2 * keep * (mean.q * b["h'"] - b["c h"])
        self.Lambda = terms.sum()
        self.g_scale = tau / 2 * keep * max(abs(b["h'"]), np.abs(b["c h"]).max())
        self.Lambda_scale = np.abs(terms).max()
        self.covariance = keep * b["variances"][2]
        if not mean.grid.on_the_sphere:
            self.pull = tau / 2 * keep * b["(c - q w.x) h"]


# The same closures for sigma = x^2 by computer algebra.

TAU, M, ETA = sp.symbols("tau m eta", positive=True)
Q1, Q2, S = sp.symbols("q1 q2 s", real=True)
C1, C2, E, N1, N2 = sp.symbols("c1 c2 e n1 n2", real=True)
NOISE_A, NOISE_B, NOISE_D = sp.symbols("a b d", real=True)


def moment_symbol(k, order):
    """The moment E[c_k^order] of a symmetric law."""
    return sp.Integer(1) if order == 0 else sp.Integer(0) if order % 2 else sp.Symbol(f"m{order}_{k}", positive=True)


def normal_moment(order):
    return sp.Integer(0) if order % 2 else sp.factorial2(order - 1)


MOMENTS = {
    C1: lambda n: moment_symbol(1, n),
    C2: lambda n: moment_symbol(2, n),
    E: normal_moment,
    N1: normal_moment,
    N2: normal_moment,
}


def mean(polynomial, moments=None):
    """The expectation of a polynomial in independent variables with the given moments."""
    moments = moments or MOMENTS
    terms = sp.Poly(sp.expand(polynomial), *moments).terms()
    factors = [[f(n) for f, n in zip(moments.values(), powers, strict=True)] for powers, _ in terms]
    return sp.expand(sum(c * sp.prod(f) for (_, c), f in zip(terms, factors, strict=True)))


SYMBOLIC_NOISES = {
    "none": (0, 0),
    "independent": (sp.sqrt(ETA) * N1, sp.sqrt(ETA) * N2),
    "opposite": (sp.sqrt(ETA) * N1, -sp.sqrt(ETA) * N1),
    "general": (NOISE_A * N1, NOISE_B * N1 + NOISE_D * N2),
}


class Symbolic:
    """g (one per feature) and Lambda for sigma = x^2 without centring, and what they are made of."""

    def __init__(self, features=1, noise="none"):
        self.c = [C1, C2][:features]
        self.q = [Q1, Q2][:features]
        self.zeta = SYMBOLIC_NOISES[noise]
        z1, z2 = self.z1, self.z2 = sp.symbols("z1 z2")
        common = sum(c * q for c, q in zip(self.c, self.q, strict=True)) + S * E
        self.theta = {z1: common + self.zeta[0], z2: common + self.zeta[1]}
        self.h12, self.h21 = 2 * z1**2 * 2 * z2, 2 * z2**2 * 2 * z1
        self.v11, self.v22 = mean(self.zeta[0] ** 2), mean(self.zeta[1] ** 2)
        self.v12 = mean(self.zeta[0] * self.zeta[1])
        h, dh = self.h12 + self.h21, self.both_derivatives(self.h12 + self.h21)
        self.g = [
            sp.expand(TAU / 2 * (q * self.mean(dh) - self.mean(h, times=c)))
            for c, q in zip(self.c, self.q, strict=True)
        ]
        self.Lambda = sp.expand(
            TAU**2
            / (4 * M)
            * (
                (1 + self.v22) * self.mean(self.h12**2)
                + (1 + self.v11) * self.mean(self.h21**2)
                + 2 * (1 + self.v12) * self.mean(self.h12 * self.h21)
            )
        )

    def both_derivatives(self, f):
        return sp.diff(f, self.z1) + sp.diff(f, self.z2)

    def mean(self, f, times=1):
        """<times f(Theta1, Theta2)>, a polynomial in q."""
        result = mean(times * sp.expand(f).subs(self.theta, simultaneous=True))
        return sp.expand(result.subs(S, sp.sqrt(1 - sum(q**2 for q in self.q))))

    @property
    def velocity(self):
        """dq/dt."""
        bracket = sum(q * g for q, g in zip(self.q, self.g, strict=True)) - self.Lambda / 2
        return [sp.expand(q * bracket - g) for q, g in zip(self.q, self.g, strict=True)]

    @property
    def squared_velocity(self):
        """dQ/dt with Q = q^2."""
        return [sp.expand(2 * q * v) for q, v in zip(self.q, self.velocity, strict=True)]


@cache
def symbolic(features=1, noise="none"):
    return Symbolic(features, noise)


def equal(left, right):
    """Whether two polynomials are the same."""
    return sp.expand(left - right) == 0
