"""The Gaussian expectations that close the limit: (problem, q) -> drift gain g and diffusion Lambda.

With e ~ N(0, 1), c ~ P_c, (zeta1, zeta2) ~ N(0, V) and Theta_l = c.q + sqrt(1 - q.q) e + zeta_l, write
s_l = sigma(Theta_l) - ybar_l and D = d/dTheta1 + d/dTheta2. Since h12 + h21 = 2 D(s1 s2), theory.md,
section 2, reads

    g      = tau (q <D^2 (s1 s2)> - <c D(s1 s2)>)
    Lambda = (tau^2/m) [(1 + v22) <s1^2 sigma2'^2> + (1 + v11) <s2^2 sigma1'^2>
                        + 2 (1 + v12) <s1 s2 sigma1' sigma2'>]

so g = -tau grad_q <s1 s2> at fixed ybar. A Gaussian feature needs no quadrature over c: it adds
m2_k q_k^2 to the variance, and <c_k D(s1 s2)> = m2_k q_k <D^2 (s1 s2)> (Stein).
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numba
import numpy as np

from meanfield.errors import InputError
from meanfield.quadrature import gauss_hermite, gaussian_trapezoid
from meanfield.scalar_functions import call_scalar
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.problem import Problem

NODE_COUNTS = (33, 49, 73, 109, 163, 245, 367, 551)
"""Sizes of the trapezoidal rule that are tried, in this order, for activations that are not polynomials."""

NODE_TOLERANCE = 1e-11
"""Largest change of the brackets, relative to their largest, from one size to the next at which we stop."""

CENTERINGS = {"none": 0, "population": 1, "batch": 2}
"""Codes of the centrings in compiled code."""

_ADDRESS = numba.intp
_F = numba.float64
_F1 = _F[::1]
_F2 = _F[:, ::1]


@numba.njit(
    _F(_ADDRESS, _F1, _F, _F2, _F1, _F1, _F1),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def mean_output(value, q, variance, atoms, probability, x, weight):  # type: ignore[no-untyped-def]
    """<sigma(Theta)> with Theta = c.q + N(0, variance), c on `atoms`."""
    scale = math.sqrt(max(variance, 0.0))
    mean = 0.0
    for a in range(atoms.shape[0]):
        shift = 0.0
        for k in range(q.size):
            shift += atoms[a, k] * q[k]
        inner = 0.0
        for i in range(x.size):
            inner += weight[i] * call_scalar(value, shift + scale * x[i])
        mean += probability[a] * inner
    return mean


@numba.njit(
    _F1(
        _ADDRESS,
        _ADDRESS,
        _ADDRESS,
        _F1,
        _F1,
        _F2,
        _F1,
        _F2,
        _F1,
        _F1,
        numba.int64,
        _F,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def brackets(  # type: ignore[no-untyped-def]
    value, derivative, second, q, gaussian_variance, atoms, probability, noise, x, weight, centering, batch_size
):
    """<D^2(s1 s2)>, the two second moments behind Lambda of each view, their cross moment, and <c_k D(s1 s2)>.

    Returns
    -------
    ndarray, shape (4 + d1,)
        <D^2(s1 s2)>, <s1^2 sigma2'^2>, <s2^2 sigma1'^2>, <s1 s2 sigma1' sigma2'>, then <c_k D(s1 s2)>;
        for batch centring with the corrections in 1/m of theory.md, section 2.
    """
    d1 = q.size
    common = 1.0
    for k in range(d1):
        common += (gaussian_variance[k] - 1.0) * q[k] * q[k]
    common = max(common, 0.0)
    variance1 = common + noise[0, 0]
    variance2 = common + noise[1, 1]
    # Cholesky factor of the covariance of (Theta1, Theta2) given c; it may be singular.
    l11 = math.sqrt(variance1)
    l21 = (common + noise[0, 1]) / l11 if l11 > 0.0 else 0.0
    rest = variance2 - l21 * l21
    # Up to rounding the two views are then functions of one Gaussian variable.
    l22 = math.sqrt(rest) if rest > 1e-14 * variance2 else 0.0
    same_view = noise[0, 0] == 0.0 and noise[1, 1] == 0.0
    inner_nodes = 1 if l22 == 0.0 else x.size

    mean1 = mean2 = 0.0
    if centering > 0:
        mean1 = mean_output(value, q, variance1, atoms, probability, x, weight)
        mean2 = mean1 if same_view else mean_output(value, q, variance2, atoms, probability, x, weight)

    result = np.zeros(4 + d1)
    var1 = var2 = cov = slope1 = slope2 = slope12 = 0.0
    for a in range(atoms.shape[0]):
        shift = 0.0
        for k in range(d1):
            shift += atoms[a, k] * q[k]
        drift_given_c = 0.0
        for i in range(x.size):
            theta1 = shift + l11 * x[i]
            s1 = call_scalar(value, theta1) - mean1
            p1 = call_scalar(derivative, theta1)
            c1 = call_scalar(second, theta1)
            for j in range(inner_nodes):
                w = probability[a] * weight[i]
                if same_view:
                    s2 = s1
                    p2 = p1
                    c2 = c1
                else:
                    theta2 = shift + l21 * x[i]
                    if inner_nodes > 1:
                        theta2 += l22 * x[j]
                        w *= weight[j]
                    s2 = call_scalar(value, theta2) - mean2
                    p2 = call_scalar(derivative, theta2)
                    c2 = call_scalar(second, theta2)
                drift_given_c += w * (p1 * s2 + s1 * p2)
                result[0] += w * (c1 * s2 + 2.0 * p1 * p2 + s1 * c2)
                result[1] += w * s1 * s1 * p2 * p2
                result[2] += w * s2 * s2 * p1 * p1
                result[3] += w * s1 * s2 * p1 * p2
                var1 += w * s1 * s1
                var2 += w * s2 * s2
                cov += w * s1 * s2
                slope1 += w * p1 * p1
                slope2 += w * p2 * p2
                slope12 += w * p1 * p2
        for k in range(d1):
            result[4 + k] += atoms[a, k] * drift_given_c
    for k in range(d1):
        result[4 + k] += gaussian_variance[k] * q[k] * result[0]
    if centering == 2:
        keep = 1.0 - 1.0 / batch_size
        spread = keep / batch_size
        result[0] *= keep
        result[4:] *= keep
        result[1] = keep * keep * result[1] + spread * var1 * slope2
        result[2] = keep * keep * result[2] + spread * var2 * slope1
        result[3] = keep * keep * result[3] + spread * cov * slope12
    return result


class Closure:
    """g(q) and Lambda(q) of one problem.

    The quadrature is chosen once: the exact Gauss rule for polynomial activations, otherwise a
    trapezoidal rule that is refined until g and Lambda stop changing on probing points of the unit ball.

    Parameters
    ----------
    problem : Problem
        What is trained, on what data.

    Raises
    ------
    InputError
        If no tried quadrature resolves the activation at this noise.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, section 2.
    """

    def __init__(self, problem: Problem) -> None:
        self.activation = problem.model.activation_functions
        self.learning_rate = problem.model.learning_rate
        self.batch_size = problem.model.batch_size
        self.centering = CENTERINGS[problem.model.centering]
        self.noise = problem.noise_covariance
        laws = [feature.hidden for feature in problem.features]
        self.gaussian_variance = np.array([law.gaussian_variance for law in laws])
        values, weights = zip(*(law.atoms for law in laws), strict=True)
        self.atoms = np.array(list(product(*values)), dtype=float)
        self.probability = np.array([math.prod(p) for p in product(*weights)])
        self.x, self.weight = self._choose_rule()

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate the closure.

        Parameters
        ----------
        q : array_like, shape (d1,)
            Overlaps with q.q <= 1.

        Returns
        -------
        g : ndarray, shape (d1,)
            Drift gain.
        Lambda : float
            Diffusion coefficient.

        Raises
        ------
        ValueError
            If q does not have one entry per feature.
        """
        q = np.ascontiguousarray(q, dtype=float)
        if q.shape != self.gaussian_variance.shape:
            raise ValueError(f"q has shape {q.shape}, but the problem has {self.gaussian_variance.size} feature(s)")
        b = self._brackets(q, self.x, self.weight)
        return self.learning_rate * (q * b[0] - b[4:]), float(self._diffusion_factors @ b[1:4])

    @cached_property
    def _diffusion_factors(self) -> FloatArray:
        """What multiplies the three second moments of the gradient in Lambda."""
        v = self.noise
        factors = np.array([1 + v[1, 1], 1 + v[0, 0], 2 * (1 + v[0, 1])])
        return self.learning_rate**2 / self.batch_size * factors

    def _brackets(self, q: FloatArray, x: FloatArray, weight: FloatArray) -> FloatArray:
        result: FloatArray = brackets(
            *self.activation.addresses,
            q,
            self.gaussian_variance,
            self.atoms,
            self.probability,
            self.noise,
            x,
            weight,
            self.centering,
            float(self.batch_size),
        )
        return result

    def _choose_rule(self) -> tuple[FloatArray, FloatArray]:
        """The smallest quadrature that leaves g and Lambda unchanged at `NODE_TOLERANCE`."""
        degree = self.activation.degree
        if degree is not None:
            return gauss_hermite(2 * degree)  # Lambda holds polynomials of degree 4 degree - 2
        probes = self._probing_points()
        rule = gaussian_trapezoid(NODE_COUNTS[0])
        before = [self._brackets(q, *rule) for q in probes]
        for nodes in NODE_COUNTS[1:]:
            finer = gaussian_trapezoid(nodes)
            after = [self._brackets(q, *finer) for q in probes]
            if all(_agree(b, a) for b, a in zip(before, after, strict=True)):
                return rule
            rule, before = finer, after
        raise InputError(
            f"model.activation: Gaussian expectations did not converge with {NODE_COUNTS[-1]} quadrature nodes; "
            "lower augmentation.variance or the second moments of the hidden variables, or use a smoother activation"
        )

    def _probing_points(self) -> list[FloatArray]:
        """The origin, points near the sphere along each feature, and one in between them all."""
        axes = np.eye(self.atoms.shape[1])
        points = [np.zeros(len(axes)), np.full(len(axes), 0.6 / np.sqrt(len(axes)))]
        return points + [radius * axis for axis in axes for radius in (0.5, 0.95)]


def _agree(before: FloatArray, after: FloatArray) -> bool:
    """Whether the drift brackets agree relative to their largest, and the diffusion brackets likewise."""
    change = np.abs(after - before)
    drift, diffusion = np.array([0, *range(4, len(after))]), np.arange(1, 4)
    return all(change[part].max() <= NODE_TOLERANCE * np.abs(after[part]).max() for part in (drift, diffusion))
