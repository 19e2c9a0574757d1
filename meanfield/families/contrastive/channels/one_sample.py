"""Quadrature over the low-dimensional scalars of one sample: Theta of both views and channels, c and the noise eta.

Given the component of the hidden variables c, a mixture of Gaussians, everything is Gaussian: the pre-activations Theta
with the covariance q^T diag(var) q + J (x) K + V (x) M, and X_l = c + eta_l, whose covariance with Theta_l',k is
(var_f + v_ll') q_fk. Both views of all channels are L xi with independent standard normals xi and a semidefinite
Cholesky factor L, whose rows go on with the averages of X given Theta, so that neither collapsed channels nor views
without noise need an inverse. Source: several_channels.md, sections 1 and 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


class OneSample(NamedTuple):
    """Law of one sample besides its overlaps.

    Parameters
    ----------
    probability : ndarray, shape (components,)
    mean, variance : ndarray, shape (components, d1)
        Components of the hidden variables.
    noise : ndarray, shape (2, 2)
        V.
    views : int
        1 if there is no noise, so that both views are one, else 2.
    directions : int
        Number of independent Gaussian directions: d2, or 2 d2 if views are no functions of each other.
    """

    probability: FloatArray
    mean: FloatArray
    variance: FloatArray
    noise: FloatArray
    views: int
    directions: int


class BatchLaw(NamedTuple):
    """Law of a batch besides the overlaps, and what a step makes of it besides the penalty.

    Parameters
    ----------
    activation : (int, int)
        Addresses of sigma and sigma'.
    size : int
        m.
    centred : bool
        Whether outputs are centred by their mean, which changes nothing under batch centring but rounding.
    by_batch : bool
        Whether outputs are centred by the mean of the batch.
    factors : ndarray, shape (3,)
        Factors of <alpha alpha>, <beta beta> and <alpha beta + beta alpha> in Lambda / tau^2.
    """

    sample: OneSample
    activation: tuple[int, int]
    size: int
    centred: bool
    by_batch: bool
    factors: FloatArray


class Rule(NamedTuple):
    """Nodes and weights for the independent standard normal variables of one sample.

    Parameters
    ----------
    nodes : ndarray, shape (directions, n)
    weights : ndarray, shape (n,)
    ends : ndarray of int
        Ends of the nodes of each component, of its own or, with two of them, the same for all.
    """

    nodes: FloatArray
    weights: FloatArray
    ends: IntArray

    def at(self, law: OneSample, q: FloatArray, M: FloatArray) -> Rule:
        """See `PanelRule.at`: this rule is the same at all overlaps."""
        return self


@numba.njit(cache=True, nogil=True, error_model="numpy")
def covariance_factor(law, component, q, M):  # type: ignore[no-untyped-def]
    """Semidefinite Cholesky factor of (Theta_1, [Theta_2], X_1, [X_2]), eliminated in Theta, in a fixed order.

    Returns
    -------
    ndarray, shape (views (d1 + d2), directions)
    """
    d1, d2 = q.shape
    targets = law.views * d2
    variance = law.variance[component]
    covariance = np.zeros((law.views * (d1 + d2), targets))
    for k in range(d2):
        for j in range(d2):
            known = M[k, j]
            for f in range(d1):
                known += (variance[f] - 1.0) * q[f, k] * q[f, j]
            for a in range(law.views):
                for b in range(law.views):
                    covariance[a * d2 + k, b * d2 + j] = known + law.noise[a, b] * M[k, j]
    for f in range(d1):
        for j in range(d2):
            for a in range(law.views):
                for b in range(law.views):
                    row = targets + a * d1 + f
                    covariance[row, b * d2 + j] = (variance[f] + law.noise[a, b]) * q[f, j]
    factor = np.zeros((covariance.shape[0], law.directions))
    scale = np.empty(targets)
    for i in range(targets):
        scale[i] = covariance[i, i]
    column = 0
    for i in range(targets):
        left = covariance[i, i]
        if column == law.directions or not left > 1e-14 * scale[i]:  # the variable depends on those before it
            continue
        root = math.sqrt(left)
        for row in range(i, covariance.shape[0]):
            factor[row, column] = covariance[row, i] / root
            if row < targets:  # rounding must not make it larger than what is left of a variance
                bound = math.sqrt(max(covariance[row, row], 0.0))
                factor[row, column] = min(max(factor[row, column], -bound), bound)
        for row in range(i + 1, covariance.shape[0]):
            for other in range(i + 1, targets):
                covariance[row, other] -= factor[row, column] * factor[other, column]
        column += 1
    return factor


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_nodes(law, rule, q, M):  # type: ignore[no-untyped-def]
    """Nodes of one sample.

    Returns
    -------
    weight : ndarray, shape (n,)
    theta : ndarray, shape (views d2, n)
        Pre-activations, those of the first view first.
    x : ndarray, shape (views d1, n)
        Averages of c + eta_l given these.
    """
    d1, d2 = q.shape
    components, targets = law.probability.size, law.views * d2
    shared = rule.ends.size == 2
    count = components * rule.weights.size if shared else rule.weights.size
    weight, scalars = np.empty(count), np.empty((law.views * (d1 + d2), count))
    last = 0
    for a in range(components):
        first, start = (0, last) if shared else (rule.ends[a], rule.ends[a])
        points = rule.ends[1] if shared else rule.ends[a + 1] - first
        last = start + points
        factor, mean = call(covariance_factor, law, a, q, M), call(means_of, law, a, q)
        for n in range(points):
            weight[start + n] = law.probability[a] * rule.weights[first + n]
        for row in range(scalars.shape[0]):
            out = scalars[row, start:last]
            for n in range(points):
                out[n] = mean[row]
            for column in range(law.directions):
                loading = factor[row, column]
                if loading != 0.0:
                    along = rule.nodes[column, first : first + points]
                    for n in range(points):
                        out[n] += loading * along[n]
    return weight, scalars[:targets], scalars[targets:]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def means_of(law, component, q):  # type: ignore[no-untyped-def]
    """Means of (Theta_1, [Theta_2], X_1, [X_2]) in a component, shape (views (d1 + d2),)."""
    d1, d2 = q.shape
    mean = np.zeros(law.views * (d1 + d2))
    for view in range(law.views):
        for f in range(d1):
            mean[law.views * d2 + view * d1 + f] = law.mean[component, f]
            for k in range(d2):
                mean[view * d2 + k] += law.mean[component, f] * q[f, k]
    return mean


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill_outputs(activation, theta):  # type: ignore[no-untyped-def]
    """Outputs sigma(theta) and slopes sigma'(theta)."""
    y, s = np.empty(theta.shape), np.empty(theta.shape)
    for v in range(theta.shape[0]):
        for n in range(theta.shape[1]):
            y[v, n] = call_scalar(activation[0], theta[v, n])
            s[v, n] = call_scalar(activation[1], theta[v, n])
    return y, s


@numba.njit(cache=True, nogil=True, error_model="numpy")
def centre_outputs(weight, y):  # type: ignore[no-untyped-def]
    """Subtract from outputs their means over the nodes."""
    for v in range(y.shape[0]):
        mean = 0.0
        for n in range(weight.size):
            mean += weight[n] * y[v, n]
        for n in range(weight.size):
            y[v, n] -= mean
