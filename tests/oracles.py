"""Independent evaluations of the closures, written from their definition in theory.md, section 2.

Nothing here uses the package's quadrature, its activations or its identities: e, c and both noises are
integrated one by one, a Gaussian c included, and the brackets are those of h12 and h21.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy as sp
from scipy.special import erf, roots_hermitenorm, roots_legendre

from meanfield.closures import Closure
from meanfield.problem import Problem

ACTIVATIONS = {
    "linear": (lambda x: x, np.ones_like, np.zeros_like),
    "quadratic": (lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x),
    "erf": (
        erf,
        lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)),
        lambda x: -4 / np.sqrt(np.pi) * x * np.exp(-(x**2)),
    ),
    "tanh": (np.tanh, lambda x: np.cosh(x) ** -2, lambda x: -2 * np.tanh(x) * np.cosh(x) ** -2),
}
POLYNOMIALS = ("linear", "quadratic")

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
}


def make_problem(
    activation="quadratic", hidden=("three_point",), noise="none", centering="none", tau=0.3, m=4, overlaps=None, **rest
):
    """A problem from names in the tables above, or from tables written out."""
    laws = [HIDDEN[h] if isinstance(h, str) else h for h in hidden]
    overlaps = overlaps or [0.1] * len(laws)
    data = {
        "model": {"activation": activation, "centering": centering, "learning_rate": tau, "batch_size": m},
        "features": [{"hidden": h, "initial_overlap": q} for h, q in zip(laws, overlaps, strict=True)],
        "time": {"stop": 1.0},
    }
    noise = NOISES[noise] if isinstance(noise, str) else noise
    if noise is not None:
        data["augmentation"] = noise
    return Problem.model_validate(data | rest)


def make_closure(*args, **kwargs):
    return Closure(make_problem(*args, **kwargs))


@cache
def _normal_rule(rule, size):
    """A rule for N(0, 1): "exact" for polynomials of degree 15, or the density on a grid in [-7.2, 7.2].

    The "dense" grid is Gauss-Legendre with `size` nodes, the "even" one has the spacing `size`.
    """
    cutoff = 7.2  # drops 6e-13 of the probability
    if rule == "exact":
        x, w = roots_hermitenorm(8)
        return x, w / np.sqrt(2 * np.pi)
    if rule == "dense":
        x, w = roots_legendre(size)
        x, w = cutoff * x, cutoff * w
    else:
        x = size * np.arange(-(cutoff // size), cutoff // size + 1)
        w = np.full(x.size, size)
    return x, w * np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def noise_covariance(problem):
    """V, shape (2, 2)."""
    if problem.augmentation is None:
        return np.zeros((2, 2))
    v11, v22 = problem.augmentation.variance
    v12 = problem.augmentation.correlation * np.sqrt(v11 * v22)
    return np.array([[v11, v12], [v12, v22]])


class Expectation:
    """The joint law of (c, e, zeta1, zeta2) on a product grid, for one problem and one q.

    Each variable is resolved by its share in Theta, the `scale`: what matters is the distance of the poles
    of tanh, at +-i pi/2 in Theta, in units of that variable. With three variables or more the grid is even
    (spacing h: error about exp(-2 pi distance / h)) to keep it small, else it is dense Gauss-Legendre.
    """

    def __init__(self, problem, q):
        self.q = q = np.asarray(q, dtype=float)
        self.s = np.sqrt(max(1 - q @ q, 0.0))
        laws = [feature.hidden for feature in problem.features]

        # zeta1 = a n1 and zeta2 = b n1 + d n2 with independent n1, n2 ~ N(0, 1).
        v = noise_covariance(problem)
        a = np.sqrt(v[0, 0])
        b = v[0, 1] / a if a else 0.0
        d = np.sqrt(v[1, 1] - b * b) if v[1, 1] - b * b > 1e-14 else 0.0

        polynomial = problem.model.activation in POLYNOMIALS
        variables = 1 + sum(law.law == "gaussian" for law in laws) + (a > 0) + (d > 0)

        def normal(scale):
            if scale < 1e-14:  # the variable drops out
                return np.zeros(1), np.ones(1)
            if polynomial:
                return _normal_rule("exact", 0)
            if variables <= 2:
                return _normal_rule("dense", round(64 + 300 * scale))
            return _normal_rule("even", min(0.7, 0.25 / scale))

        def hidden(law, overlap):
            if law.law == "gaussian":
                deviation = np.sqrt(law.second_moment)
                # c multiplies the brackets as well, so it keeps its nodes at q = 0.
                x, w = normal(max(abs(overlap) * deviation, 0.01))
                return deviation * x, w
            if law.law == "three_point":
                outer = law.second_moment**2 / law.fourth_moment
                value = np.sqrt(law.fourth_moment / law.second_moment)
                return np.array([value, 0, -value]), np.array([outer / 2, 1 - outer, outer / 2])
            return np.array(law.values), np.array(law.probabilities)

        rules = [hidden(law, overlap) for law, overlap in zip(laws, q, strict=True)] + [normal(self.s)]
        nodes = [x.ravel() for x in np.meshgrid(*(x for x, _ in rules), indexing="ij")]
        weights = [w.ravel() for w in np.meshgrid(*(w for _, w in rules), indexing="ij")]
        self.c, self.e = np.array(nodes[:-1]), nodes[-1]
        self.weight = np.prod(weights, axis=0)
        n1, self.weight1 = normal(max(a, abs(b)))
        n2, self.weight2 = normal(d)

        theta = (q @ self.c + self.s * self.e)[:, None, None]
        theta1 = theta + a * n1[:, None]
        theta2 = theta + b * n1[:, None] + d * n2
        value, slope, curvature = ACTIVATIONS[problem.model.activation]
        self.sigma = value(theta1), value(theta2)
        self.slope = slope(theta1), slope(theta2)
        self.curvature = curvature(theta1), curvature(theta2)
        self._brackets = {}

    def given_c_and_e(self, f):
        """The expectation over the noise, one number per node of (c, e)."""
        shape = (self.e.size, self.weight1.size, self.weight2.size)
        return np.broadcast_to(f, shape) @ self.weight2 @ self.weight1

    def __call__(self, f):
        return self.weight @ self.given_c_and_e(f)

    def brackets(self, centred):
        """All brackets of theory.md, section 2, with or without the mean outputs subtracted."""
        if centred not in self._brackets:
            y1, y2 = (self(self.sigma[0]), self(self.sigma[1])) if centred else (0.0, 0.0)
            s1, s2 = self.sigma[0] - y1, self.sigma[1] - y2
            slope1, slope2 = self.slope
            h12, h21 = 2 * s1 * slope2, 2 * s2 * slope1
            h = self.given_c_and_e(h12 + h21)
            along_w = self.q @ self.c + self.s * self.e
            self._brackets[centred] = {
                "h'": self(2 * (slope1 * slope2 + s1 * self.curvature[1]))
                + self(2 * (slope1 * slope2 + s2 * self.curvature[0])),
                "e h": (self.e * self.weight) @ h,
                "c h": (self.c * self.weight) @ h,
                "(c - q w.x) h": ((self.c - np.outer(self.q, along_w)) * self.weight) @ h,
                "h h": np.array([self(h12**2), self(h21**2), self(h12 * h21)]),
                "variances": np.array([self(s1**2), self(s2**2), self(s1 * s2)]),
                "slopes": np.array([self(slope2**2), self(slope1**2), self(slope1 * slope2)]),
            }
        return self._brackets[centred]


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
        self.pull = tau / 2 * keep * b["(c - q w.x) h"]
        self.covariance = keep * b["variances"][2]
        if mean.s > 0:
            self.g_by_stein = tau / 2 * keep * (mean.q * b["e h"] / mean.s - b["c h"])


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
