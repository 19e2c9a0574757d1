"""Laws c = sqrt(v) n with Gaussian n and a random variance v, as finitely many Gaussians.

Averages depend on v through the variance 1 - q.q + q_k^2 v of B only, in which they are smooth down to v = 0 even where
the activation has a kink. In y = log v they are analytic in a strip of half-width pi/2 about the real axis whatever q
is, and the trapezoidal rule converges exponentially there. A Gauss rule in sqrt(v) needs fewer nodes for fewer digits.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammainccinv, gammaincinv, gammaln, loggamma, wrightomega

from meanfield.numerics.quadrature import gauss_rules
from meanfield.typing import FloatArray

RULE_TOLERANCE = 1e-14
"""Largest probability mass, and relative error of moments, that the trapezoidal rule may miss."""


def gamma_trapezoid(shape: float, low_power: float, high_power: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the trapezoidal rule in log x for x ~ Gamma(shape).

    Parameters
    ----------
    shape : float
        Shape parameter; the scale is 1.
    low_power, high_power : float
        Functions that are averaged grow at most like x^-low_power at 0 and like x^high_power at infinity.
    """
    low = _log_quantile(shape - low_power)
    high = math.log(gammainccinv(shape + high_power, RULE_TOLERANCE))
    step = 0.5
    while _aliasing(shape - low_power, step) > RULE_TOLERANCE or _aliasing(shape + high_power, step) > RULE_TOLERANCE:
        step *= 0.95
    y = np.linspace(low, high, math.ceil((high - low) / step) + 1)
    weight = np.exp(shape * y - np.exp(y) - gammaln(shape))
    return np.exp(y), weight / weight.sum()


def gamma_nodes(shape: float, low_power: float, high_power: float, count: int) -> tuple[FloatArray, FloatArray]:
    """A number of nodes for x ~ Gamma(shape), and their weights: the trapezoidal rule in t with log x = t - exp(-t).

    Towards x = 0 it ends doubly exponentially, so that heavy tails of 1/x take few nodes. It serves functions that are
    analytic in log x, too, the sooner the smoother they are at 0.

    Parameters
    ----------
    shape, low_power, high_power : float
        See `gamma_trapezoid`.
    count : int
    """
    ends = np.array([_log_quantile(shape - low_power), math.log(gammainccinv(shape + high_power, RULE_TOLERANCE))])
    low, high = -np.log(wrightomega(-ends).real)
    t = np.linspace(low, high, count)
    y = t - np.exp(-t)
    log_weight = shape * y - np.exp(y) + np.log1p(np.exp(-t))
    weight = np.exp(log_weight - log_weight.max())
    return np.exp(y), weight / weight.sum()


def _log_quantile(shape: float) -> float:
    """Logarithm of x with P(Gamma(shape) < x) = RULE_TOLERANCE, from its leading power where x is tiny."""
    leading = (math.log(RULE_TOLERANCE) + gammaln(shape + 1)) / shape
    return leading if leading < -10 else math.log(gammaincinv(shape, RULE_TOLERANCE))


def _aliasing(shape: float, step: float) -> float:
    """Relative error of the trapezoidal rule for x^shape e^-x in log x: |Gamma(shape + 2 pi i/step)| / Gamma(shape)."""
    return 2 * math.exp(loggamma(complex(shape, 2 * math.pi / step)).real - gammaln(shape))


def gauss_rule(x: FloatArray, weight: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss rule of a measure of many weighted points.

    Parameters
    ----------
    x, weight : ndarray, shape (points,)
        The measure.
    nodes : int
        Number of nodes, far below the number of points.
    """
    found, share = gauss_rules(x[None], weight[None], nodes)
    return found[0], share[0]
